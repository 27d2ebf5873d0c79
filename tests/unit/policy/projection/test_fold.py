"""The fold: the same facts give the same picture, in any order and any number of times."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.documents.state import OpenLoop, Resolution
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.state_document import make_state
from rekindle.policy.settings.runtime_settings import LoopSettings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EMPTY = Projection("a")

# Few moments, ids and words, so that equal instants and contradictions are common.
moments = st.integers(0, 4).map(lambda seconds: NOON + timedelta(seconds=seconds))
identities = st.sampled_from(["tax", "rent", "cat"])
words = st.sampled_from(["One", "Two", "三"])
values = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "y"])
extras = st.dictionaries(st.sampled_from(["p", "q"]), values, max_size=2)
dates = st.sampled_from(["", "2026-01-01", "2026-02-02"])
listed_loops = st.builds(OpenLoop, identities, words, dates, st.just(value=False), extras)
resolutions = st.builds(Resolution, identities, words, st.just(""), extras)
committed = {
    "ts": moments,
    "sha256": st.sampled_from(["aa", "bb"]),
    "path": st.just("memories/archive/x.md"),
    "by": st.sampled_from(["agent", "person"]),
    "tokens": st.integers(0, 9),
    "headline": words,
}
launch = {
    "ts": moments,
    "launch": st.sampled_from(["l1", "l2"]),
    "cycle": st.just(1),
    "session": st.just("s"),
}
facts = st.one_of(
    st.builds(
        events.ProposalMade,
        ts=moments,
        about=st.sampled_from(["resolution", "decision", "failed approach", "question"]),
        text=words,
        id=identities,
        by=st.sampled_from(["a", "b"]),
    ),
    st.builds(events.AgentCreated, ts=moments, agent=st.just("a")),
    st.builds(events.OwnerChanged, ts=moments, host=st.just("h"), previous=st.just("")),
    st.builds(events.Heartbeat, ts=moments, session=words, visitor=st.booleans()),
    st.builds(
        events.SessionStarted,
        ts=moments,
        session=words,
        harness=st.just("h"),
        process=words,
        launch=st.sampled_from(["", "l1"]),
        visitor=st.booleans(),
    ),
    st.builds(events.SessionEnded, ts=moments, session=words, visitor=st.booleans()),
    st.builds(events.SessionLost, ts=moments, session=words),
    st.builds(
        events.BriefMade,
        ts=moments,
        morning=st.sampled_from(["2026-03-01", "2026-03-02"]),
        closes=st.booleans(),
        covered=st.dictionaries(
            words,
            st.builds(events.BriefedPosition, st.integers(0, 2), st.integers(0, 2), words),
            max_size=2,
        ),
        failed=st.integers(0, 2),
        claimed=st.dictionaries(identities, words, max_size=1),
        numbers=st.dictionaries(words, words, max_size=1),
        last_active=st.none() | moments,
        resolved=st.integers(0, 2),
    ),
    st.builds(events.PromptSubmitted, ts=moments, session=words, text=words),
    st.builds(events.PrimerGiven, ts=moments, session=words, source=words, characters=st.just(1)),
    st.builds(events.CycleStarted, ts=moments, cycle=st.integers(1, 3)),
    st.builds(events.CycleEnded, ts=moments, cycle=st.integers(1, 3)),
    st.builds(
        events.LaunchStarted,
        **launch,
        harness=st.just("h"),
        boot=words,
    ),
    st.builds(
        events.LaunchEnded,
        **launch,
        exit=st.sampled_from(["clean", "crash"]),
        words=words,
        resets_at=st.none() | st.integers(0, 9),
        seconds=st.sampled_from([0.0, 700.0]),
        run_tokens=st.integers(0, 9),
        unpriced=st.integers(0, 2),
    ),
    st.builds(
        events.CallRefused,
        ts=moments,
        launch=identities,
        cycle=st.integers(1, 3),
        tool=words,
        of_run=st.integers(1, 9),
    ),
    st.builds(events.HostRefused, ts=moments, launch=identities, host=words),
    st.builds(events.DesiredSet, ts=moments, desired=st.sampled_from(["running", "stopped"])),
    st.builds(events.RestartRequested, ts=moments, fresh=st.booleans()),
    st.builds(
        events.QuestionAsked,
        ts=moments,
        question=identities,
        number=st.integers(1, 2),
        about=words,
        choices=st.just(("retry", "stop")),
        default=st.just("stop"),
    ),
    st.builds(
        events.QuestionAnswered,
        ts=moments,
        question=identities,
        effect=st.sampled_from(["restart", "continue", "stop", "note"]),
        text=words,
        budget=st.dictionaries(st.just("usd"), st.sampled_from([1.0, 2.0]), max_size=1),
        refused=st.sampled_from(["", "it was answered"]),
    ),
    st.builds(events.RunStarted, ts=moments),
    st.builds(events.RunEnded, ts=moments, why=words),
    st.builds(events.SafeModeEntered, ts=moments, why=words),
    st.builds(events.WaitStarted, ts=moments, why=words, until=moments),
    st.builds(events.HangDetected, ts=moments, launch=st.just("l1"), words=words),
    st.builds(
        events.SummaryMade,
        ts=moments,
        document=st.just("relay"),
        how=st.just("headless"),
        run_usd=st.none() | st.just(1.0),
        run_tokens=st.none() | st.integers(0, 9),
        unpriced=st.integers(0, 3),
    ),
    st.builds(
        events.ReviewMade,
        ts=moments,
        cycle=st.integers(1, 3),
        verdict=st.sampled_from(["passed", "failed"]),
        words=words,
        run_usd=st.just(1.0),
        run_tokens=st.integers(0, 9),
    ),
    st.builds(
        events.WindowMeasured,
        ts=moments,
        launch=st.just("l1"),
        tokens=st.integers(0, 9),
        window=st.none() | st.integers(1, 9),
    ),
    st.builds(
        events.SpendRecorded,
        ts=moments,
        launch=st.just("l1"),
        tokens=st.integers(0, 9),
        usd=st.sampled_from([0.0, 1.5]),
        unpriced=st.integers(0, 2),
    ),
    st.builds(
        events.LoopAdded,
        ts=moments,
        id=identities,
        text=words,
        added=dates,
        by=st.sampled_from(["", "a"]),
    ),
    st.builds(events.LoopResolved, ts=moments, id=identities, reason=words),
    st.builds(
        events.StateAdopted,
        ts=moments,
        open_loops=st.lists(listed_loops, max_size=2).map(tuple),
        resolved=st.lists(resolutions, max_size=2).map(tuple),
        numbers=st.dictionaries(st.sampled_from(["n", "m"]), words, max_size=2),
        extra=extras,
        last_active=st.none() | moments,
    ),
    st.builds(events.RelayProposed, ts=moments, text=words, by=st.just("agent")),
    st.builds(events.RelayCommitted, **committed, trimmed=words, over_cap=st.booleans()),
    st.builds(events.CheckpointCommitted, **committed),
    st.builds(events.BriefCommitted, **committed),
    st.builds(
        events.DocumentRejected,
        ts=moments,
        document=st.just("relay"),
        path=st.just("p"),
        reason=words,
    ),
    st.builds(events.InboxRejected, ts=moments, bytes=st.integers(0, 9), reason=words),
    st.builds(UnknownEvent, kind=st.just("later.kind"), ts=moments),
)


@st.composite
def histories(draw) -> list[AnyEvent | UnknownEvent]:
    """Facts of several sources, each with its place in the log and behind its inbox record."""
    sources = draw(st.lists(st.lists(facts, max_size=8), min_size=1, max_size=3))
    numbered = []
    for number, source in enumerate(sources):
        for place, fact in enumerate(source, 1):
            at = draw(st.sampled_from(["", f"segment-{number}:{place * 10}"]))
            numbered.append((fact, at))
    order = draw(st.permutations(range(1, len(numbered) + 1)))
    gens = st.integers(1, 3)
    return [
        msgspec.structs.replace(fact, seq=seq, gen=draw(gens), at=at)
        for (fact, at), seq in zip(numbered, order, strict=True)
    ]


@given(histories(), st.data())
def test_neither_order_nor_repetition_changes_the_result(history, data):
    """Sources interleaved at random, with some facts delivered twice, add up to the same."""
    again = data.draw(st.lists(st.sampled_from(history))) if history else []
    shuffled = data.draw(st.permutations([*history, *again]))
    expected = fold_events(EMPTY, history)
    found = fold_events(EMPTY, shuffled)
    assert found == expected
    ours = make_state(expected, NOON, LoopSettings())
    assert msgspec.json.encode(make_state(found, NOON, LoopSettings()), order="sorted") == (
        msgspec.json.encode(ours, order="sorted")
    )


@given(histories())
def test_folding_everything_again_changes_nothing(history):
    """A fold that is run again after a crash finds what it left."""
    once = fold_events(EMPTY, history)
    assert fold_events(once, history) == once


@given(histories(), st.integers(0, 24))
def test_a_history_may_be_folded_in_two_parts(history, cut):
    """A snapshot and the tail behind it are as good as the whole log."""
    assert fold_events(fold_events(EMPTY, history[:cut]), history[cut:]) == fold_events(
        EMPTY, history
    )


@given(histories(), histories())
def test_what_was_folded_is_not_changed_by_folding_on(first, second):
    """A projection is a value: folding more makes another one."""
    before = fold_events(EMPTY, first)
    kept = msgspec.json.encode(before)
    fold_events(before, second)
    assert msgspec.json.encode(before) == kept


@given(histories())
def test_a_projection_survives_its_snapshot(history):
    """Written as JSON and read back it is equal, and folds further events in the same way."""
    before = fold_events(EMPTY, history)
    read = msgspec.json.decode(msgspec.json.encode(before), type=Projection)
    assert read == before
    assert fold_events(read, history) == before


@given(histories())
def test_the_last_sign_of_life_is_the_latest_one(history):
    """`last_active` is the maximum over our sessions' signs and adopted edits, of nothing else."""
    kinds = (events.Heartbeat, events.SessionStarted, events.PromptSubmitted)
    signs = [one.ts for one in history if isinstance(one, kinds) and not one.visitor]
    signs += [
        one.last_active
        for one in history
        if isinstance(one, events.StateAdopted | events.BriefMade) and one.last_active
    ]
    assert fold_events(EMPTY, history).last_active == max(signs, default=None)


