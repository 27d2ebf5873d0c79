"""The table of stop reasons is complete."""

import types
from pathlib import Path
from typing import Literal, get_args

import pytest

from rekindle.documents.launches import launch_types
from rekindle.documents.launches.launch_types import ExitKind
from rekindle.documents.screens.agent_row import AgentState
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.backoff import (
    compute_probe_pause,
)
from rekindle.policy.exits.stop_reasons import EXIT_KINDS, OUTCOMES, REACTIONS, STOP_REASONS
from rekindle.policy.settings.runtime_settings import PROBE_INTERVAL

SOURCE = Path(stop_reasons.__file__).read_text(encoding="utf-8")


def import_with(before="", after=""):
    """Import the module once more, with a change in its source."""
    assert before in SOURCE
    module = types.ModuleType("rekindle.policy.stop_reasons_of_a_test")
    exec(compile(SOURCE.replace(before, after, 1), "stop_reasons.py", "exec"), module.__dict__)  # noqa: S102 - our own source
    return module


def test_an_exit_kind_without_a_row_fails_the_import(monkeypatch):
    """A new kind of exit cannot pass for a crash."""
    import_with()
    monkeypatch.setattr(launch_types, "ExitKind", Literal[(*get_args(ExitKind), "weather")])
    with pytest.raises(TypeError, match="weather"):
        import_with()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('    "host",\n]', '    "host",\n    "weather",\n]'),
        ('    "out-of-budget",\n', '    "out-of-budget",\n    "weather",\n'),
        ('    "person",\n]', '    "person",\n    "weather",\n]'),
        ('    "cycles": ReasonRow(', '    "weather": ReasonRow('),
        (', reaction="refresh")', ")"),
    ],
    ids=["reason", "outcome", "reaction", "row", "exit without a reaction"],
)
def test_a_kind_without_a_row_fails_the_import(before, after):
    """Each of the three tables has exactly the rows that its type names."""
    with pytest.raises(TypeError, match=r"weather|context-full"):
        import_with(before, after)


def test_the_check_of_rows_compares_both_ways():
    stop_reasons.require_rows(["a", "b"], Literal["a"], Literal["b"])
    for table in (["a"], ["a", "b", "c"]):
        with pytest.raises(TypeError, match="row"):
            stop_reasons.require_rows(table, Literal["a", "b"])


def test_every_column_has_values_of_its_type():
    assert {*EXIT_KINDS} == {*get_args(ExitKind), "lost"}
    assert {one.reaction for one in STOP_REASONS.values()} == {None, *REACTIONS}
    assert {one.outcome for one in STOP_REASONS.values()} == {*OUTCOMES}
    assert {one.state for one in OUTCOMES.values()} <= {*get_args(AgentState)}
    assert {one.severity for one in OUTCOMES.values()} <= {None, *get_args(stop_reasons.Severity)}
    assert {name for name, one in OUTCOMES.items() if one.asks} == {
        *("stalled", "needs-person", "out-of-budget")
    }


def test_every_outcome_has_words_and_an_exit_code_of_its_own():
    assert len({one.words for one in OUTCOMES.values()}) == len(OUTCOMES) == 8
    assert len({one.exit_code for one in OUTCOMES.values()}) == len(OUTCOMES)


def test_a_reason_of_a_newer_version_counts_as_a_crash():
    assert stop_reasons.parse_reason("weather") == "crash"
    assert stop_reasons.find_reaction("weather") == stop_reasons.find_reaction("crash")
    assert explain_reasons.render_hint("weather", "trades") == explain_reasons.render_hint(
        "crash", "trades"
    )


def test_the_interval_of_probes_comes_from_its_thresholds():
    """Each text that names it changes with them."""
    assert (
        f"{compute_probe_pause(0) / 60:g} to {compute_probe_pause(9) / 60:g} minutes"
        == PROBE_INTERVAL
    )
    sources = Path(stop_reasons.__file__).parents[1].rglob("*.py")
    assert [path.name for path in sources if PROBE_INTERVAL in path.read_text()] == []


def test_only_limits_and_outages_have_an_external_cause():
    outside = {reaction for reaction, row in REACTIONS.items() if row.is_outside}
    assert outside == {"again", "wait", "retry"}
