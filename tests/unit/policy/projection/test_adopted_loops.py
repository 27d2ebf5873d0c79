"""Edits of state.json: which marks they add to the loops, and how the marks are sorted."""

from datetime import UTC, date, datetime, timedelta

import pytest

from rekindle.documents import events
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.open_loops import Loop, LoopMark, adopt_loops
from rekindle.policy.settings.runtime_settings import LoopSettings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
OPEN = Loop("tax", (LoopMark(NOON, "File it", added="2026-02-27", extra={"p": 1}),))
CLOSED = Loop("tax", (LoopMark(NOON - DAY, "File it"), LoopMark(NOON, "Filed", closes=True)))
NOTED = Loop("tax", (LoopMark(NOON, "Filed", closes=True, extra={"p": 1}),))
NOW = NOON + DAY


def adopt(loop, *items, now=NOW):
    """Return the event for a file with these loops and resolutions."""
    return adopt_loops(
        {loop.id: loop} if loop else {},
        State(
            "a",
            open_loops=tuple(item for item in items if isinstance(item, OpenLoop)),
            resolved=tuple(item for item in items if isinstance(item, Resolution)),
        ),
        now,
    )


def correction(text, **fields):
    return events.LoopCorrection(NOON + TICK, "tax", text, **fields)


@pytest.mark.parametrize(
    ("known", "edited", "opened", "corrections"),
    [
        (None, ("File it", "", {}), ("File it", "", {}), None),
        (None, ("", "", {}), ("", "", {}), None),
        (OPEN, ("File it", "2026-02-27", {"p": 1}), None, None),
        (OPEN, ("", "", {"p": 1}), None, None),
        (OPEN, ("", "2026-02-27", {"p": 1}), None, None),
        (OPEN, ("File", "", {"p": 1}), None, {"text": "File", "extra": {"p": 1}}),
        (OPEN, ("File it", "", {}), None, {"text": "File it", "extra": {}}),
        (OPEN, ("File it", "", {"p": True}), None, {"text": "File it", "extra": {"p": True}}),
        (
            OPEN,
            ("File it", "2026-02-28", {"p": 1}),
            None,
            {"text": "File it", "added": "2026-02-28", "extra": {"p": 1}},
        ),
        (CLOSED, ("Again", "", {}), ("Again", "", {}), None),
        (CLOSED, ("", "", {}), ("File it", "", {}), None),
    ],
)
def test_a_loop_that_the_file_lists_as_open(known, edited, opened, corrections):
    """A new or closed loop is opened, a change of an open one corrects it, the rest is kept."""
    text, added, extra = edited
    event = adopt(known, OpenLoop("tax", text, added, extra=extra))
    loops = (OpenLoop("tax", opened[0], opened[1], extra=opened[2]),) if opened else ()
    assert event.open_loops == loops
    assert event.corrections == ((correction(**corrections),) if corrections else ())
    assert event.resolved == ()


@pytest.mark.parametrize(
    ("known", "reason", "extra", "resolves", "corrects"),
    [
        (None, "Filed", {}, True, False),
        (OPEN, "Filed", {}, True, False),
        (CLOSED, "Filed", {}, False, False),
        (CLOSED, "Filed by post", {}, False, True),
        (CLOSED, "Filed", {"p": 1}, False, True),
        (NOTED, "Filed", {"p": 1}, False, False),
        (NOTED, "Filed", {"p": 1.0}, False, True),
    ],
)
def test_a_loop_that_the_file_lists_as_resolved(known, reason, extra, resolves, corrects):
    """An unknown or open loop is closed, and another reason corrects a closed one."""
    item = Resolution("tax", reason, "2026-03-01", extra)
    event = adopt(known, item)
    assert event.open_loops == ()
    assert event.resolved == ((item,) if resolves else ())
    expected = (correction(reason, closes=True, extra=extra),) if corrects else ()
    assert event.corrections == expected


def test_a_loop_in_both_lists_is_open():
    """No edit loses a loop."""
    item = Resolution("tax", "Filed", "2026-03-01")
    event = adopt(None, OpenLoop("tax", "File it", ""), item)
    assert ([loop.id for loop in event.open_loops], event.resolved) == (["tax"], ())
    other = Resolution("rent", "Paid", "2026-03-01")
    assert adopt(None, OpenLoop("tax", "File it", ""), item, other).resolved == (other,)