@given(histories())
def test_of_each_document_the_commit_with_the_highest_place_stands(history):
    """Documents go by their place in the log, whatever the clock said."""
    expected: dict[str, int] = {}
    for one in history:
        if isinstance(one, events.DocumentCommitted):
            expected[one.document] = max(expected.get(one.document, 0), one.seq)
    by_seq = {one.seq: one for one in history}
    found = fold_events(EMPTY, history).documents
    assert {name: standing.seq for name, standing in found.items()} == expected
    for standing in found.values():
        event = by_seq[standing.seq]
        assert isinstance(event, events.DocumentCommitted)
        assert (standing.sha256, standing.ts, standing.headline, standing.tokens) == (
            event.sha256,
            event.ts,
            event.headline,
            event.tokens,
        )


@given(histories())
def test_counters_and_cursors_only_go_up(history):
    """Place, generation and the reach into each inbox segment are maxima."""
    cursors: dict[str, int] = {}
    for one in history:
        if one.at:
            segment, _, offset = one.at.rpartition(":")
            cursors[segment] = max(cursors.get(segment, 0), int(offset))
    found = fold_events(EMPTY, history)
    assert found.cursors == cursors
    assert found.seq == max((one.seq for one in history), default=0)
    assert found.gen == max((one.gen for one in history), default=0)


