"""The night of an agent in few lines: crashes, resumes, handoffs, waits, refusals, spend."""

import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.policy.night.timeline import make_lines, make_timeline

WAITS = ("2 h, until 03:00", "1 h, until 02:00")
BEGAN = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


class Night:
    """Events of one night, a minute apart."""

    def __init__(self):
        self.happened, self.slept, self.spent = [], timedelta(), 0.0

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
        self.spent += usd or 0.0
        return self.add(
            events.LaunchEnded, exit=exit_kind, words=words, usd=usd, run_usd=self.spent, **known
        )

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
        ("01:04", "wait", "waited 3 h 5 min, until 04:09: a usage limit"),
        ("04:10", "resume", "the same session resumed"),
        ("04:12", "handoff", "window full: handed off to a fresh session (1 in cycle 1)"),
        ("04:13", "refused", "2 tool calls were refused, no permission: Write a.py, Write b.py"),
        ("04:17", "cycle", "cycle 1 ended: progress, `until:` failed, $1.25"),
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
        "trades-1 was answered by ann: retry",
    ]


def test_an_outage_with_many_waits_is_two_lines():
    night = Night().launch("network", "no route")
    for minutes in (2, 4, 8):
        night.wait("network", minutes=minutes)
        night.launch("network", "no route", resumes=True)
    assert [text for _, _, text in night.told()] == [
        "waited 3 times, the last time 8 min, until 01:22: the API cannot be reached",
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
        ("01:02", "wait", "waited 2 min, until 01:04: a usage limit"),
        ("01:04", "you", "you stopped it"),
    ]


def test_at_exactly_its_end_a_wait_is_over():
    night = Night().wait("limit", minutes=6)
    moments = make_timeline(night.happened, BEGAN + timedelta(minutes=6), UTC)
    assert [one.text for one in moments] == ["waited 6 min, until 01:06: a usage limit"]


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
    [(at, kind, text)] = night.told()
    assert (at, kind) == ("01:00", "wait")
    assert re.fullmatch(rf"{words}, until [0-9:-]+( [0-9:]+)?: a usage limit", text)


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

    assert tell(until, wait) == ["waited 2 h, until 03:00: a usage limit"]
    assert tell(until - timedelta(seconds=1), wait) == ["waits until 03:00: a usage limit"]
    assert tell(until - timedelta(seconds=1), wait, early) == [
        "waited 1 h, until 02:00: a usage limit"
    ]
    assert tell(until + timedelta(hours=2), wait, late) == [
        "waited 2 h, until 03:00: a usage limit"
    ]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "cycle 1 ended"),
        ({"verdict": "progress"}, "cycle 1 ended: progress"),
        ({"words": "it is done"}, "cycle 1 ended: it is done"),
        (
            {"verdict": "stalled", "words": "it repeats itself"},
            "cycle 1 ended: stalled (it repeats itself)",
        ),
        ({"verdict": "stalled"}, "cycle 1 ended: stalled"),
        ({"until": "passed"}, "cycle 1 ended: `until:` passed"),
        ({"verdict": "stalled", "until": "failed"}, "cycle 1 ended: stalled, `until:` failed"),
    ],
)
def test_the_end_of_a_cycle(fields, text):
    """With its verdict, the reason for it, and the result of `until:`."""
    assert Night().add(events.CycleEnded, cycle=1, **fields).told() == [("01:00", "cycle", text)]


def test_what_was_spent_is_told_with_the_cycle_or_at_the_end():
    """Each amount once, counted from the run's totals; `tokens` is the size of a window."""
    ended = {"cycle": 1, "session": "s", "exit": "clean", "tokens": 90_000}
    night = Night().add(events.RunStarted)
    night.add(events.SpendRecorded, launch="a", tokens=1, usd=0.25)
    night.add(events.LaunchEnded, launch="a", run_tokens=1, run_usd=0.25, **ended)
    told = {"usd": 0.25, "is_estimated": False}
    night.add(events.LaunchEnded, launch="b", run_tokens=3, run_usd=0.5, **told, **ended)
    night.add(events.CycleEnded, cycle=1)
    made = {"document": "relay", "how": "headless", "usd": 0.25}
    night.add(events.SummaryMade, run_usd=0.75, run_tokens=3, **made)
    night.add(events.SummaryMade, tokens=2, **made)
    night.add(events.ReviewMade, cycle=1, run_usd=1.0, run_tokens=3)
    night.add(events.RunStarted)
    night.add(events.SpendRecorded, launch="c", tokens=5, usd=0.5)
    assert night.told() == [
        ("01:04", "cycle", "cycle 1 ended: $0.50, 3 tokens"),
        ("01:09", "cycle", "spent ~$1.25, 7 tokens"),
    ]


