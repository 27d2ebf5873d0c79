"""Open loops: what opens, ages, rewords, closes and reopens one."""

from datetime import UTC, date, datetime, timedelta, timezone

import msgspec
import pytest

from rekindle.documents import events
from rekindle.errors import NotFoundError, UsageError
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.open_loops import LoopMark
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.state_document import make_state
from rekindle.policy.settings.runtime_settings import LoopSettings
from unit.policy.projection.loop_steps import DAY, LIMITS, NOON, added, after, resolved


@pytest.mark.parametrize(
    ("age", "expected"), [(0, False), (1, False), (13, False), (14, False), (15, True), (400, True)]
)
def test_a_loop_is_stale_once_it_is_older_than_fourteen_days(age, expected):
    """Fourteen days old is not stale yet, fifteen is."""
    now = NOON + age * DAY
    (loop,) = make_state(added("tax", "File it", NOON), now, LIMITS).open_loops
    assert loop.stale is expected


def test_age_is_counted_in_days_and_not_in_hours():
    """Added late in the evening, seen early in the morning: the dates decide."""
    late = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
    early = datetime(2026, 3, 16, 0, 1, tzinfo=UTC)
    assert make_state(added("tax", "File it", late), early, LIMITS).open_loops[0].stale
    assert not open_loops.is_stale("2026-03-01", date(2026, 3, 15), 14)


@pytest.mark.parametrize(
    "written", ["2027-01-01", "9999-12-31", "", "yesterday", "2026-02-30", "01.02.2020", "¼"]
)
def test_a_date_that_lies_ahead_or_cannot_be_read_is_not_stale(written):
    """A loop is never hurried along by a date that says nothing about its age."""
    assert not open_loops.is_stale(written, NOON.date(), 14)


def test_the_day_of_a_loop_is_that_of_utc():
    """Whatever zone a mark was stamped in, its day is counted in one."""
    ahead = timezone(timedelta(hours=13))
    ts = datetime(2026, 3, 2, 1, tzinfo=ahead)
    opened = added("tax", "File it", ts)
    assert opened.loops["tax"].added == "2026-03-01"
    closed = resolved("tax", "Filed", ts + timedelta(hours=1), opened)
    assert closed.loops["tax"].to_resolution().resolved_date == "2026-03-01"


def test_a_resolved_loop_is_shown_for_seven_days_and_remembered_for_ever():
    """It leaves state.json after a week, and a later opening still knows of it."""
    projection = resolved("tax", "Filed", NOON, added("tax", "File it", NOON - DAY))
    week = NOON + 7 * DAY
    (item,) = make_state(projection, week, LIMITS).resolved
    assert (item.id, item.reason, item.resolved_date) == ("tax", "Filed", "2026-03-01")
    moment = timedelta(microseconds=1)
    assert make_state(projection, week + moment, LIMITS).resolved == ()
    a_year_on = NOON + 365 * DAY
    again = added("tax", "File this year's", a_year_on, projection)
    loop = again.loops["tax"]
    assert loop.is_open
    assert loop.times_reopened == 1
    assert loop.added == a_year_on.date().isoformat()
    assert [mark.text for mark in loop.marks] == ["File it", "Filed", "File this year's"]
    assert not make_state(again, a_year_on + 14 * DAY, LIMITS).open_loops[0].stale


@pytest.mark.parametrize("days", [1, 7, 1_000_000, 10**15])
def test_any_number_of_days_can_be_kept(days):
    """A number of days that reaches back before the calendar keeps everything."""
    projection = resolved("tax", "Filed", NOON, added("tax", "File it", NOON - DAY))
    assert make_state(projection, NOON, LoopSettings(keep_resolved_days=days)).resolved


def test_resolved_loops_stand_newest_first_and_open_ones_oldest_first():
    """Readers see what they need first."""
    projection = Projection("a")
    for number, name in enumerate(("one", "two", "three")):
        projection = added(name, "Do it", NOON + number * DAY, projection)
    shown = make_state(projection, NOON, LIMITS)
    assert [loop.id for loop in shown.open_loops] == ["one", "two", "three"]
    for number, name in enumerate(("one", "two", "three")):
        projection = resolved(name, "Done", NOON + (5 + number) * DAY, projection)
    shown = make_state(projection, NOON + 8 * DAY, LIMITS)
    assert [item.id for item in shown.resolved] == ["three", "two", "one"]


