"""The row of an agent, from its projection."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_row import Figure, WindowFigures
from rekindle.policy.operator.build_row import (
    RowInputs,
    build_broken_row,
    build_listed_row,
    build_new_row,
    build_row,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import LostEvents, Projection

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def after(*kinds):
    """Return the projection of these events, one second apart."""
    happened = [
        msgspec.structs.replace(one, seq=place, ts=NOW + timedelta(seconds=place))
        for place, one in enumerate(kinds, 1)
    ]
    return fold_events(Projection(agent="a"), happened)


def wanted(desired):
    return events.DesiredSet(ts=NOW, desired=desired)


STARTED = events.RunStarted(ts=NOW)


def over(outcome, words=""):
    return events.RunEnded(ts=NOW, why=outcome, words=words)


def safe(why, words=""):
    return events.SafeModeEntered(ts=NOW, why=why, words=words)


def row(*kinds, **around):
    return build_row(
        after(*kinds), RowInputs(NOW + timedelta(minutes=1), zone=UTC, **around), "codex"
    )


def standing(found):
    return found.state, found.reason, found.command, found.outcome


def test_an_agent_that_was_never_started():
    assert standing(build_new_row("a", "codex")) == (
        "stopped",
        "not started yet",
        "rekindle run a",
        None,
    )
    assert standing(row())[:3] == ("stopped", "not started yet", "rekindle run a")


@pytest.mark.parametrize(("hint", "command"), [("fix it", "fix it"), (None, "rekindle doctor")])
def test_an_agent_whose_files_cannot_be_read(hint, command):
    assert standing(build_broken_row("a", "codex", "torn", hint)) == (
        "broken",
        "torn",
        command,
        None,
    )


@pytest.mark.parametrize(
    ("kinds", "is_supervised", "expected"),
    [
        ([STARTED], True, ("running", "cycle 1", "", None)),
        ([STARTED, over("done", "passes")], False, ("done", None, "", "done")),
        (
            [STARTED, over("budget")],
            False,
            ("stopped", "its budget is spent", None, "out-of-budget"),
        ),
        ([STARTED, over("waiting")], False, ("needs you", None, None, "needs-person")),
        (
            [STARTED, over("waiting"), wanted("stopped")],
            False,
            ("stopped", "by you", "rekindle run a", "stopped"),
        ),
        ([STARTED, over("done"), wanted("stopped")], False, ("done", None, "", "done")),
        ([STARTED, safe("auth", "log in")], True, ("needs you", None, None, "needs-person")),
        ([STARTED, safe("auth"), wanted("stopped")], False, ("stopped", None, None, "stopped")),
        ([STARTED, safe("auth"), wanted("stopped")], True, ("needs you", None, None, None)),
    ],
)
def test_how_an_agent_is(kinds, is_supervised, expected):
    """None: not looked at here."""
    found = standing(row(*kinds, is_supervised=is_supervised))
    assert tuple(a if b is not None else None for a, b in zip(found, expected, strict=True)) == (
        expected
    )


def test_a_row_is_of_its_agent():
    found = row(STARTED, is_supervised=True)
    assert (found.agent, found.harness, found.at) == ("a", "codex", 1)
    assert (found.cycle, found.cycles_done, found.cycles_of) == (0, 0, None)
    assert (found.open_loops, found.stale_loops, found.open_questions) == (0, 0, 0)
    assert (found.label, found.next_action, found.window) == ("running", "", WindowFigures())


def test_spending_and_its_cap():
    noted = events.SpendRecorded(ts=NOW, launch="l", tokens=500, usd=0.123456)
    found = row(STARTED, noted, budget=Budget(usd=2.0, tokens=900)).spend
    assert (found.usd_cap, found.tokens_cap, found.unpriced) == (2.0, 900, 0)
    assert found.usd == Figure(0.1235, "estimated")
    assert found.tokens.value == 500
    empty = row(STARTED).spend
    assert (empty.usd, empty.tokens, empty.usd_cap, empty.tokens_cap) == (
        Figure(),
        Figure(),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("listed", "state", "reason"),
    [
        ("new", "stopped", "not started yet"),
        ("queued", "waiting", "for a host with a free slot"),
        ("capped", "waiting", "its team is at its cap"),
        ("waiting", "waiting", ""),
        ("safe", "needs you", "in safe mode"),
        ("stopped", "stopped", "by you"),
        ("odd", "broken", "the engine lists it as odd"),
    ],
)
def test_a_state_of_the_engine_s_list(listed, state, reason):
    found = build_listed_row("a", "codex", listed, 3)
    assert (found.state, found.reason, found.cycle, found.label) == (state, reason, 3, state)


def launched(number, cycle=1):
    return events.LaunchStarted(
        ts=NOW, launch=f"l{number}", cycle=cycle, session="s", harness="codex"
    )


def ended(number, exit_kind, words="", cycle=1):
    return events.LaunchEnded(
        ts=NOW, launch=f"l{number}", cycle=cycle, session="s", exit=exit_kind, words=words
    )


def waits(why, minutes=5):
    return events.WaitStarted(ts=NOW, why=why, until=NOW + timedelta(minutes=minutes))


CYCLE = events.CycleStarted(ts=NOW, cycle=1)
CRASH = [launched(1), ended(1, "crash", "exit code 1")]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([waits("crash")], "until 12:05, then retried: it crashed"),
        ([*CRASH, waits("crash")], "until 12:05, then retried: it crashed, exit code 1"),
        ([*CRASH, waits("hang")], "until 12:05, then retried: it hung"),
        (
            [*CRASH, waits("crash", 24 * 60)],
            "until 2026-04-10 12:00, then retried: it crashed, exit code 1",
        ),
        ([waits("crash"), *CRASH], None),
    ],
)
def test_a_wait_names_its_cause_and_its_end(kinds, expected):
    """The words of the last exit are shown only if it caused the wait."""
    found = row(STARTED, CYCLE, *kinds, is_supervised=True)
    if expected is None:
        assert standing(found) == ("running", "cycle 1", "", None)
        assert found.waits_until is None
    else:
        assert standing(found) == ("waiting", expected, "", "waiting")
        assert found.waits_until == kinds[-1].until


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        ([launched(1)], "in cycle 1: its supervisor is gone"),
        (CRASH, "in cycle 1: exit code 1"),
        ([launched(1), ended(1, "crash")], "in cycle 1: it crashed"),
        ([*CRASH, events.CycleEnded(ts=NOW, cycle=1)], "after cycle 1"),
    ],
)
def test_an_agent_without_a_supervisor(kinds, reason):
    """The reason is the exit of its last launch, or its last cycle."""
    found = row(STARTED, CYCLE, *kinds)
    assert standing(found) == ("stopped", reason, "rekindle run a", None)


@pytest.mark.parametrize(
    ("crashes", "words", "expected"),
    [
        (0, "", "crashed once in cycle 1"),
        (1, "", "crashed once in cycle 1"),
        (1, "exit code 1", "crashed once in cycle 1: exit code 1"),
        (2, "", "crashed 2 times in cycle 1"),
        (2, "exit code 1", "crashed 2 times in cycle 1, the last time: exit code 1"),
        (3, "exit code 1", "crashed 3 times in cycle 1, the last time: exit code 1"),
    ],
)
def test_safe_mode_after_crashes_names_their_number(crashes, words, expected):
    """Clean exits, running launches and earlier cycles do not count."""
    attempts = [[launched(number), ended(number, "crash")] for number in range(crashes)]
    other = [
        *(launched(7, 0), ended(7, "crash", cycle=0)),
        *(launched(8), ended(8, "clean"), launched(9)),
    ]
    kinds = [STARTED, CYCLE, *other, *(kind for attempt in attempts for kind in attempt)]
    found = row(*kinds, safe("crash", words))
    assert (found.state, found.reason) == ("needs you", expected)


def session(name, process=""):
    return events.SessionStarted(ts=NOW, session=name, harness="codex", process=process)


@pytest.mark.parametrize(
    ("kinds", "alive", "state", "reason"),
    [
        ([session("s", "p1")], ["p1"], "running", "your own session"),
        (
            *([session("s", "p1")], ["p2"]),
            *("stopped", "your last session was killed before it reported its end"),
        ),
        (
            *([session("s")], [""]),
            *("stopped", "your last session was killed before it reported its end"),
        ),
        (
            *([session("s", "p1"), events.SessionEnded(ts=NOW, session="s")], ["p1"]),
            *("stopped", "your last session has ended"),
        ),
        ([session("s", "p1"), session("t", "p2")], ["p1"], "running", "your own session"),
        (
            [session("s", "p1"), session("t", "p2"), events.SessionEnded(ts=NOW, session="t")],
            *(["p1"], "stopped", "your last session has ended"),
        ),
    ],
)
def test_a_session_that_a_person_started(kinds, alive, state, reason):
    """It runs while its process does."""
    found = row(*kinds, is_alive=alive.__contains__)
    assert standing(found) == (state, reason, "", None)
    assert RowInputs(NOW).is_alive("p1") is False


def test_an_agent_with_a_damaged_log_is_broken():
    """The operator's next step is the doctor, before anything else."""
    found = row(STARTED, safe("tampered"))
    assert (found.state, found.command) == ("broken", "rekindle doctor")
    lossy = msgspec.structs.replace(after(STARTED, wanted("running")), loss=LostEvents(5))
    found = build_row(lossy, RowInputs(NOW))
    assert standing(found) == (
        "broken",
        "events are missing from its log, and a stop may be among them",
        "rekindle doctor",
        None,
    )


