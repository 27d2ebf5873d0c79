"""The table of endings: complete, and the only one."""

import types
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

import pytest

from rekindle.documents import launch
from rekindle.documents.launch import ExitKind
from rekindle.documents.row import State
from rekindle.policy import endings
from rekindle.policy.backoff import backoff, probe_pause
from rekindle.policy.endings import ENDINGS, EXITS, OUTCOMES, REACTIONS
from rekindle.policy.settings import Restart

SOURCE = Path(endings.__file__).read_text(encoding="utf-8")


def import_with(before="", after=""):
    """Import the module once more, with a change in its source."""
    assert before in SOURCE
    module = types.ModuleType("rekindle.policy.endings_of_a_test")
    exec(compile(SOURCE.replace(before, after, 1), "endings.py", "exec"), module.__dict__)  # noqa: S102 - our own source
    return module


def test_an_exit_kind_without_a_row_fails_the_import(monkeypatch):
    """A new kind of exit cannot pass for a crash."""
    import_with()
    monkeypatch.setattr(launch, "ExitKind", Literal[(*get_args(ExitKind), "quota")])
    with pytest.raises(TypeError, match="quota"):
        import_with()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('    "host",\n]', '    "host",\n    "quota",\n]'),
        ('    "out-of-budget",\n', '    "out-of-budget",\n    "quota",\n'),
        ('    "person",\n]', '    "person",\n    "quota",\n]'),
        ('    "cycles": EndingRow(', '    "quota": EndingRow('),
        (', reaction="renew")', ")"),
    ],
    ids=["reason", "outcome", "reaction", "row", "exit without a reaction"],
)
def test_a_kind_without_a_row_fails_the_import(before, after):
    """Each of the three tables has exactly the rows that its type names."""
    with pytest.raises(TypeError, match=r"quota|costly"):
        import_with(before, after)


def test_the_check_of_rows_compares_both_ways():
    endings.require_rows(["a", "b"], Literal["a"], Literal["b"])
    for table in (["a"], ["a", "b", "c"]):
        with pytest.raises(TypeError, match="row"):
            endings.require_rows(table, Literal["a", "b"])


def test_every_column_has_values_of_its_type():
    assert {*EXITS} == {*get_args(ExitKind), "lost"}
    assert {one.reaction for one in ENDINGS.values()} == {None, *REACTIONS}
    assert {one.outcome for one in ENDINGS.values()} == {*OUTCOMES}
    assert {one.state for one in OUTCOMES.values()} <= {*get_args(State)}
    assert {one.severity for one in OUTCOMES.values()} <= {None, *get_args(endings.Severity)}


def test_every_outcome_has_words_and_an_exit_code_of_its_own():
    assert len({one.words for one in OUTCOMES.values()}) == len(OUTCOMES) == 8
    assert len({one.exit_code for one in OUTCOMES.values()}) == len(OUTCOMES)


def test_a_reason_of_a_newer_version_counts_as_a_crash():
    assert endings.known("quota") == "crash"
    assert endings.reaction("quota") == endings.reaction("crash")
    assert endings.hint("quota", "trades") == endings.hint("crash", "trades")


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, "rekindle answer trades"),
        ("waiting", False, "rekindle answer trades"),
        ("auth", True, "rekindle restart trades"),
        ("auth", False, "rekindle run trades"),
        ("stalled", False, "rekindle restart trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_a_hint_ends_with_the_command_that_continues(why, is_safe, command):
    assert endings.command(why, "trades", is_safe=is_safe) == command
    assert f"`{command}`" in endings.hint(why, "trades", is_safe=is_safe)


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, "rekindle answer trades"),
        ("auth", True, "rekindle restart trades && rekindle run trades"),
        ("budget", False, "rekindle restart trades && rekindle run trades"),
        ("stalled", False, "rekindle run trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_without_a_supervisor_the_command_starts_one(why, is_safe, command):
    """`restart` alone starts nothing, and `run` alone would stay in safe mode."""
    how = {"is_safe": is_safe, "is_supervised": False}
    assert endings.command(why, "trades", **how) == command
    assert f"`{command}`" in endings.hint(why, "trades", **how)


def test_a_wait_for_today_is_told_by_the_time_of_day():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    until = now + timedelta(hours=1, minutes=49)
    assert endings.explain_wait("limit", until, now, UTC) == "until 15:49: a usage limit"
    tomorrow = endings.explain_wait("limit", until + timedelta(days=1), now, UTC)
    assert tomorrow == "until 2026-04-10 15:49: a usage limit"


def test_a_wait_after_a_crash_tells_the_exit_and_the_retry():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    told = endings.explain_wait("crash", now, now, UTC, "exit code 3")
    assert told == "until 14:00, then retried: it crashed, exit code 3"


@pytest.mark.parametrize("why", ENDINGS)
def test_no_hint_has_an_unfilled_place(why):
    assert not {*"{}"} & {*endings.hint(why, "trades"), *endings.explain(why)}
    assert endings.explain(why, "its own words") == "its own words"


@pytest.mark.parametrize("why", ENDINGS)
def test_a_notification_of_an_ending_has_the_words_of_its_outcome(why):
    title, severity = endings.notice(why)
    row = endings.outcome(why)
    assert (title, severity) == (row.words, row.severity or "info")


def test_other_news_keeps_its_own_title():
    assert endings.notice("folder lost") == ("folder lost", "warning")


def test_pauses_double_up_to_their_maximum_and_never_overflow():
    limits = Restart()
    assert [backoff(limits, times) for times in (-1, 0, 1, 2, 10**9)] == [10, 10, 20, 40, 300]
    assert [probe_pause(times) for times in (0, 1, 2, 10**9)] == [900, 1800, 3600, 3600]
