"""Edits of state.json are adopted, and never lose a loop."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.documents import state as states
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.policy.projection import state_document
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.state_document import make_state
from unit.policy.projection.loop_steps import DAY, LIMITS, NOON, added, adopted, after, resolved


def test_what_was_left_out_of_an_edit_stays_open():
    """A model that rewrites the list and forgets a loop does not close it."""
    before = added("two", "Second", NOON, added("one", "First", NOON))
    edited = msgspec.structs.replace(make_state(before, NOON, LIMITS), open_loops=())
    assert state_document.adopt_state(before, edited, NOON) is None
    assert len(make_state(before, NOON, LIMITS).open_loops) == 2


def test_an_edit_adds_rewords_and_resolves():
    """New loops, new words, explicit resolutions, numbers and unknown fields are taken over."""
    before = after(
        events.LoopAdded(ts=NOON, id="one", text="First"),
        events.LoopAdded(ts=NOON, id="two", text="Second"),
        events.LoopAdded(ts=NOON, id="three", text="Third"),
    )
    edited = State(
        "a",
        open_loops=(
            OpenLoop("one", "First, reworded", "2026-03-01"),
            OpenLoop("four", "Fourth", "2026-02-01", extra={"owner": "ann"}),
        ),
        resolved=(Resolution("two", "Done by hand", "2026-03-01"),),
        numbers={"revenue": "$1,000"},
        extra={"mood": ["calm"]},
    )
    shown = make_state(adopted(before, edited, NOON + DAY), NOON + DAY, LIMITS)
    assert [(loop.id, loop.text, loop.added) for loop in shown.open_loops] == [
        ("four", "Fourth", "2026-02-01"),
        ("one", "First, reworded", "2026-03-01"),
        ("three", "Third", "2026-03-01"),
    ]
    assert shown.open_loops[0].extra == {"owner": "ann"}
    assert shown.open_loops[0].stale
    assert [(item.id, item.reason) for item in shown.resolved] == [("two", "Done by hand")]
    assert shown.numbers == {"revenue": "$1,000"}
    assert shown.extra == {"mood": ["calm"]}


def test_an_edit_that_resolves_an_unknown_loop_is_kept():
    """A loop that another tool had resolved before is remembered."""
    edited = State("a", resolved=(Resolution("old", "Done before", "2026-02-27"),))
    projection = adopted(Projection("a"), edited, NOON)
    assert [item.id for item in make_state(projection, NOON, LIMITS).resolved] == ["old"]
    assert state_document.adopt_state(projection, edited, NOON + DAY) is None


def test_an_edit_that_both_keeps_and_resolves_a_loop_keeps_it():
    """If an edit contradicts itself, the loop is not lost."""
    before = added("one", "First", NOON)
    edited = msgspec.structs.replace(
        make_state(before, NOON, LIMITS), resolved=(Resolution("one", "Done", "2026-03-01"),)
    )
    assert state_document.adopt_state(before, edited, NOON) is None


def test_an_edit_without_words_keeps_the_words_that_stand():
    """A loop that is written back with its id alone does not lose its text."""
    before = added("one", "First", NOON)
    edited = State("a", open_loops=(OpenLoop("one", "", ""),))
    assert state_document.adopt_state(before, edited, NOON) is None
    marked = State("a", open_loops=(OpenLoop("one", "", "", extra={"owner": "ann"}),))
    (loop,) = make_state(adopted(before, marked, NOON), NOON, LIMITS).open_loops
    assert (loop.text, loop.extra) == ("First", {"owner": "ann"})


def test_unknown_fields_of_a_loop_survive_a_new_wording():
    """Fields of another tool stay when the text of a loop changes or it is reopened."""
    edited = State("a", open_loops=(OpenLoop("one", "First", "", extra={"owner": "ann"}),))
    projection = adopted(Projection("a"), edited, NOON)
    projection = added("one", "First, reworded", NOON + DAY, projection)
    assert make_state(projection, NOON, LIMITS).open_loops[0].extra == {"owner": "ann"}
    projection = resolved("one", "Done", NOON + 2 * DAY, projection)
    projection = added("one", "Again", NOON + 3 * DAY, projection)
    assert make_state(projection, NOON, LIMITS).open_loops[0].extra == {"owner": "ann"}


def test_an_edit_may_take_an_unknown_field_out_of_a_loop():
    """Writing a loop without one of its fields removes that field."""
    edited = State("a", open_loops=(OpenLoop("one", "First", "", extra={"owner": "ann"}),))
    projection = adopted(Projection("a"), edited, NOON)
    bare = State("a", open_loops=(OpenLoop("one", "First", ""),))
    projection = adopted(projection, bare, NOON + DAY)
    assert make_state(projection, NOON, LIMITS).open_loops[0].extra == {}


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (1, 1.0), ([0], [False])])
def test_an_edit_that_only_changes_a_type_is_taken_over(old, new):
    """Values that Python calls equal, but JSON writes differently, are different."""
    first = State(
        "a", open_loops=(OpenLoop("one", "First", "", extra={"x": old}),), extra={"y": old}
    )
    second = State(
        "a", open_loops=(OpenLoop("one", "First", "", extra={"x": new}),), extra={"y": new}
    )
    projection = adopted(Projection("a"), first, NOON)
    shown = make_state(adopted(projection, second, NOON + DAY), NOON + DAY, LIMITS)
    assert repr(shown.open_loops[0].extra["x"]) == repr(new)
    assert repr(shown.extra["y"]) == repr(new)


def test_an_edit_counts_although_the_clock_was_set_back():
    """Numbers and fields that were last said in the future can still be changed."""
    first = State("a", numbers={"n": "1"}, extra={"x": 1})
    projection = adopted(Projection("a"), first, NOON + 30 * DAY)
    second = State("a", numbers={"n": "2"}, extra={"x": 2})
    projection = adopted(projection, second, NOON)
    shown = make_state(projection, NOON, LIMITS)
    assert (shown.numbers, shown.extra) == ({"n": "2"}, {"x": 2})
    assert state_document.adopt_state(projection, second, NOON) is None


def test_last_active_is_taken_over_only_when_it_is_later():
    """An edit can move the last sign of life forward, never back."""
    before = after(events.Heartbeat(ts=NOON))
    earlier = State("a", last_active=NOON - DAY)
    assert state_document.adopt_state(before, earlier, NOON) is None
    later = adopted(before, State("a", last_active=NOON + DAY), NOON)
    assert later.last_active == NOON + DAY


identities = st.sampled_from(["a", "b", "c", "d", "has space", "ü"])
words = st.sampled_from(["First", "Second", "Third", "第四"])
days = st.sampled_from(["2026-01-01", "2026-02-27", "2026-03-05", "soon"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)
extras = st.dictionaries(st.sampled_from(["owner", "weight", "tags"]), json_values, max_size=2)
moments = st.integers(-40, 40).map(lambda days: NOON + days * DAY)


@st.composite
def edits(draw, agent: str = "a") -> State:
    names = draw(st.lists(identities, unique=True, max_size=5))
    cut = draw(st.integers(0, len(names)))
    return State(
        agent,
        open_loops=tuple(
            OpenLoop(name, draw(words), draw(days), extra=draw(extras)) for name in names[:cut]
        ),
        resolved=tuple(Resolution(name, draw(words), "", draw(extras)) for name in names[cut:]),
        numbers=draw(st.dictionaries(st.sampled_from("xyz"), st.text(max_size=4), max_size=3)),
        extra=draw(st.dictionaries(st.sampled_from("pqr"), json_values, max_size=3)),
        last_active=draw(st.none() | moments),
    )


@given(st.lists(st.tuples(edits(), moments), max_size=4), edits(), moments)
def test_an_edit_is_reproduced_by_the_state_that_follows(earlier, edited, now):
    """Adopted, folded and shown, everything in the edit is there, whatever was there before."""
    projection = Projection("a")
    for one, ts in earlier:
        event = state_document.adopt_state(projection, one, ts)
        projection = fold_events(projection, [event] if event else [])
    event = state_document.adopt_state(projection, edited, now)
    before, projection = projection, fold_events(projection, [event] if event else [])
    shown = make_state(projection, now, LIMITS)
    open_now = {loop.id: loop for loop in shown.open_loops}
    for loop in edited.open_loops:
        assert (open_now[loop.id].text, open_now[loop.id].extra) == (loop.text, loop.extra)
    for item in edited.resolved:
        assert not projection.loops[item.id].is_open
    left_out = {name for name, loop in before.loops.items() if loop.is_open}
    assert left_out - {item.id for item in edited.resolved} <= open_now.keys()
    assert edited.numbers.items() <= shown.numbers.items()
    assert all(shown.extra[key] == value for key, value in edited.extra.items())
    if edited.last_active:
        assert shown.last_active is not None
        assert shown.last_active >= edited.last_active
    assert state_document.adopt_state(projection, edited, now) is None


@given(st.lists(st.tuples(edits(), moments), max_size=4), moments)
def test_an_unedited_state_is_nothing_to_adopt(earlier, now):
    """Our own text makes no event, even after it went through the file."""
    projection = Projection("a")
    for one, ts in earlier:
        event = state_document.adopt_state(projection, one, ts)
        projection = fold_events(projection, [event] if event else [])
    shown = make_state(projection, now, LIMITS)
    assert state_document.adopt_state(projection, shown, now) is None
    assert state_document.adopt_state(projection, states.parse(states.render(shown)), now) is None