def test_what_a_run_spent_before_the_first_event_is_not_told():
    night = Night().add(events.SpendRecorded, launch="a", tokens=700, usd=6.0)
    night.add(events.SpendRecorded, launch="a", tokens=900, usd=6.5)
    night.add(events.CycleEnded, cycle=1)
    assert night.told() == [("01:02", "cycle", "cycle 1 ended: ~$0.50, 200 tokens")]


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
        ("01:02", "you", "a-1 was answered by Ann: stop"),
        ("01:03", "you", "a-2 was answered by the deadline: go on"),
    ]


def test_a_launch_after_a_clean_exit_is_not_a_resume():
    """Neither is a fresh launch after a crash."""
    assert Night().launch().launch(resumes=True).told() == []
    assert [kind for _, kind, _ in Night().launch("crash").launch().told()] == ["crash"]
    taken_over = Night().launch("lost").launch(recovery=True).told()
    assert taken_over[-1] == ("01:02", "resume", "a fresh session took over")
    twice = Night().launch("crash", "x").launch("clean", resumes=True).launch("crash", "x")
    assert [kind for _, kind, _ in twice.told()] == ["crash", "resume"]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ({"tokens": 142_000, "window": 200_000, "known": "reported"}, "71 % of 200,000 tokens"),
        ({"tokens": 142_000, "window": 200_000, "known": "estimated"}, "~71 % of 200,000 tokens"),
        ({"tokens": 142_000}, "142,000 tokens"),
    ],
)
@pytest.mark.parametrize(
    ("by", "cause"),
    [
        ("threshold", "window full"),
        ("person", "you asked for a handoff"),
        ("repetition", "it repeated itself"),
    ],
)
def test_a_handoff_is_told_with_the_usage_of_the_window(before, text, by, cause):
    night = Night()
    known = {"launch": "l0", "cycle": 2, "session": "s"}
    night.add(events.HandoffTriggered, by=by, **known, **before)
    night.add(events.LaunchEnded, exit="handoff", **known)
    night.add(events.HandoffResumed, launch="l1", cycle=2, count=1, checkpoint="c")
    [(_, kind, told)] = night.told()
    assert kind == "handoff"
    assert told == f"{cause} at {text}: handed off to a fresh session (1 in cycle 2)"


def test_a_window_that_the_cli_found_full_is_told_with_its_usage():
    """Without a report from Rekindle's own measurement."""
    night = Night().launch("context-full")
    night.happened[-1] = msgspec.structs.replace(night.happened[-1], tokens=198_000, window=200_000)
    for count in (1, 2):
        night.add(events.HandoffResumed, launch="l", cycle=1, count=count, checkpoint="c")
    assert [text for _, _, text in night.told()] == [
        "window full at 99 % of 200,000 tokens: handed off to a fresh session (1 in cycle 1)",
        "window full: handed off to a fresh session (2 in cycle 1)",
    ]


def ask(night, about, text, seq=7):
    fields = {"question": "trades-2", "number": 2, "choices": ("stop",), "default": "stop"}
    return night.add(events.QuestionAsked, about=about, text=text, seq=seq, **fields)


@pytest.mark.parametrize(
    ("words", "question", "text"),
    [
        ("not logged in", "not logged in", "needs you: not logged in (trades-2)"),
        ("", "Ten?", "needs you: a person must log in: Ten? (trades-2)"),
    ],
)
def test_a_pause_and_the_question_about_it_are_one_line(words, question, text):
    night = Night().add(events.SafeModeEntered, why="auth", words=words, seq=6)
    [moment] = make_timeline(ask(night, "auth", question).happened, night.now, UTC)
    assert (moment.text, moment.first, moment.last) == (text, 6, 7)


