"""Claude Code's own goal mode: after each turn, a model judges whether the goal is reached."""

import json
from collections.abc import Sequence
from typing import Any

from loopback import install
from loopback.anthropic import STRUCTURED
from loopback.log import Part
from loopback.script import Step, Text
from survival import player
from survival.contender import About, Contender
from survival.host import Host

CLIS = ("claude-code",)


class ClaudeGoal(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self.about = About(
            name="claude-goal",
            cli=cli,
            version=install.CLAUDE.version,
            setup='claude -p "/goal $(cat PROMPT.md)" --dangerously-skip-permissions',
        )

    def argv(self, host: Host) -> Sequence[str]:
        goal = f"/goal {(host.project / 'PROMPT.md').read_text()}"
        return ["claude", "-p", goal, "--dangerously-skip-permissions"]

    def answer_side(self, kind: str, body: Any, parts: Sequence[Part]) -> Step | None:
        """Judge by the conversation: it is reached if the agent has reported the end."""
        if kind != STRUCTURED or '"ok"' not in json.dumps(body.get("output_config")):
            return None
        is_reported = any(player.SENTENCE in part.text for part in parts)
        reason = "all items are written" if is_reported else "items are missing"
        return Text(json.dumps({"ok": is_reported, "reason": reason}))


contender = ClaudeGoal
