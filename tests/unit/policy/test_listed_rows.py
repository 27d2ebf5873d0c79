"""Rows of agents of which only the list of a fleet's engine is known."""

import pytest

from rekindle.policy.operator.build_row import build_listed_row


@pytest.mark.parametrize(
    ("listed", "why", "state", "outcome", "reason"),
    [
        ("over", "done", "done", "done", "the `until:` command passes"),
        ("over", "waiting", "needs you", "needs-person", "its relay waits for a person"),
        ("over", "budget", "stopped", "out-of-budget", "its budget is spent"),
        ("over", "", "stopped", None, "its run is over"),
        ("safe", "auth", "needs you", "needs-person", "a person must log in"),
        ("safe", "budget", "needs you", "out-of-budget", "its budget is spent"),
        ("running", "", "running", None, ""),
    ],
)
def test_the_reason_in_the_list_gives_state_and_outcome(listed, why, state, outcome, reason):
    row = build_listed_row("a", "codex", listed, 3, why)
    assert (row.state, row.outcome, row.reason) == (state, outcome, reason)
    assert row.command == ("" if listed == "running" else "rekindle status a")
