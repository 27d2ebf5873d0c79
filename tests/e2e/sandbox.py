"""Our own program beside the real Claude Code, in a place where nothing else lives."""

import json
import shlex
import signal
import sys
from pathlib import Path

from loopback.script import ToolCall

BANNER = "=== RECOVERY DETECTED ==="
TASK = "# Task\nShip the parser, in small steps.\n"
MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
personas:
  default: {permissions: {allowed_tools: [Bash]}}
"""
RELAY = """\
## Current Phase
Implementation

## Next Action
Write the parser's tests

## Open Questions
- Which encoding?
"""
WORK = "import time, pathlib; pathlib.Path('working').touch(); time.sleep(600)"
"""A tool call that would take ten minutes."""


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "as the test says"})


def long_call() -> ToolCall:
    return bash(shlex.join([sys.executable, "-c", WORK]))


class Rekindle:
    """Our own program, in the place and the home of the sandboxed Claude Code."""

    def __init__(self, claude, place):
        self.claude, self.place, self.project = claude, place, claude.project

    def start(self, *arguments: str):
        return self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *arguments],
            env=self.claude.environment(LC_ALL="C.UTF-8"),
            cwd=self.project,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        started = self.start(*arguments)
        assert started.wait() == code, started.out + started.err
        return started.out

    def events(self, kind: str = "") -> list[dict]:
        lines = self("events", "--json", "--last", "0").splitlines()
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in {"", one["kind"]}]

    def claude_by_hand(self, prompt: str, *arguments: str):
        """What a person types, who knows nothing of a supervisor."""
        argv = [str(self.claude.program), "-p", "--output-format", "stream-json", "--verbose"]
        return self.place.start(
            [*argv, "--allowedTools=Bash", *arguments],
            env=self.claude.environment(),
            cwd=self.project,
            stdin=prompt,
        )

    @property
    def at_work(self) -> Path:
        """There once the long tool call has begun."""
        return self.project / "working"

    def tools(self) -> list[list[str]]:
        return [argv for argv in self.place.processes() if WORK in argv]

    def agents(self) -> list[list[str]]:
        names = {"claude", str(self.claude.program)}
        return [argv for argv in self.place.processes() if names & set(argv[:1])]

    def wait_until_hooked(self) -> int:
        """Claude Code's own process number, as its hook was told it when the tool call began."""
        hooked = self.project / "hooked"
        self.place.wait_for(lambda: (self.at_work.exists() and hooked.exists()) or None)
        return int(hooked.read_text())


def killed_in_a_tool_call(rekindle) -> int:
    """Kill Claude Code, and it alone, while its tool runs."""
    pid = rekindle.wait_until_hooked()
    assert len(rekindle.tools()) == 1
    rekindle.place.signal(pid, signal.SIGKILL)
    return pid
