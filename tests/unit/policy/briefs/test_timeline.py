"""The night of an agent in few lines: crashes, resumes, handoffs, waits, refusals, spend."""

from datetime import UTC, datetime, timedelta

from rekindle.documents import events
from rekindle.policy.briefs.timeline import make_timeline

BEGAN = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


class Night:
    """Events of one night, a minute apart."""

    def __init__(self):
        self.happened, self.slept = [], timedelta()

    @property
    def now(self):
        return BEGAN + timedelta(minutes=len(self.happened)) + self.slept

    def wait(self, why, **time):
        self.add(events.WaitStarted, why=why, until=self.now + timedelta(**time))
        self.slept += timedelta(**time)
        return self

    def add(self, kind, **fields):
        self.happened.append(kind(ts=self.now, **fields))
        return self

    def launch(self, exit_kind="clean", words="", *, usd=None, **how):
        known = {"launch": f"l{len(self.happened)}", "cycle": 1, "session": "s"}
        self.add(events.LaunchStarted, harness="claude-code", **known, **how)
        return self.add(events.LaunchEnded, exit=exit_kind, words=words, usd=usd, **known)

    def told(self):
        moments = make_timeline(self.happened, self.now, UTC)
        return [(f"{one.at:%H:%M}", one.kind, one.text) for one in moments]


def test_a_night_with_everything_is_told_in_order():
    night = Night().launch("crash", "exit code 1", usd=0.25)
    night.launch("limit", "5-hour limit", resumes=True)
    night.wait("limit", hours=3, minutes=5)
    night.launch("handoff", resumes=True)
    night.add(events.HandoffResumed, launch="l9", cycle=1, count=1, checkpoint="c")
    refused = {"launch": "l9", "cycle": 1, "tool": "Write", "of_run": 1}
    night.add(events.CallRefused, about="a.py", **refused)
    night.add(events.CallRefused, about="b.py", **refused)
    night.launch(usd=1.0)
    night.add(events.CycleEnded, cycle=1, verdict="progress", until="failed")
    night.add(events.RunEnded, why="cycles")
    assert night.told() == [
        ("01:01", "crash", "crashed: exit code 1"),
        ("01:02", "resume", "the same session resumed"),
        ("01:04", "wait", "waited 3 h 5 min: a usage limit"),
        ("04:10", "resume", "the same session resumed"),
        ("04:12", "handoff", "window full: handed off to a fresh session (1 in cycle 1)"),
        ("04:13", "refused", "2 tool calls were refused, no permission: Write a.py, Write b.py"),
        ("04:17", "cycle", "cycle 1 ended: `until:` failed, $1.25"),
        ("04:18", "end", "out of cycles: nothing verifies that the work is done"),
    ]


def test_the_same_crash_again_and_again_is_one_line():
    night = Night().launch("crash", "exit code 1")
    for _ in range(11):
        night.launch("crash", "exit code 1", resumes=True)
    assert night.told() == [
        ("01:01", "crash", "crashed 12 times: exit code 1"),
        ("01:02", "resume", "the same session resumed 11 times"),
    ]


def test_what_was_spent_in_a_cycle_that_has_not_ended_is_told():
    assert Night().launch(usd=0.5).told() == [("01:01", "cycle", "spent $0.50")]


def test_pauses_between_restarts_are_not_told():
    night = Night()
    night.add(events.WaitStarted, why="crash", until=night.now + timedelta(minutes=1))
    assert night.told() == []


def test_what_the_operator_did_is_told():
    night = Night().add(events.DesiredSet, desired="stopped")
    answer = {"question": "trades-1", "effect": "restart", "choice": "retry", "by": "ann"}
    night.add(events.QuestionAnswered, **answer)
    assert [text for _, _, text in night.told()] == [
        "you stopped it",
        "trades-1 answered by ann: retry",
    ]


def test_an_outage_with_many_waits_is_two_lines():
    night = Night().launch("network", "no route")
    for minutes in (2, 4, 8):
        night.wait("network", minutes=minutes)
        night.launch("network", "no route", resumes=True)
    assert [text for _, _, text in night.told()] == [
        "waited 3 times, the last time 8 min: the API cannot be reached",
        "the same session resumed 3 times",
    ]


def test_a_wait_that_lasts_is_told_with_its_end():
    night = Night().launch("limit", "5-hour limit")
    night.add(events.WaitStarted, why="limit", until=night.now + timedelta(minutes=6))
    assert night.told() == [("01:02", "wait", "waits until 01:08: a usage limit")]


def test_a_wait_that_was_cut_short_is_told_with_the_time_waited():
    night = Night().launch("limit", "5-hour limit", usd=0.5)
    night.add(events.WaitStarted, why="limit", until=night.now + timedelta(minutes=6))
    night.slept += timedelta(minutes=1)
    night.add(events.DesiredSet, desired="stopped")
    assert night.told() == [
        ("01:01", "cycle", "spent $0.50"),
        ("01:02", "wait", "waited 2 min: a usage limit"),
        ("01:04", "you", "you stopped it"),
    ]


def test_at_exactly_its_end_a_wait_is_over():
    night = Night().wait("limit", minutes=6)
    moments = make_timeline(night.happened, BEGAN + timedelta(minutes=6), UTC)
    assert [one.text for one in moments] == ["waited 6 min: a usage limit"]
