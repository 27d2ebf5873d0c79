"""A brief is due once a morning, on any day, even after the host was off."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rekindle.documents.events import (
    BriefedPosition,
    BriefMade,
)
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.briefs.brief_schedule import (
    BriefState,
    ClosedMorning,
    DueBrief,
)
from rekindle.policy.projection.sessions import (
    LaunchRecord,
    SessionRecord,
)
from rekindle.policy.settings.runtime_settings import (
    BRIEF_TOLD_DAYS,
    BRIEF_TOLD_KEPT,
    BriefSettings,
)

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = BriefSettings(at="06:30", zone="Europe/Berlin")
ENDING = BriefSettings(at="06:30", on_session_end=True)


def at(text, zone=BERLIN):
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def life(began, ended=None):
    return SessionRecord(
        started=at(began),
        started_seq=1,
        ended=at(ended) if ended else None,
        ended_seq=2 if ended else 0,
    )


def due(now, *, briefed=BriefState(), lives=(), attempts=(), active=None, limits=DAILY):  # noqa: B008 - it is frozen
    return brief_schedule.find_due_brief(
        at(now),
        BERLIN,
        limits,
        briefed,
        lives={f"s{place}": one for place, one in enumerate(lives)},
        attempts={f"l{place}": one for place, one in enumerate(attempts)},
        last_active=at(active) if active else None,
    )


WORKED = {"lives": [life("2026-02-16T20:00")], "active": "2026-02-16T23:00"}
CLOSED = BriefState(
    1, at("2026-02-17T06:31"), morning="2026-02-17", closed=ClosedMorning(1, "2026-02-17")
)


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ("2026-02-17T06:29", None),
        ("2026-02-17T06:30", DueBrief("2026-02-17", closes=True)),
        ("2026-02-17T23:59", DueBrief("2026-02-17", closes=True)),
        ("2026-03-17T12:00", DueBrief("2026-03-17", closes=True)),
    ],
)
def test_it_is_due_from_its_time_on_and_a_month_is_caught_up_once(now, found):
    assert due(now, **WORKED) == found


def test_once_it_is_written_nothing_is_due_until_the_next_morning():
    later = {"lives": [life("2026-02-16T20:00")], "active": "2026-02-17T11:00"}
    assert due("2026-02-17T12:00", briefed=CLOSED, **later) is None
    assert due("2026-02-18T06:30", briefed=CLOSED, **later) == DueBrief("2026-02-18", closes=True)


def test_without_work_nothing_is_due():
    assert due("2026-02-18T07:00") is None
    assert due("2026-02-18T07:00", briefed=CLOSED, **WORKED) is None
    began_after = {"lives": [life("2026-02-18T06:45")], "active": "2026-02-18T06:50"}
    assert due("2026-02-18T07:00", **began_after) is None


def test_a_brief_on_request_does_not_close_the_morning():
    asked = BriefState(1, at("2026-02-16T22:00"), morning="2026-02-17")
    assert due("2026-02-17T06:30", briefed=asked, **WORKED) == DueBrief("2026-02-17", closes=True)


def test_a_launch_is_work_too():
    attempt = LaunchRecord(1, "s", resumes=False, began=at("2026-02-16T20:00"))
    for active in ("2026-02-16T20:01", None):
        found = due("2026-02-17T07:00", attempts=[attempt], active=active)
        assert found == DueBrief("2026-02-17", closes=True)
    assert due("2026-02-17T12:00", briefed=CLOSED, attempts=[attempt]) is None


def test_one_from_the_future_says_nothing_once_the_clock_is_set_back():
    ahead = BriefState(9, at("2031-01-01T06:31"), closed=ClosedMorning(9, "2031-01-01"))
    found = due("2026-02-17T07:00", briefed=ahead, **WORKED)
    assert found == DueBrief("2026-02-17", closes=True)
    now = at("2026-02-17T07:00")
    then = brief_schedule.record_brief(
        ahead, BriefMade(ts=now, seq=12, morning="2026-02-17", closes=True)
    )
    assert then.closed == ClosedMorning(12, "2026-02-17")
    active = {"lives": WORKED["lives"], "active": "2026-02-17T07:10"}
    assert due("2026-02-17T07:15", briefed=then, **active) is None


def test_never_is_never():
    assert due("2026-02-17T12:00", limits=BriefSettings(at="never"), **WORKED) is None


def test_the_end_of_a_session_makes_one_due_where_that_is_wanted():
    ended = {"lives": [life("2026-02-17T08:00", "2026-02-17T09:00")], "active": "2026-02-17T09:00"}
    assert due("2026-02-17T09:01", briefed=CLOSED, **ended) is None
    found = due("2026-02-17T09:01", briefed=CLOSED, limits=ENDING, **ended)
    assert found == DueBrief("2026-02-18", closes=False)
    told = BriefState(
        2, at("2026-02-17T09:01"), morning="2026-02-18", closed=ClosedMorning(1, "2026-02-17")
    )
    assert due("2026-02-17T09:02", briefed=told, limits=ENDING, **ended) is None
    going = {"lives": [life("2026-02-17T08:00")], "active": "2026-02-17T09:00"}
    assert due("2026-02-17T09:01", briefed=CLOSED, limits=ENDING, **going) is None


@pytest.mark.parametrize("hour", ["02:30", "06:30", "00:00", "23:59"])
@pytest.mark.parametrize("month", [3, 10])
def test_every_day_has_one_moment_also_when_the_clocks_are_set(hour, month):
    """Minute by minute over the days around the change: each morning becomes due exactly once."""
    limits = BriefSettings(at=hour)
    now = at(f"2026-{month:02}-20T00:00")
    closed, seen = "", []
    sessions = [life(f"2026-{month:02}-01T00:00")]
    while now < at(f"2026-{month:02}-30T00:00"):
        found = brief_schedule.find_due_brief(
            now,
            BERLIN,
            limits,
            BriefState(1, now - timedelta(minutes=5), closed=ClosedMorning(1, closed)),
            lives=dict(enumerate(sessions)),
            attempts={},
            last_active=now,
        )
        if found:
            seen.append(found.morning)
            closed = found.morning
        now += timedelta(minutes=5)
    assert seen == sorted(set(seen))
    assert len(seen) in {10, 11}
    assert all(one.startswith(f"2026-{month:02}") for one in seen)


@pytest.mark.parametrize(
    ("now", "morning"),
    [
        ("2026-02-17T06:29", "2026-02-17"),
        ("2026-02-17T06:30", "2026-02-18"),
        ("2026-02-17T23:59", "2026-02-18"),
    ],
)
def test_what_is_written_is_for_the_next_morning(now, morning):
    assert brief_schedule.find_next_morning(at(now), "06:30", BERLIN) == morning
    assert brief_schedule.find_next_morning(at(now), "never", BERLIN) >= morning


def test_what_was_told_of_a_transcript_is_what_the_last_brief_told():
    now = at("2026-02-17T06:30")
    first = BriefMade(
        ts=now, seq=3, morning="2026-02-17", covered={"s": BriefedPosition(9, 2)}, closes=True
    )
    second = BriefMade(
        ts=now,
        seq=5,
        morning="2026-02-18",
        covered={"s": BriefedPosition(7, 1), "t": BriefedPosition(1)},
    )
    for order in ((first, second), (second, first), (second, first, second)):
        found = BriefState()
        for event in order:
            found = brief_schedule.record_brief(found, event)
        assert found.covered["s"].covered == BriefedPosition(7, 1)
        assert (found.seq, found.morning) == (5, "2026-02-18")
        assert found.closed == ClosedMorning(3, "2026-02-17")


def test_what_is_begun_after_the_moment_is_for_the_next_morning():
    """This holds even with earlier work, which a brief has reported."""
    friday, monday = life("2026-02-13T09:00", "2026-02-13T18:00"), life("2026-02-16T09:00")
    saturday = BriefState(
        5, at("2026-02-14T06:30"), morning="2026-02-14", closed=ClosedMorning(5, "2026-02-14")
    )
    both = {"lives": [friday, monday], "briefed": saturday, "active": "2026-02-16T09:01"}
    assert due("2026-02-16T09:01", **both) is None
    assert due("2026-02-17T06:30", **both) == DueBrief("2026-02-17", closes=True)
    # One that was killed on Friday did not come back.
    killed = life("2026-02-13T09:00")
    assert due("2026-02-16T09:01", **{**both, "lives": [killed, monday]}) is None


@pytest.mark.parametrize("limits", [DAILY, ENDING])
def test_after_a_brief_in_the_evening_the_first_minute_of_a_day_is_not_a_morning(limits):
    yesterday, today = life("2026-02-16T09:00", "2026-02-16T17:00"), life("2026-02-17T09:00")
    evening = BriefState(5, at("2026-02-16T17:01"), morning="2026-02-17")
    found = due(
        "2026-02-17T09:01",
        briefed=evening,
        lives=[yesterday, today],
        active="2026-02-17T09:01",
        limits=limits,
    )
    assert found is None


def test_who_works_through_the_night_has_worked():
    evening = BriefState(5, at("2026-02-16T22:00"), morning="2026-02-17")
    ended = life("2026-02-16T20:00", "2026-02-17T07:00")
    found = due("2026-02-17T08:00", briefed=evening, lives=[ended], active="2026-02-17T07:00")
    assert found == DueBrief("2026-02-17", closes=True)


def test_a_snapshot_forgets_how_far_old_transcripts_were_told():
    briefed = BriefState()
    for day in (1, 2, 20):
        told = {f"t-{day}": BriefedPosition(at=day)}
        event = BriefMade(ts=at(f"2026-03-{day:02d}T06:30"), seq=day, morning="m", covered=told)
        briefed = brief_schedule.record_brief(briefed, event)
    assert set(briefed.covered) == {"t-1", "t-2", "t-20"}
    assert set(brief_schedule.prune_brief_state(briefed).covered) == {"t-20"}


def test_one_that_failed_does_not_say_up_to_when_was_told():
    first = BriefMade(ts=at("2026-03-01T06:30"), seq=1, morning="a")
    failed = BriefMade(ts=at("2026-03-02T06:30"), seq=2, morning="b", failed=1)
    for order in ((first, failed), (failed, first)):
        found = BriefState()
        for event in order:
            found = brief_schedule.record_brief(found, event)
        assert (found.until, found.until_morning) == (first.ts, "a")
        assert (found.ts, found.failed) == (failed.ts, 1)


def test_a_brief_event_replaces_what_the_last_one_said():
    """Whatever the order in which the two arrive; equal places change nothing."""
    early, late = at("2026-03-01T06:30"), at("2026-03-02T06:30")
    first = BriefMade(ts=early, seq=1, morning="a", failed=2, unusable=1, claimed={"x": "1"})
    second = BriefMade(ts=late, seq=2, morning="b", resolved=7, claimed={"y": "2"})
    expected = BriefState(
        seq=2,
        ts=late,
        morning="b",
        until=late,
        until_seq=2,
        until_morning="b",
        resolved=7,
        claimed={"y": "2"},
    )
    assert (
        brief_schedule.record_brief(brief_schedule.record_brief(BriefState(), first), second)
        == expected
    )
    assert (
        brief_schedule.record_brief(brief_schedule.record_brief(BriefState(), second), first)
        == expected
    )
    again = BriefMade(ts=late, seq=2, morning="other", resolved=3)
    assert brief_schedule.record_brief(expected, again) == expected


def test_an_event_without_a_place_comes_after_all_others():
    now = at("2026-03-02T06:30")
    known = brief_schedule.record_brief(
        BriefState(), BriefMade(ts=now, seq=9, morning="a", covered={"s": BriefedPosition(1)})
    )
    pending = BriefMade(ts=now, morning="b", covered={"s": BriefedPosition(2)}, closes=True)
    found = brief_schedule.record_brief(known, pending)
    assert (found.morning, found.covered["s"].covered) == ("b", BriefedPosition(2))
    assert found.closed.morning == "b"
    assert found.seq > 9


def test_equal_places_of_a_transcript_are_ordered_by_how_far_they_are():
    now = at("2026-03-02T06:30")
    near = BriefMade(ts=now, seq=3, morning="a", covered={"s": BriefedPosition(4, 1)})
    far = BriefMade(ts=now, seq=3, morning="a", covered={"s": BriefedPosition(4, 2)})
    for order in ((near, far), (far, near)):
        found = BriefState()
        for event in order:
            found = brief_schedule.record_brief(found, event)
        assert found.covered["s"].covered == BriefedPosition(4, 2)


def test_a_snapshot_keeps_the_transcripts_that_were_told_last():
    now = at("2026-03-20T06:30")
    told = {f"t{number:05}": BriefedPosition(at=1) for number in range(BRIEF_TOLD_KEPT + 2)}
    briefed = brief_schedule.record_brief(
        BriefState(), BriefMade(ts=now, seq=1, morning="m", covered=told)
    )
    kept = brief_schedule.prune_brief_state(briefed).covered
    assert list(kept) == sorted(told)[2:]
    assert brief_schedule.prune_brief_state(BriefState()) == BriefState()
    old = now - timedelta(days=BRIEF_TOLD_DAYS)
    for moment, count in ((old, 1), (old - timedelta(seconds=1), 0)):
        place = brief_schedule.TranscriptPosition(1, moment, BriefedPosition(at=1))
        assert (
            len(brief_schedule.prune_brief_state(BriefState(1, now, covered={"s": place})).covered)
            == count
        )


@pytest.mark.parametrize(
    ("day", "hour", "zone", "expected"),
    [
        ("2026-02-17", "06:30", BERLIN, "2026-02-17T05:30+00:00"),
        ("2026-02-17", "never", BERLIN, "2026-02-17T05:00+00:00"),
        ("2026-03-29", "02:30", BERLIN, "2026-03-29T01:30+00:00"),
        ("2026-02-17", "06:30", UTC, "2026-02-17T06:30+00:00"),
    ],
)
def test_the_moment_of_a_day(day, hour, zone, expected):
    found = brief_schedule.resolve_time_of_day(date.fromisoformat(day), hour, zone)
    assert found == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("zone", "now", "expected"),
    [
        ("Pacific/Kiritimati", "2026-02-17T00:00+00:00", "2026-02-18"),
        ("Pacific/Pago_Pago", "2026-02-17T00:00+00:00", "2026-02-17"),
        ("Pacific/Pago_Pago", "2026-02-17T17:30+00:00", "2026-02-18"),
    ],
)
def test_the_next_morning_is_the_operator_s(zone, now, expected):
    instant = datetime.fromisoformat(now)
    assert brief_schedule.find_next_morning(instant, "06:30", ZoneInfo(zone)) == expected


def launch(began, ended=None):
    return LaunchRecord(
        1,
        "s",
        resumes=False,
        began=at(began) if began else None,
        ended=at(ended) if ended else None,
    )


@pytest.mark.parametrize(
    ("facts", "now", "expected"),
    [
        # A launch that ended before the last brief is told.
        ({"attempts": [launch("2026-02-16T09:00", "2026-02-16T10:00")]}, "2026-02-18T07:00", None),
        # One that ended after it is not, although it began before.
        (
            {"attempts": [launch("2026-02-16T09:00", "2026-02-17T10:00")]},
            "2026-02-18T07:00",
            DueBrief("2026-02-18", closes=True),
        ),
        # One without a beginning is only an end.
        ({"attempts": [launch(None, "2026-02-17T10:00")]}, "2026-02-18T07:00", None),
        # Activity up to the brief itself is told.
        (
            {"lives": [life("2026-02-16T20:00")], "active": "2026-02-17T06:31"},
            "2026-02-18T07:00",
            None,
        ),
        (
            {"lives": [life("2026-02-16T20:00")], "active": "2026-02-17T06:32"},
            "2026-02-18T07:00",
            DueBrief("2026-02-18", closes=True),
        ),
        # It began exactly at the moment.
        (
            {"lives": [life("2026-02-18T06:30")], "active": "2026-02-18T06:30"},
            "2026-02-18T06:30",
            DueBrief("2026-02-18", closes=True),
        ),
    ],
)
def test_work_between_the_last_brief_and_the_moment(facts, now, expected):
    assert due(now, briefed=CLOSED, **facts) == expected


def test_a_launch_that_ended_makes_a_brief_due_if_that_is_wanted():
    facts = {"attempts": [launch("2026-02-17T08:00", "2026-02-17T09:00")]}
    found = due("2026-02-17T09:01", briefed=CLOSED, limits=ENDING, **facts)
    assert found == DueBrief("2026-02-18", closes=False)
    told = BriefState(2, at("2026-02-17T09:00"), closed=ClosedMorning(1, "2026-02-17"))
    assert due("2026-02-17T09:01", briefed=told, limits=ENDING, **facts) is None
    never = BriefSettings(at="never", on_session_end=True)
    assert due("2026-02-17T09:01", limits=never, **facts) == DueBrief("2026-02-18", closes=False)


@pytest.mark.parametrize(
    ("closed", "is_due"),
    [("2026-02-16", True), ("2026-02-17", False), ("2026-02-18", False), ("2026-02-19", True)],
)
def test_a_morning_is_closed_once(closed, is_due):
    """One that was closed for a morning still to come does not count: the clock was set back."""
    briefed = BriefState(1, at("2026-02-16T22:00"), closed=ClosedMorning(1, closed))
    assert bool(due("2026-02-17T07:00", briefed=briefed, **WORKED)) is is_due