def test_a_segment_may_have_a_colon_in_its_name():
    """The offset is after the last colon."""
    found = fold_events(EMPTY, [events.Heartbeat(ts=NOON, at="a:b:7")])
    assert found.cursors == {"a:b": 7}


@given(histories(), moments)
def test_a_kind_of_a_later_version_changes_only_the_bookkeeping(history, ts):
    """An unknown event leaves loops, documents and the sign of life alone."""
    before = fold_events(EMPTY, history)
    strange = UnknownEvent("later.kind", ts, seq=before.seq + 1, gen=before.gen + 1, at="s:99")
    assert fold_events(before, [strange]) == msgspec.structs.replace(
        before, seq=strange.seq, gen=strange.gen, cursors={**before.cursors, "s": 99}
    )


@pytest.mark.parametrize("swap", [False, True])
def test_at_the_same_instant_content_decides_and_not_arrival(swap):
    """Two edits in one instant leave the same number behind, whichever comes first."""
    pair = [
        events.StateAdopted(ts=NOON, numbers={"n": "1"}, extra={"x": True}),
        events.StateAdopted(ts=NOON, numbers={"n": "2"}, extra={"x": 1}),
    ]
    found = fold_events(EMPTY, reversed(pair) if swap else pair)
    assert found.numbers["n"].value == "2"
    assert found.extra["x"].value is True


