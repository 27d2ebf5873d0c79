"""The night of an agent in few lines: crashes, resumes, handoffs, waits, refusals, spend."""

from datetime import UTC, datetime, timedelta

import pytest

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


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "waited 1 min"),
        (60, "waited 1 min"),
        (89, "waited 1 min"),
        (91, "waited 2 min"),
        (3_540, "waited 59 min"),
        (3_600, "waited 1 h"),
        (3_660, "waited 1 h 1 min"),
        (7_200, "waited 2 h"),
        (90_060, "waited 25 h 1 min"),
    ],
)
def test_how_long_a_wait_took(seconds, words):
    """In hours and minutes, and at least a minute."""
    night = Night().wait("limit", seconds=seconds)
    assert night.told() == [("01:00", "wait", f"{words}: a usage limit")]


def test_a_wait_ends_with_the_next_launch_or_at_its_time():
    """A wait that is not over is shown with its end."""
    until = BEGAN + timedelta(hours=2)
    wait = events.WaitStarted(ts=BEGAN, why="limit", until=until)
    early = events.LaunchStarted(
        ts=BEGAN + timedelta(hours=1), launch="l", cycle=1, session="s", harness="codex"
    )
    late = events.LaunchStarted(
        ts=until + timedelta(hours=1), launch="l", cycle=1, session="s", harness="codex"
    )

    def tell(now, *happened):
        return [one.text for one in make_timeline(happened, now, UTC)]

    assert tell(until, wait) == ["waited 2 h: a usage limit"]
    assert tell(until - timedelta(seconds=1), wait) == ["waits until 03:00: a usage limit"]
    assert tell(until - timedelta(seconds=1), wait, early) == ["waited 1 h: a usage limit"]
    assert tell(until + timedelta(hours=2), wait, late) == ["waited 2 h: a usage limit"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "cycle 1 ended"),
        ({"verdict": "progress"}, "cycle 1 ended"),
        ({"verdict": "stalled"}, "cycle 1 ended: stalled"),
        ({"until": "passed"}, "cycle 1 ended: `until:` passed"),
        ({"verdict": "stalled", "until": "failed"}, "cycle 1 ended: stalled, `until:` failed"),
    ],
)
def test_the_end_of_a_cycle(fields, text):
    """With its verdict if there was no progress, and the result of `until:`."""
    assert Night().add(events.CycleEnded, cycle=1, **fields).told() == [("01:00", "cycle", text)]


def test_what_was_spent_is_told_with_the_cycle_or_at_the_end():
    """Each amount once."""
    ended = {"cycle": 1, "session": "s", "exit": "clean"}
    night = Night().add(events.LaunchEnded, launch="a", tokens=1, **ended)
    night.add(events.LaunchEnded, launch="b", usd=0.5, tokens=2, **ended)
    night.add(events.CycleEnded, cycle=1)
    night.add(events.SummaryMade, document="relay", how="headless", usd=0.25)
    assert night.told() == [
        ("01:02", "cycle", "cycle 1 ended: $0.50, 3 tokens"),
        ("01:03", "cycle", "spent $0.25"),
    ]


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        (["a"], "a tool call was refused, no permission: Write a"),
        (["a", "a"], "2 tool calls were refused, no permission: Write a and 1 more"),
        (["a", ""], "2 tool calls were refused, no permission: Write a, Write"),
    ],
)
def test_refused_calls_are_told_with_examples(calls, text):
    """The others are counted."""
    night = Night()
    for about in calls:
        night.add(events.CallRefused, launch="l", cycle=1, tool="Write", about=about, of_run=1)
    assert night.told() == [("01:00", "refused", text)]


def test_what_a_person_did():
    """A stop and an answer; a refused answer and a command to run are not told."""
    night = (
        Night().add(events.DesiredSet, desired="stopped").add(events.DesiredSet, desired="running")
    )
    night.add(events.QuestionAnswered, question="a-1", effect="stop", choice="stop", by="Ann")
    night.add(events.QuestionAnswered, question="a-2", effect="restart", text="go on")
    night.add(events.QuestionAnswered, question="a-3", effect="note", refused="too late")
    assert night.told() == [
        ("01:00", "you", "you stopped it"),
        ("01:02", "you", "a-1 answered by Ann: stop"),
        ("01:03", "you", "a-2 answered by its deadline: go on"),
    ]


def test_a_launch_after_a_clean_exit_is_not_a_resume():
    """Neither is a fresh launch after a crash."""
    assert Night().launch().launch(resumes=True).told() == []
    assert [kind for _, kind, _ in Night().launch("crash").launch().told()] == ["crash"]
    taken_over = Night().launch("lost").launch(recovery=True).told()
    assert taken_over[-1] == ("01:02", "resume", "a fresh session took over")
    twice = Night().launch("crash", "x").launch("clean", resumes=True).launch("crash", "x")
    assert [kind for _, kind, _ in twice.told()] == ["crash", "resume"]
