"""The row of an agent, from its projection."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.manifest import Budget
from rekindle.documents.screens.agent_row import Figure, WindowFigures
from rekindle.policy.operator.build_row import (
    RowInputs,
    build_broken_row,
    build_listed_row,
    build_new_row,
    build_row,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

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
        ("waiting", "waiting", ""),
        ("safe", "needs you", "in safe mode"),
        ("stopped", "stopped", "by you"),
        ("odd", "broken", "the engine lists it as odd"),
    ],
)
def test_a_state_of_the_engine_s_list(listed, state, reason):
    found = build_listed_row("a", "codex", listed, 3)
    assert (found.state, found.reason, found.cycle, found.label) == (state, reason, 3, state)