@pytest.mark.parametrize(
    ("tokens", "window", "known", "expected"),
    [
        (0, 200_000, "reported", WindowFigures()),
        (500, None, "unknown", WindowFigures(Figure(500, "reported"))),
        (500, None, "estimated", WindowFigures(Figure(500, "estimated"))),
        (500, 8_000, "unknown", WindowFigures(Figure(500, "reported"), 8_000)),
        (
            *(500, 8_000, "estimated"),
            WindowFigures(Figure(500, "reported"), 8_000, Figure(6.2, "estimated")),
        ),
        (
            *(510, 8_000, "reported"),
            WindowFigures(Figure(510, "reported"), 8_000, Figure(6.4, "reported")),
        ),
        (
            *(8_000, 8_000, "exact"),
            WindowFigures(Figure(8_000, "reported"), 8_000, Figure(100.0, "reported")),
        ),
    ],
)
def test_how_full_the_window_is(tokens, window, known, expected):
    """The share is given only if the size of the window is known."""
    measured = events.WindowMeasured(ts=NOW, launch="l1", tokens=tokens, window=window, known=known)
    assert row(STARTED, launched(1), measured).window == expected


def test_the_counts_of_a_row():
    """Cycles of this run, loops and refused calls."""
    found = row(
        events.RunStarted(ts=NOW, cycle=2),
        events.DesiredSet(ts=NOW, desired="running", cycles=5),
        events.CycleStarted(ts=NOW, cycle=3),
        events.CycleEnded(ts=NOW, cycle=3),
        events.CycleStarted(ts=NOW, cycle=4),
        events.LoopAdded(ts=NOW, id="tax", text="File it", added="2026-01-01"),
        events.LoopAdded(ts=NOW, id="rent", text="Pay it"),
        events.CallRefused(ts=NOW, launch="l1", cycle=4, tool="Bash", of_run=7),
        is_supervised=True,
    )
    assert (found.cycle, found.cycles_done, found.cycles_of) == (4, 1, 5)
    assert (found.open_loops, found.stale_loops, found.refused) == (2, 1, 7)
    assert (found.open_questions, found.at) == (0, 8)
    assert row(STARTED).cycles_of is None