@pytest.mark.parametrize(
    ("known", "item", "expected"),
    [
        (OPEN, Resolution("tax", "Filed", ""), NOON + TICK),
        (CLOSED, OpenLoop("tax", "Again", ""), NOON + TICK),
        (OPEN, OpenLoop("tax", "Reworded", ""), NOON - DAY),
        (CLOSED, Resolution("tax", "Other reason", ""), NOON - DAY),
        (OPEN, OpenLoop("rent", "Pay it", ""), NOON - DAY),
    ],
)
def test_an_edit_is_later_than_the_loops_that_it_opens_or_closes(known, item, expected):
    """A clock that was set back cannot hide the edit behind an earlier mark."""
    assert adopt(known, item, now=NOON - DAY).ts == expected


def test_an_edit_is_later_than_every_correction():
    """The newest correction has the last word, so a later edit needs a later time."""
    marks = (LoopMark(NOON - DAY, "File it"), LoopMark(NOON, "Post it", corrects=NOON + DAY))
    event = adopt(Loop("rent", marks), OpenLoop("tax", "File it", ""), now=NOON)
    assert event.ts == NOON + DAY + TICK


def test_a_correction_is_placed_after_what_it_corrects():
    """Not after another correction: the last opening or closing counts."""
    marks = (LoopMark(NOON, "File it"), LoopMark(NOON + TICK, "Post it", corrects=NOON + DAY))
    (found,) = adopt(Loop("tax", marks), OpenLoop("tax", "Send it", "")).corrections
    assert found == events.LoopCorrection(NOON + TICK, "tax", "Send it", extra={})


MARKS = [
    LoopMark(NOON - DAY, "z"),
    LoopMark(NOON, "c", corrects=NOON + TICK),
    LoopMark(NOON, "b", corrects=NOON + DAY),
    LoopMark(NOON, "y", closes=True),
    LoopMark(NOON, "z", closes=True),
    LoopMark(NOON, "a"),
    LoopMark(NOON, "a", extra={"p": 1}),
    LoopMark(NOON, "a", extra={"p": 2}),
    LoopMark(NOON, "a", added="2026-02-27"),
    LoopMark(NOON, "b"),
    LoopMark(NOON + DAY, "a", closes=True),
]
"""In the order of a loop: by time, then corrections, closings and openings."""


@pytest.mark.parametrize("step", [1, 2, 3, 5, 10])
def test_marks_are_sorted_in_whatever_order_they_arrive(step):
    """Each mark is kept once."""
    loops: dict[str, Loop] = {}
    for place in range(2 * len(MARKS)):
        open_loops.add_mark(loops, "tax", MARKS[place * step % len(MARKS)])
    assert loops["tax"].marks == tuple(MARKS)


def opening(days, text="Do", **fields):
    return LoopMark(NOON + days * DAY, text, **fields)


def closing(days):
    return LoopMark(NOON + days * DAY, "Done", closes=True)


