"""Our own program beside a real agent CLI, in a place without other processes."""

import json
import shlex
import signal
import sys
from collections.abc import Sequence
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
    cycles: 1
    until: ["true"]
personas:
  summarizer: {adapter: command, command: ["false"]}
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

SERVER = Path(__file__).parents[1] / "loopback/mcp_server.py"
"""An MCP server whose tool `put` creates a file."""


def bash(command: str) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "as the test says"})


def long_call() -> ToolCall:
    return bash(shlex.join([sys.executable, "-c", WORK]))


class Rekindle:
    """Our own program, in the place and the home of a sandboxed CLI."""

    def __init__(self, cli, place, by_hand: Sequence[str] = ()):
        self.cli, self.place, self.project = cli, place, cli.project
        self._by_hand = list(by_hand)
        self.program = [sys.executable, "-I", "-m", "rekindle"]

    def start(self, *arguments: str):
        return self.place.start(
            [*self.program, *arguments],
            env=self.cli.environment(LC_ALL="C.UTF-8"),
            cwd=self.project,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        started = self.start(*arguments)
        assert started.wait() == code, started.out + started.err
        return started.out

    def fold(self) -> None:
        """Fold the reports of hooks into the log; `doctor` may also find that nothing runs."""
        started = self.start("doctor", "--fix")
        assert started.wait() in {0, 8}, started.out + started.err

    def events(self, kind: str = "") -> list[dict]:
        lines = self("events", "--json", "--last", "0").splitlines()
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in {"", one["kind"]}]

    def by_hand(self, prompt: str, *arguments: str, folder: str = "."):
        """Start the CLI as a person who knows nothing of a supervisor."""
        return self.place.start(
            [*self._by_hand, *arguments],
            env=self.cli.environment(),
            cwd=self.project / folder,
            stdin=prompt,
        )

    @property
    def at_work(self) -> Path:
        """Return the file that exists once the long tool call has begun."""
        return self.project / "working"

    def tools(self) -> list[list[str]]:
        return [argv for argv in self.place.processes() if argv[1:] == ["-c", WORK]]

    def agents(self) -> list[list[str]]:
        """Return the CLI's processes, named as on the PATH or by a whole path."""
        names = {str(self.cli.program), *map(str, self.cli.bin.iterdir())}
        names |= {path.name for path in self.cli.bin.iterdir()}
        return [argv for argv in self.place.processes() if names & set(argv[:1])]

    def parent_of(self, pid: int) -> int:
        """Return the process id, in the place, of the parent of a process."""
        found = self.place.start(
            ["sh", "-c", f"cut -d' ' -f4 /proc/{pid}/stat"], env={"PATH": "/bin"}, cwd=self.project
        )
        assert found.wait() == 0
        return int(found.out)

    def wait_until_hooked(self) -> int:
        """Return the CLI's process id, which its hook received at the start of the tool call."""
        hooked = self.project / "hooked"
        self.place.wait_for(lambda: (self.at_work.exists() and hooked.exists()) or None)
        return int(hooked.read_text())


def killed_in_a_tool_call(rekindle) -> int:
    """Kill only the CLI while its tool runs."""
    pid = rekindle.wait_until_hooked()
    assert len(rekindle.tools()) == 1
    rekindle.place.signal(pid, signal.SIGKILL)
    return pid
