"""The table of endings: complete, and the only one."""

import types
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

import pytest

from rekindle.documents.launches import cli_output
from rekindle.documents.launches.cli_output import ExitKind
from rekindle.documents.screens.agent_row import AgentState
from rekindle.policy.exits import exit_table
from rekindle.policy.exits.backoff import (
    compute_backoff,
    compute_probe_pause,
)
from rekindle.policy.exits.exit_table import (
    EXIT_KINDS,
    EXIT_TABLE,
    OUTCOMES,
    REACTIONS,
)
from rekindle.policy.settings.runtime_settings import PROBE_INTERVAL, RestartSettings

SOURCE = Path(exit_table.__file__).read_text(encoding="utf-8")


def import_with(before="", after=""):
    """Import the module once more, with a change in its source."""
    assert before in SOURCE
    module = types.ModuleType("rekindle.policy.endings_of_a_test")
    exec(compile(SOURCE.replace(before, after, 1), "endings.py", "exec"), module.__dict__)  # noqa: S102 - our own source
    return module


def test_an_exit_kind_without_a_row_fails_the_import(monkeypatch):
    """A new kind of exit cannot pass for a crash."""
    import_with()
    monkeypatch.setattr(cli_output, "ExitKind", Literal[(*get_args(ExitKind), "quota")])
    with pytest.raises(TypeError, match="quota"):
        import_with()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('    "host",\n]', '    "host",\n    "quota",\n]'),
        ('    "out-of-budget",\n', '    "out-of-budget",\n    "quota",\n'),
        ('    "person",\n]', '    "person",\n    "quota",\n]'),
        ('    "folder lost",\n', '    "folder lost",\n    "quota",\n'),
        ('    "cycles": ExitRow(', '    "quota": ExitRow('),
        (', reaction="renew")', ")"),
    ],
    ids=["reason", "outcome", "reaction", "news", "row", "exit without a reaction"],
)
def test_a_kind_without_a_row_fails_the_import(before, after):
    """Each of the four tables has exactly the rows that its type names."""
    with pytest.raises(TypeError, match=r"quota|costly"):
        import_with(before, after)


def test_the_check_of_rows_compares_both_ways():
    exit_table.require_rows(["a", "b"], Literal["a"], Literal["b"])
    for table in (["a"], ["a", "b", "c"]):
        with pytest.raises(TypeError, match="row"):
            exit_table.require_rows(table, Literal["a", "b"])


def test_every_column_has_values_of_its_type():
    assert {*EXIT_KINDS} == {*get_args(ExitKind), "lost"}
    assert {one.reaction for one in EXIT_TABLE.values()} == {None, *REACTIONS}
    assert {one.outcome for one in EXIT_TABLE.values()} == {*OUTCOMES}
    assert {one.state for one in OUTCOMES.values()} <= {*get_args(AgentState)}
    assert {one.severity for one in OUTCOMES.values()} <= {None, *get_args(exit_table.Severity)}
    assert {name for name, one in OUTCOMES.items() if one.asks} == {
        *("stalled", "needs-person", "out-of-budget")
    }


def test_every_outcome_has_words_and_an_exit_code_of_its_own():
    assert len({one.words for one in OUTCOMES.values()}) == len(OUTCOMES) == 8
    assert len({one.exit_code for one in OUTCOMES.values()}) == len(OUTCOMES)


def test_a_reason_of_a_newer_version_counts_as_a_crash():
    assert exit_table.parse_reason("quota") == "crash"
    assert exit_table.find_reaction("quota") == exit_table.find_reaction("crash")
    assert exit_table.render_hint("quota", "trades") == exit_table.render_hint("crash", "trades")


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, 'rekindle answer trades "TEXT"'),
        ("waiting", False, 'rekindle answer trades "TEXT"'),
        ("auth", True, "rekindle restart trades"),
        ("auth", False, "rekindle run trades"),
        ("stalled", False, "rekindle restart trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_a_hint_ends_with_the_command_that_continues(why, is_safe, command):
    assert exit_table.render_continue_command(why, "trades", is_safe=is_safe) == command
    assert f"`{command}`" in exit_table.render_hint(why, "trades", is_safe=is_safe)


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, 'rekindle answer trades "TEXT"'),
        ("auth", True, "rekindle restart trades && rekindle run trades"),
        ("budget", False, "rekindle restart trades && rekindle run trades"),
        ("stalled", False, "rekindle run trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_without_a_supervisor_the_command_starts_one(why, is_safe, command):
    """`restart` alone starts nothing, and `run` alone would stay in safe mode."""
    how = {"is_safe": is_safe, "is_supervised": False}
    assert exit_table.render_continue_command(why, "trades", **how) == command
    assert f"`{command}`" in exit_table.render_hint(why, "trades", **how)


def test_a_wait_for_today_is_told_by_the_time_of_day():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    until = now + timedelta(hours=1, minutes=49)
    assert exit_table.explain_wait("limit", until, now, UTC) == "until 15:49: a usage limit"
    tomorrow = exit_table.explain_wait("limit", until + timedelta(days=1), now, UTC)
    assert tomorrow == "until 2026-04-10 15:49: a usage limit"


def test_a_wait_after_a_crash_tells_the_exit_and_the_retry():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    told = exit_table.explain_wait("crash", now, now, UTC, "exit code 3")
    assert told == "until 14:00, then retried: it crashed, exit code 3"


@pytest.mark.parametrize("why", EXIT_TABLE)
def test_no_hint_has_an_unfilled_place(why):
    assert not {*"{}"} & {*exit_table.render_hint(why, "trades"), *exit_table.explain_reason(why)}
    assert exit_table.explain_reason(why, "its own words") == "its own words"


@pytest.mark.parametrize("why", EXIT_TABLE)
def test_a_notification_of_an_ending_has_the_words_of_its_outcome(why):
    title, severity = exit_table.describe_notification(why)
    row = exit_table.find_outcome(why)
    assert (title, severity) == (EXIT_TABLE[why].state or row.words, row.severity or "info")


def test_a_log_that_something_else_changed_is_notified_as_broken():
    assert exit_table.describe_notification("tampered") == ("broken", "failure")


def test_other_news_keeps_its_own_title():
    assert exit_table.describe_notification("folder lost") == ("folder lost", "warning")


def test_news_of_a_newer_version_is_notified_as_a_failure():
    """A host of a fleet may be older than what asks it; nothing else may take any words."""
    assert exit_table.parse_notification("folder lost") == "folder lost"
    what = exit_table.parse_notification("of a newer version")
    assert exit_table.describe_notification(what) == ("needs you", "failure")
    with pytest.raises(KeyError):
        exit_table.describe_notification("of a newer version")


def test_the_interval_of_probes_comes_from_its_thresholds():
    """Each text that names it changes with them."""
    assert (
        f"{compute_probe_pause(0) / 60:g} to {compute_probe_pause(9) / 60:g} minutes"
        == PROBE_INTERVAL
    )
    sources = Path(exit_table.__file__).parents[1].rglob("*.py")
    assert [path.name for path in sources if PROBE_INTERVAL in path.read_text()] == []


def test_pauses_double_up_to_their_maximum_and_never_overflow():
    limits = RestartSettings()
    assert [compute_backoff(limits, times) for times in (-1, 0, 1, 2, 10**9)] == [
        10,
        10,
        20,
        40,
        300,
    ]
    assert [compute_probe_pause(times) for times in (0, 1, 2, 10**9)] == [900, 1800, 3600, 3600]