def test_other_questions_have_a_line_of_their_own():
    night = Night().add(events.SafeModeEntered, why="auth", seq=6)
    ask(night, "permission", "May I?")
    ask(night, "permission", "May I now?", seq=0)
    assert [one[1:] for one in night.told()] == [
        ("end", "needs you: a person must log in"),
        ("question", "trades-2 asks: May I?"),
        ("question", "trades-2 asks: May I now?"),
    ]


def test_a_hang_is_told_unless_the_exit_tells_it():
    night = Night().add(events.HangDetected, launch="l", words="silent for 10 min")
    night.add(events.HangDetected, launch="l", words="silent for 20 min", ended=True)
    night.launch("hang", "silent for 20 min")
    assert [one[1:] for one in night.told()] == [
        ("hang", "silent for 10 min"),
        ("crash", "crashed: silent for 20 min"),
    ]


def test_a_repetition_is_told():
    told = {"launch": "l", "pattern": "call", "count": 6, "words": "six times", "action": "told"}
    night = Night().add(events.RepetitionDetected, **told)
    assert [one[1:] for one in night.told()] == [("repeat", "six times")]


def test_relays_compactions_and_failed_handoffs_are_told():
    night = Night().add(
        events.RelayCommitted, sha256="a", path="p", by="agent", headline="Ship POST /profile"
    )
    night.add(events.SessionCompacted, session="s").add(
        events.SessionCompacted, session="v", visitor=True
    )
    night.add(events.HandoffFailed, launch="l", words="no model answered")
    assert [one[1:] for one in night.told()] == [
        ("relay", "new relay by agent: Ship POST /profile"),
        ("compaction", "the conversation was compacted"),
        ("handoff", "handoff: no model answered"),
    ]


def test_lines_name_their_events_and_have_a_symbol():
    night = Night()
    for _ in range(3):
        night.launch("crash", "exit code 1", resumes=True)
    numbered = [
        msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(night.happened, 10)
    ]
    crash, resume = make_lines(numbered, night.now, UTC)
    assert (crash.text, crash.glyph, crash.count) == ("crashed 3 times: exit code 1", "✕", 3)
    assert (crash.at, crash.first, crash.last) == (numbered[1].ts, 11, 15)
    assert (resume.kind, resume.count, resume.first, resume.last) == ("resume", 2, 12, 14)


def test_two_equal_crashes_are_counted():
    night = Night().launch("crash", "x").launch("crash", "x", resumes=True)
    assert night.told()[0] == ("01:01", "crash", "crashed 2 times: x")


def test_a_crash_is_followed_by_one_resume():
    night = Night().launch("crash", "x")
    for _ in range(2):
        night.add(
            events.LaunchStarted, launch="l", cycle=1, session="s", harness="codex", resumes=True
        )
    assert [text for _, _, text in night.told()] == ["crashed: x", "the same session resumed"]


def test_only_the_event_after_a_pause_is_the_question_about_it():
    night = Night().launch("auth").add(events.SafeModeEntered, why="auth", seq=6)
    ask(night, "auth", "What now?").add(events.Heartbeat)
    assert [text for _, _, text in night.told()] == [
        "needs you: a person must log in: What now? (trades-2)"
    ]
    night = ask(Night(), "auth", "What now?", seq=5).add(events.SafeModeEntered, why="auth", seq=6)
    assert [kind for _, kind, _ in night.told()] == ["question", "end"]


def test_without_a_reported_cost_the_first_total_is_only_a_start():
    """A smaller total belongs to another run, and nothing is taken back."""
    ended = {"cycle": 1, "session": "s", "exit": "clean"}
    night = Night().add(events.LaunchEnded, launch="a", run_usd=6.0, run_tokens=9, **ended)
    night.add(events.SpendRecorded, launch="b", tokens=2, usd=0.5)
    night.add(events.CycleEnded, cycle=1)
    assert night.told() == [("01:02", "cycle", "cycle 1 ended")]