def test_when_an_agent_was_last_active():
    """The later of its last report and the start of its last launch."""
    assert row(STARTED).last_active is None
    assert row(STARTED, launched(1)).last_active == NOW + timedelta(seconds=2)
    first = row(STARTED, launched(1), launched(2), session("s"))
    assert first.last_active == NOW + timedelta(seconds=4)


def test_the_command_answers_an_open_question():
    """The other answers are listed beside it."""
    question = events.QuestionAsked(
        ts=NOW, question="a-1", number=1, about="waiting", choices=("TEXT", "stop"), default=""
    )
    found = row(STARTED, over("waiting", "Which one?"), question)
    assert (found.command, found.others) == ('rekindle answer a-1 "TEXT"', ("stop",))
    assert found.open_questions == 1
    found = row(STARTED, over("waiting", "Which one?"))
    assert (found.command, found.others) == ('rekindle answer a "TEXT"', ())


@pytest.mark.parametrize(
    ("is_supervised", "command"),
    [(True, "rekindle restart a"), (False, "rekindle restart a && rekindle run a")],
)
def test_the_command_that_ends_safe_mode(is_supervised, command):
    """Only a supervisor starts the agent again."""
    assert row(STARTED, safe("auth"), is_supervised=is_supervised).command == command


@pytest.mark.parametrize(
    ("why", "state", "outcome", "command"),
    [
        ("done", "done", "done", ""),
        ("budget", "stopped", "out-of-budget", "rekindle restart a && rekindle run a"),
        ("waiting", "needs you", "needs-person", 'rekindle answer a "TEXT"'),
    ],
)
def test_the_command_after_a_run(why, state, outcome, command):
    """A finished run needs none."""
    found = row(STARTED, over(why))
    assert (found.state, found.outcome, found.command) == (state, outcome, command)


@pytest.mark.parametrize(
    ("listed", "why", "state", "outcome", "command"),
    [
        ("over", "", "stopped", None, "rekindle status a"),
        ("over", "done", "done", "done", "rekindle status a"),
        ("over", "budget", "stopped", "out-of-budget", "rekindle status a"),
        ("safe", "auth", "needs you", "needs-person", "rekindle status a"),
        ("running", "", "running", None, ""),
    ],
)
def test_the_outcome_in_the_engine_s_list(listed, why, state, outcome, command):
    """A reason decides about the state, except in safe mode, which always needs a person."""
    found = build_listed_row("a", "codex", listed, 3, why)
    assert (found.state, found.outcome, found.command) == (state, outcome, command)
    assert bool(found.reason) is (listed != "running")


@pytest.mark.parametrize(
    ("reported", "unpriced", "source"),
    [(0.5, 0, "reported"), (None, 0, "estimated"), (0.5, 3, "estimated")],
)
def test_the_source_of_the_cost(reported, unpriced, source):
    """Reported by the CLI, unless some tokens have no price."""
    over_run = msgspec.structs.replace(
        ended(1, "clean"), usd=reported, run_usd=1.25, run_tokens=90, unpriced=unpriced
    )
    found = row(STARTED, launched(1), over_run).spend
    assert (found.usd, found.unpriced) == (Figure(1.25, source), unpriced)
    assert found.tokens.value == 90
