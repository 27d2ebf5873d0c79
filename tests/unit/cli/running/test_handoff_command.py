"""What `rekindle handoff` tells the user."""

import pytest

from rekindle.api.hand_off import AcceptedHandoff
from rekindle.cli.running.handoff_command import describe_handoff


@pytest.mark.parametrize(
    ("accepted", "stays", "words"),
    [
        (AcceptedHandoff("", is_working=True), False, "stop between two tool calls; a fresh one"),
        (AcceptedHandoff("codex", is_working=True), False, "continues on codex with a checkpoint"),
        (AcceptedHandoff("", is_working=True), True, "stop at the user's next prompt"),
        (AcceptedHandoff("codex", is_working=False), False, "no session is working now"),
    ],
)
def test_the_message_says_what_happens_next(accepted, stays, words):
    """It names the session only if there is one."""
    line, following = describe_handoff("trades", accepted, stays=stays)
    assert words in line
    assert ("its session" in line) == accepted.is_working
    assert "`rekindle events -f trades`" in following
