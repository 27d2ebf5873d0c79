"""When a brief is due: once a morning, on any day, whoever was off meanwhile."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rekindle.documents.event import BriefMade, Told
from rekindle.policy import mornings
from rekindle.policy.mornings import Briefed, Closed, Due
from rekindle.policy.sessions import Attempt, Life
from rekindle.policy.settings import Brief

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = Brief(at="06:30", zone="Europe/Berlin")
ENDING = Brief(at="06:30", on_session_end=True)


def at(text, zone=BERLIN):
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def life(began, ended=None):
    return Life(
        started=at(began),
        started_seq=1,
        ended=at(ended) if ended else None,
        ended_seq=2 if ended else 0,
    )


def due(now, *, briefed=Briefed(), lives=(), attempts=(), active=None, limits=DAILY):  # noqa: B008 - it is frozen
    return mornings.due(
        at(now),
        BERLIN,
        limits,
        briefed,
        lives={f"s{place}": one for place, one in enumerate(lives)},
        attempts={f"l{place}": one for place, one in enumerate(attempts)},
        last_active=at(active) if active else None,
    )


WORKED = {"lives": [life("2026-02-16T20:00")], "active": "2026-02-16T23:00"}
CLOSED = Briefed(1, at("2026-02-17T06:31"), morning="2026-02-17", closed=Closed(1, "2026-02-17"))


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ("2026-02-17T06:29", None),
        ("2026-02-17T06:30", Due("2026-02-17", closes=True)),
        ("2026-02-17T23:59", Due("2026-02-17", closes=True)),
        ("2026-03-17T12:00", Due("2026-03-17", closes=True)),
    ],
)
def test_it_is_due_from_its_time_on_and_a_month_is_caught_up_once(now, found):
    assert due(now, **WORKED) == found


def test_once_it_is_written_nothing_is_due_until_the_next_morning():
    later = {"lives": [life("2026-02-16T20:00")], "active": "2026-02-17T11:00"}
    assert due("2026-02-17T12:00", briefed=CLOSED, **later) is None
    assert due("2026-02-18T06:30", briefed=CLOSED, **later) == Due("2026-02-18", closes=True)


def test_without_work_nothing_is_due():
    assert due("2026-02-18T07:00") is None
    assert due("2026-02-18T07:00", briefed=CLOSED, **WORKED) is None
    began_after = {"lives": [life("2026-02-18T06:45")], "active": "2026-02-18T06:50"}
    assert due("2026-02-18T07:00", **began_after) is None


def test_a_brief_that_somebody_asked_for_does_not_close_the_morning():
    asked = Briefed(1, at("2026-02-16T22:00"), morning="2026-02-17")
    assert due("2026-02-17T06:30", briefed=asked, **WORKED) == Due("2026-02-17", closes=True)


def test_a_launch_is_work_too():
    attempt = Attempt(1, "s", resumes=False, began=at("2026-02-16T20:00"))
    for active in ("2026-02-16T20:01", None):
        found = due("2026-02-17T07:00", attempts=[attempt], active=active)
        assert found == Due("2026-02-17", closes=True)
    assert due("2026-02-17T12:00", briefed=CLOSED, attempts=[attempt]) is None


def test_one_from_the_future_says_nothing_once_the_clock_is_set_back():
    ahead = Briefed(9, at("2031-01-01T06:31"), closed=Closed(9, "2031-01-01"))
    found = due("2026-02-17T07:00", briefed=ahead, **WORKED)
    assert found == Due("2026-02-17", closes=True)
    now = at("2026-02-17T07:00")
    then = mornings.made(ahead, BriefMade(ts=now, seq=12, morning="2026-02-17", closes=True))
    assert then.closed == Closed(12, "2026-02-17")
    active = {"lives": WORKED["lives"], "active": "2026-02-17T07:10"}
    assert due("2026-02-17T07:15", briefed=then, **active) is None


def test_never_is_never():
    assert due("2026-02-17T12:00", limits=Brief(at="never"), **WORKED) is None


def test_the_end_of_a_session_makes_one_due_where_that_is_wanted():
    ended = {"lives": [life("2026-02-17T08:00", "2026-02-17T09:00")], "active": "2026-02-17T09:00"}
    assert due("2026-02-17T09:01", briefed=CLOSED, **ended) is None
    found = due("2026-02-17T09:01", briefed=CLOSED, limits=ENDING, **ended)
    assert found == Due("2026-02-18", closes=False)
    told = Briefed(2, at("2026-02-17T09:01"), morning="2026-02-18", closed=Closed(1, "2026-02-17"))
    assert due("2026-02-17T09:02", briefed=told, limits=ENDING, **ended) is None
    going = {"lives": [life("2026-02-17T08:00")], "active": "2026-02-17T09:00"}
    assert due("2026-02-17T09:01", briefed=CLOSED, limits=ENDING, **going) is None


@pytest.mark.parametrize("hour", ["02:30", "06:30", "00:00", "23:59"])
@pytest.mark.parametrize("month", [3, 10])
def test_every_day_has_one_moment_also_when_the_clocks_are_set(hour, month):
    """Minute by minute over the days around the change: each morning becomes due exactly once."""
    limits = Brief(at=hour)
    now = at(f"2026-{month:02}-20T00:00")
    closed, seen = "", []
    sessions = [life(f"2026-{month:02}-01T00:00")]
    while now < at(f"2026-{month:02}-30T00:00"):
        found = mornings.due(
            now,
            BERLIN,
            limits,
            Briefed(1, now - timedelta(minutes=5), closed=Closed(1, closed)),
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
    assert mornings.morning_of(at(now), "06:30", BERLIN) == morning
    assert mornings.morning_of(at(now), "never", BERLIN) >= morning


def test_what_was_told_of_a_transcript_is_what_the_last_brief_told():
    now = at("2026-02-17T06:30")
    first = BriefMade(ts=now, seq=3, morning="2026-02-17", told={"s": Told(9, 2)}, closes=True)
    second = BriefMade(ts=now, seq=5, morning="2026-02-18", told={"s": Told(7, 1), "t": Told(1)})
    for order in ((first, second), (second, first), (second, first, second)):
        found = Briefed()
        for event in order:
            found = mornings.made(found, event)
        assert found.told["s"].told == Told(7, 1)
        assert (found.seq, found.morning) == (5, "2026-02-18")
        assert found.closed == Closed(3, "2026-02-17")


def test_what_is_begun_after_the_moment_is_for_the_next_morning():
    """Also where there was work before it, which a brief has told."""
    friday, monday = life("2026-02-13T09:00", "2026-02-13T18:00"), life("2026-02-16T09:00")
    saturday = Briefed(
        5, at("2026-02-14T06:30"), morning="2026-02-14", closed=Closed(5, "2026-02-14")
    )
    both = {"lives": [friday, monday], "briefed": saturday, "active": "2026-02-16T09:01"}
    assert due("2026-02-16T09:01", **both) is None
    assert due("2026-02-17T06:30", **both) == Due("2026-02-17", closes=True)
    # One that was killed on Friday has not come to life.
    killed = life("2026-02-13T09:00")
    assert due("2026-02-16T09:01", **{**both, "lives": [killed, monday]}) is None


@pytest.mark.parametrize("limits", [DAILY, ENDING])
def test_after_a_brief_in_the_evening_the_first_minute_of_a_day_is_no_morning(limits):
    yesterday, today = life("2026-02-16T09:00", "2026-02-16T17:00"), life("2026-02-17T09:00")
    evening = Briefed(5, at("2026-02-16T17:01"), morning="2026-02-17")
    found = due(
        "2026-02-17T09:01",
        briefed=evening,
        lives=[yesterday, today],
        active="2026-02-17T09:01",
        limits=limits,
    )
    assert found is None


def test_who_works_through_the_night_has_worked():
    evening = Briefed(5, at("2026-02-16T22:00"), morning="2026-02-17")
    ended = life("2026-02-16T20:00", "2026-02-17T07:00")
    found = due("2026-02-17T08:00", briefed=evening, lives=[ended], active="2026-02-17T07:00")
    assert found == Due("2026-02-17", closes=True)


def test_a_snapshot_forgets_how_far_old_transcripts_were_told():
    briefed = Briefed()
    for day in (1, 2, 20):
        told = {f"t-{day}": Told(at=day)}
        event = BriefMade(ts=at(f"2026-03-{day:02d}T06:30"), seq=day, morning="m", told=told)
        briefed = mornings.made(briefed, event)
    assert set(briefed.told) == {"t-1", "t-2", "t-20"}
    assert set(mornings.newest(briefed).told) == {"t-20"}


def test_one_that_failed_does_not_say_up_to_when_was_told():
    first = BriefMade(ts=at("2026-03-01T06:30"), seq=1, morning="a")
    failed = BriefMade(ts=at("2026-03-02T06:30"), seq=2, morning="b", failed=1)
    for order in ((first, failed), (failed, first)):
        found = Briefed()
        for event in order:
            found = mornings.made(found, event)
        assert (found.until, found.until_morning) == (first.ts, "a")
        assert (found.ts, found.failed) == (failed.ts, 1)