@pytest.mark.parametrize(
    ("marks", "text", "added", "opened", "reopened"),
    [
        ([opening(0)], "Do", "2026-03-01", 0, 0),
        ([opening(0), opening(1, "Redo")], "Redo", "2026-03-01", 0, 0),
        ([opening(0), closing(1), opening(2)], "Do", "2026-03-03", 2, 1),
        ([opening(0), closing(1), opening(2, "x"), opening(3, "y")], "y", "2026-03-03", 2, 1),
        ([closing(0), opening(1), closing(2), opening(3)], "Do", "2026-03-04", 3, 2),
        ([opening(0, added="2026-02-01"), opening(1)], "Do", "2026-02-01", 0, 0),
        ([opening(0, added="d1"), opening(1, added="d2")], "Do", "d2", 0, 0),
        ([opening(0, added="d1"), closing(1), opening(2)], "Do", "2026-03-03", 2, 1),
        ([opening(0), closing(1)], "Do", "2026-03-02", 1, 0),
    ],
)
def test_the_text_and_the_day_of_a_loop(marks, text, added, opened, reopened):
    """The newest text counts, and the day of the first opening after the last resolution."""
    loop = Loop("tax", tuple(marks))
    assert (loop.text, loop.added, loop.times_reopened) == (text, added, reopened)
    assert loop.opened_at == NOON + opened * DAY


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ([None], {}),
        ([{"a": 1}], {"a": 1}),
        ([{"a": 1}, None], {"a": 1}),
        ([{"a": 1}, {}], {}),
        ([{"a": 1}, {"b": 2}], {"b": 2}),
    ],
)
def test_the_unknown_fields_of_a_loop(extras, expected):
    """They are kept until a mark gives others."""
    marks = tuple(opening(days, extra=extra) for days, extra in enumerate(extras))
    assert Loop("tax", marks).to_open_loop(date(2026, 3, 2), 14) == OpenLoop(
        "tax", "Do", "2026-03-01", extra=expected
    )
    last = LoopMark(NOON, "Done", closes=True, extra=extras[-1])
    assert Loop("tax", (*marks, last)).to_resolution() == Resolution(
        "tax", "Done", "2026-03-01", extras[-1] or {}
    )


@pytest.mark.parametrize(("now", "expected"), [(0, 1), (1, 1), (2, 2)])
def test_a_time_after_others(now, expected):
    """A clock that is behind is corrected by the smallest step."""
    assert open_loops.stamp_after(NOON + now * TICK, NOON - DAY, NOON) == NOON + expected * TICK
    assert open_loops.stamp_after(NOON) == NOON


def test_the_events_that_resolve_a_loop():
    """A resolution, and an edit of the file that contains one."""
    item = Resolution("tax", "Filed", "2026-03-01")
    closed = events.LoopResolved(ts=NOON, id="tax", reason="Filed")
    edited = events.StateAdopted(ts=NOON, resolved=(item,))
    other = events.StateAdopted(ts=NOON, numbers={"a": "1"})
    added = events.LoopAdded(ts=NOON, id="tax", text="File it")
    assert open_loops.select_resolving_events([added, closed, other, edited]) == [closed, edited]


def test_the_lists_of_loops():
    """Open loops by day and id, resolved ones from the newest, both without the others."""
    loops = {
        name: Loop(name, marks)
        for name, marks in {
            "c": (opening(0),),
            "b": (opening(0),),
            "a": (opening(1),),
            "d": (opening(0), closing(1)),
            "e": (opening(0), closing(2)),
            "f": (opening(0), closing(2)),
        }.items()
    }
    limits = LoopSettings(stale_after_days=1, keep_resolved_days=7)
    shown = open_loops.list_open_loops(loops, NOON + 2 * DAY, limits)
    assert [(loop.id, loop.stale) for loop in shown] == [("b", True), ("c", True), ("a", False)]
    recent = open_loops.list_recently_resolved(loops, NOON + 8 * DAY, limits)
    assert [item.id for item in recent] == ["f", "e", "d"]
    later = open_loops.list_recently_resolved(loops, NOON + 8 * DAY + TICK, limits)
    assert [item.id for item in later] == ["f", "e"]


@pytest.mark.parametrize(
    ("stale", "more", "expected"),
    [
        (False, (), "tax: Do (since 2026-03-01)"),
        (True, (), "tax: Do (since 2026-03-01, stale)"),
        (True, ("", "asked"), "tax: Do (since 2026-03-01, stale, asked)"),
    ],
)
def test_the_line_of_a_loop(stale, more, expected):
    """Its id, its text and its age."""
    loop = OpenLoop("tax", "Do", "2026-03-01", stale)
    assert open_loops.render_loop_line(loop, *more) == expected


def test_reopening_a_loop():
    """An open loop with this text stays as it is; any other is opened, later than its marks."""
    assert open_loops.reopen_loop(OPEN, "File it", NOW) is None
    assert open_loops.reopen_loop(OPEN, "Post it", NOON) == events.LoopAdded(
        ts=NOON + TICK, id="tax", text="Post it"
    )
    assert open_loops.reopen_loop(CLOSED, "File it", NOW) == events.LoopAdded(
        ts=NOW, id="tax", text="File it"
    )