def test_rewording_keeps_the_id_and_the_day_of_the_first_wording():
    """A new text for an open loop does not make it young."""
    projection = added("tax", "File it", NOON)
    projection = added("tax", "File it by post", NOON + 10 * DAY, projection)
    (loop,) = make_state(projection, NOON + 15 * DAY, LIMITS).open_loops
    assert (loop.id, loop.text, loop.added) == ("tax", "File it by post", "2026-03-01")
    assert loop.stale
    assert projection.loops["tax"].times_reopened == 0


def test_adding_what_stands_already_changes_nothing():
    """The same text for the same open loop makes no event, however it is wrapped."""
    projection = added("tax", "File it", NOON)
    assert open_loops.propose_loop(projection.loops, "tax", "File\n  it ", NOON + DAY) is None


def test_resolving_twice_changes_nothing():
    """A second resolution is neither an event nor an error."""
    projection = resolved("tax", "Filed", NOON, added("tax", "File it", NOON - DAY))
    assert open_loops.resolve_loop(projection.loops, "tax", "Filed again", NOON + DAY) is None


def test_an_unknown_id_names_the_nearest_one():
    """A mistyped id is refused with the id that was probably meant."""
    known = added("file-the-tax", "File it", NOON).loops
    with pytest.raises(NotFoundError, match="file-teh-tax") as refused:
        open_loops.resolve_loop(known, "file-teh-tax", "Filed", NOON)
    assert refused.value.hint == "did you mean `file-the-tax`?"
    with pytest.raises(NotFoundError) as refused:
        open_loops.resolve_loop(known, "zzz", "Filed", NOON)
    assert refused.value.hint == "list them with `rekindle loops`"


@pytest.mark.parametrize("empty", ["", "  ", "\n\t", "\x00\x1f", "\u2028"])
def test_a_loop_needs_a_text_and_a_resolution_needs_a_reason(empty):
    """Blank and unprintable words are refused, with a hint."""
    known = added("tax", "File it", NOON).loops
    with pytest.raises(UsageError, match="needs a text") as refused:
        open_loops.propose_loop({}, "tax", empty, NOON)
    assert refused.value.hint
    with pytest.raises(UsageError, match="needs a reason") as refused:
        open_loops.resolve_loop(known, "tax", empty, NOON)
    assert refused.value.hint


@pytest.mark.parametrize("identity", ["", "has space", "../up", "-dash", "x" * 65, "ü"])
def test_an_id_that_cannot_be_typed_safely_is_refused(identity):
    """An id is short and plain."""
    with pytest.raises(UsageError, match="is not a valid loop id"):
        open_loops.propose_loop({}, identity, "Do it", NOON)


def test_a_clock_that_was_set_back_does_not_undo_what_was_said_last():
    """A resolution and a reopening count although the marks before them lie in the future."""
    projection = added("tax", "File it", NOON + 30 * DAY)
    projection = resolved("tax", "Filed", NOON, projection)
    assert not projection.loops["tax"].is_open
    projection = added("tax", "Once more", NOON - 30 * DAY, projection)
    assert projection.loops["tax"].is_open
    assert projection.loops["tax"].text == "Once more"


def test_at_the_same_instant_an_opening_counts_last():
    """Two writers at one instant leave a loop open rather than lose it."""
    opening = events.LoopAdded(ts=NOON, id="tax", text="File it")
    closing = events.LoopResolved(ts=NOON, id="tax", reason="Filed")
    assert after(opening, closing) == after(closing, opening)
    assert after(closing, opening).loops["tax"].is_open


def test_a_resolution_that_arrives_alone_is_kept():
    """The record of an opening may arrive later; until then the loop is closed."""
    projection = after(events.LoopResolved(ts=NOON, id="tax", reason="Filed"))
    assert make_state(projection, NOON, LIMITS).resolved[0].reason == "Filed"
    assert projection.loops["tax"].text == ""


def test_a_mark_is_merged_once():
    """The same mark twice is one mark."""
    known: dict[str, open_loops.Loop] = {}
    mark = LoopMark(NOON, "File it")
    open_loops.add_mark(known, "tax", mark)
    open_loops.add_mark(known, "tax", msgspec.structs.replace(mark))
    assert known["tax"].marks == (mark,)
