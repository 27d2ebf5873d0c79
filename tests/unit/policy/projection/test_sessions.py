"""Sessions and launches, as the log knows them."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.policy.projection import sessions
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import (
    LaunchRecord,
    SessionRecord,
)
from rekindle.thresholds.supervision import SESSIONS_KEPT

START = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def at(minutes):
    return START + timedelta(minutes=minutes)


def began(session="one", minutes=0, **more):
    return events.SessionStarted(ts=at(minutes), session=session, harness="claude-code", **more)


def ended(session="one", minutes=0):
    return events.SessionEnded(ts=at(minutes), session=session)


def launched(launch, seq, *, cycle=1, **more):
    more = {"ts": at(seq), "session": "one", "harness": "claude-code"} | more
    return events.LaunchStarted(launch=launch, cycle=cycle, seq=seq, **more)


def over(launch, seq, *, cycle=1, exit_kind="crash", **more):
    more = {"ts": at(seq), "session": "one"} | more
    return events.LaunchEnded(launch=launch, cycle=cycle, seq=seq, exit=exit_kind, **more)


def folded(*happened):
    return fold_events(Projection("trades"), happened)


def test_a_session_is_open_from_its_start_to_its_end():
    """Begun and not ended: open; ended: not; begun again after that: open again."""
    assert folded(began()).lives["one"].is_open
    assert not folded(began(), ended(minutes=1)).lives["one"].is_open
    assert folded(began(), ended(minutes=1), began(minutes=2)).lives["one"].is_open
    assert not folded(ended()).lives["one"].is_open
    assert not SessionRecord().is_open


def test_a_clock_that_was_set_back_hides_no_start():
    """The place in the log counts; events that are not in it yet come last."""
    before, end = began(seq=1, launch="l1"), events.SessionEnded(ts=at(1), session="one", seq=2)
    for seq in (3, 0):
        again = began(minutes=-60, seq=seq, launch="l2", source="resume")
        for order in ((before, end, again), (again, end, before)):
            life = folded(*order).lives["one"]
            assert (life.launch, life.is_open) == ("l2", True)
        assert sessions.find_launched_session(folded(before, again).lives, "l2") == "one"
    ended_earlier = events.SessionEnded(ts=at(-60), session="one", seq=4)
    assert not folded(before, end, ended_earlier).lives["one"].is_open
    assert folded(before, ended_earlier, began(minutes=-90, seq=5)).lives["one"].is_open


def test_a_launch_knows_its_route():
    """The route consists of the CLI and the account that the launch's start records."""
    seen = folded(launched("l1", 1), launched("l2", 2, account="work")).attempts
    assert [str(launch.route) for launch in seen.values()] == ["claude-code", "claude-code/work"]


def test_a_lost_session_that_was_told_of_is_not_open_any_more():
    """Telling it ends it for good; if it resumes after all, it is open again."""
    told = events.SessionLost(ts=at(1), session="one")
    assert sessions.select_unended_sessions(folded(began(), told).lives) == {}
    assert "one" in sessions.select_unended_sessions(folded(began(), told, began(minutes=2)).lives)


def test_only_a_person_s_own_sessions_are_looked_for():
    """A launch's session is its supervisor's to resume, and a visitor's session is left alone."""
    seen = folded(
        began("own"), began("launched", launch="l1"), began("visitor", visitor=True), ended("ended")
    )
    assert list(sessions.select_unended_sessions(seen.lives)) == ["own"]


def test_unended_sessions_come_oldest_first_whatever_zone_they_were_written_in():
    """The newest one's request is the task of the notice, so the order counts."""
    east = timezone(timedelta(hours=9))
    lives = {
        "newest": SessionRecord(started=at(30)),
        "oldest": SessionRecord(started=at(10).astimezone(east)),
        "middle": SessionRecord(started=at(20)),
    }
    assert list(sessions.select_unended_sessions(lives)) == ["oldest", "middle", "newest"]