def test_marks_that_only_python_calls_equal_are_two():
    """1 and true are written differently, so the result must not depend on the order of arrival."""
    pair = [
        events.StateAdopted(ts=NOON, open_loops=(OpenLoop("tax", "One", "", extra={"p": value}),))
        for value in (1, True)
    ]
    one, other = fold_events(EMPTY, pair), fold_events(EMPTY, reversed(pair))
    assert len(one.loops["tax"].marks) == 2
    assert msgspec.json.encode(one) == msgspec.json.encode(other)


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "resolve"]),
        identities,
        words,
        st.integers(-1_000_000, 1_000_000),  # the clock, in seconds from noon
    ),
    max_size=30,
)


@given(operations)
def test_the_last_acknowledged_command_on_a_loop_counts(asked):
    """With a clock that jumps back and forth no loop, no resolution and no mark is lost."""
    projection = EMPTY
    last: dict[str, tuple[str, str]] = {}
    acknowledged: list[tuple[str, AnyEvent]] = []
    for verb, identity, text, seconds in asked:
        now = NOON + timedelta(seconds=seconds)
        event: events.LoopAdded | events.LoopResolved | None
        if verb == "add":
            event = open_loops.propose_loop(projection.loops, identity, text, now)
        elif identity in projection.loops:
            event = open_loops.resolve_loop(projection.loops, identity, text, now)
        else:
            continue
        if event is None:
            continue
        projection = fold_events(projection, [event])
        acknowledged.append((identity, event))
        last[identity] = (verb, text)
    shown = make_state(projection, NOON - timedelta(days=30), LoopSettings())
    assert {loop.id: loop.text for loop in shown.open_loops} == {
        identity: text for identity, (verb, text) in last.items() if verb == "add"
    }
    assert {item.id: item.reason for item in shown.resolved} == {
        identity: text for identity, (verb, text) in last.items() if verb == "resolve"
    }
    history = Counter(
        (identity, mark.ts, mark.text, mark.closes)
        for identity, loop in projection.loops.items()
        for mark in loop.marks
    )
    assert history == Counter(
        (
            identity,
            event.ts,
            event.text if isinstance(event, events.LoopAdded) else event.reason,
            isinstance(event, events.LoopResolved),
        )
        for identity, event in acknowledged
    )
    for loop in projection.loops.values():
        assert all(one.ts < two.ts for one, two in pairwise(loop.marks))


def test_a_report_by_a_clock_that_was_set_back_counts():
    """Otherwise a reporting session would pass for silent until the clock has caught up."""
    first, later = (
        events.Heartbeat(ts=datetime(2026, 4, 9, hour, tzinfo=UTC), session="one", seq=seq)
        for hour, seq in ((12, 5), (9, 6))
    )
    for order in ((first, later), (later, first)):
        found = fold_events(EMPTY, order)
        assert (found.heard.seq, found.heard.at) == (6, later.ts.timestamp())
        assert found.last_active == first.ts
