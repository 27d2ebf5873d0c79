"""When an agent receives a message, for each of its states."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.screens.agent_row import AgentRow
from rekindle.policy.operator.message_arrival import describe_arrival

LATER = datetime(2026, 11, 18, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("row", "around", "words"),
    [
        ({"state": "running"}, (True, True), "with the result of its next tool call"),
        ({"state": "running"}, (True, False), "in its next prompt, because codex takes no"),
        ({"state": "running"}, (False, True), "at the start of its next session"),
        (
            {"state": "waiting", "waits_until": LATER, "reason": "usage limit"},
            (True, False),
            "when its wait ends, at",
        ),
        ({"state": "waiting"}, (True, False), "in its next prompt"),
        (
            {"state": "needs you", "command": "rekindle approve trades-1"},
            (True, True),
            "after you answer: `rekindle approve trades-1`",
        ),
        ({"state": "needs you"}, (True, True), "`rekindle questions trades`"),
        ({"state": "stopped"}, (False, False), "when you start it: `rekindle run trades`"),
        (
            {"state": "done", "command": "rekindle up trades"},
            (False, False),
            "`rekindle up trades`",
        ),
    ],
)
def test_each_state_has_its_moment(row, around, words):
    is_supervised, takes_messages = around
    found = describe_arrival(
        AgentRow(agent="trades", harness="codex", **row),
        is_supervised=is_supervised,
        takes_messages=takes_messages,
    )
    assert words in found