def test_the_last_request_stays_with_its_session():
    """A later prompt takes the place of an earlier one, in whatever order they are folded."""
    asked = [
        events.PromptSubmitted(ts=at(place), session="one", text=text)
        for place, text in enumerate(("first", "second"))
    ]
    for order in (asked, asked[::-1]):
        assert folded(*order).lives["one"].asked.text == "second"


LIVES = [
    began(process="1.2.b"),
    began(minutes=2, process="3.4.b"),
    began(minutes=2, process="3.5.b", transcript="/t"),
    ended(minutes=1),
    ended(minutes=3),
    events.PromptSubmitted(ts=at(1), session="one", text="a"),
    events.PromptSubmitted(ts=at(1), session="one", text="b"),
    events.SessionLost(ts=at(2), session="one"),
    launched("l1", 1, boot="b", uptime=2.5),
    over("l1", 2, opened=True),
    launched("l2", 3, resumes=True),
    over("l2", 4, exit_kind="lost", resumes=True),
    over("l2", 5, exit_kind="clean", resumes=True, session_usd=2.5),
    events.SpendRecorded(ts=at(3), launch="l2", tokens=1, session="one", session_usd=2.0),
    events.CycleStarted(ts=at(0), cycle=1),
    events.CycleEnded(ts=at(5), cycle=1),
]


@given(st.permutations(LIVES))
def test_the_order_of_events_does_not_count(order):
    """Sessions, launches and cycles add up to the same, however and how often they are read."""
    expected = folded(*LIVES)
    found = folded(*order, *order[:5])
    assert (found.lives, found.attempts) == (expected.lives, expected.attempts)
    assert (found.cycle, found.is_cycle_open) == (1, False)


def test_the_reported_cost_of_a_session_is_the_highest_one():
    """The next launch of the session counts only what is added to it."""
    recorded = events.SpendRecorded(ts=at(3), launch="l1", tokens=1, session="one", session_usd=2.0)
    assert folded(began(), recorded).lives["one"].usd == 2.0
    assert folded(*LIVES).lives["one"].usd == 2.5
    nameless = events.SpendRecorded(ts=at(3), launch="", tokens=1, usd=2.0)
    assert folded(nameless).lives == {}


def test_a_launch_is_known_from_its_start_and_its_end():
    """The start has its host and time, the end its result."""
    seen = folded(
        launched("l1", 4, boot="b00t", uptime=12.5),
        over("l1", 6, exit_kind="limit", opened=True),
    )
    assert seen.attempts["l1"] == LaunchRecord(
        cycle=1,
        session="one",
        resumes=False,
        harness="claude-code",
        began=at(4),
        seq=4,
        boot="b00t",
        uptime=12.5,
        exit="limit",
        ended=at(6),
        opened=True,
        ended_seq=6,
    )


def test_the_attempts_of_a_cycle_are_its_own_in_order():
    """Their place in the log decides, not their name or the clock."""
    seen = folded(
        launched("b", 2, ts=at(9)),
        launched("other", 3, cycle=2),
        launched("a", 4, ts=at(1)),
        launched("c", 1, ts=at(5)),
    )
    assert list(sessions.select_cycle_launches(seen.attempts, 1)) == ["c", "b", "a"]


def test_a_snapshot_keeps_the_newest_and_forgets_no_open_session_first():
    """A session that never ended must still be reported after many that did."""
    lives = {"open": SessionRecord(started=at(-9_999))} | {
        f"done-{number}": SessionRecord(started=at(number), ended=at(number + 1))
        for number in range(200)
    }
    kept = sessions.prune_sessions(lives)
    assert len(kept) == SESSIONS_KEPT
    assert "open" in kept
    assert "done-199" in kept
    assert "done-0" not in kept
    attempts = {
        f"l{number}": LaunchRecord(1, "one", resumes=False, seq=number) for number in range(200)
    }
    newest = sessions.prune_launches(attempts)
    assert list(newest) == [f"l{number}" for number in range(150, 200)]


def test_without_places_in_the_log_the_later_time_decides():
    assert SessionRecord(started=at(2), ended=at(1)).is_open
    assert not SessionRecord(started=at(1), ended=at(2)).is_open
