"""An agent of a real CLI that is kept alive: by its supervisor, which a watchdog keeps alive."""

import json
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from e2e.sandbox import WORK, Rekindle
from loopback.log import Request
from loopback.model import Model
from loopback.place import Place, Started
from loopback.sandbox import KEY
from loopback.script import Step, ToolCall
from torture.clis import Cli

EVERY_SECONDS: Final = 1.0
"""Interval of the watchdog in these tests."""
_RUNTIME: Final = "runtime:\n  watch: {every: 1s}\n"
_KEYS: Final = {"claude-code": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}


class Kept:
    def __init__(self, name: str, sandbox: Any, model: Model, place: Place) -> None:
        self.cli, self.model, self.place = Cli(name, sandbox, model, place), model, place
        self.rekindle: Rekindle = self.cli.supervised()
        self.project: Path = sandbox.project
        self.folder = self.project / ".rekindle/agents/trades"
        # The shell's keys are not inherited: cron or a service would pass them, so set them here.
        self.configure()

    def configure(self, runtime: str = _RUNTIME, **agent: Any) -> None:
        """Write the manifest again, with more settings for the agent."""
        manifest = self.project / "rekindle.yaml"
        if not hasattr(self, "_plain"):
            self._plain = manifest.read_text()
        more = {"env": {_KEYS[self.cli.name]: KEY}, **agent}
        lines = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in more.items())
        anchor = "    prompt: PROMPT.md\n"
        manifest.write_text(self._plain.replace(anchor, anchor + lines) + runtime)

    def moved(self, place: Place) -> "Kept":
        """Return the same disk in another place, as after a reboot of the host."""
        self.place = self.rekindle.place = self.cli.place = place
        return self

    def shell(self, line: str, **more: Any) -> ToolCall:
        call = self.cli.kind.shell(line)
        return ToolCall(call.name, call.input, **more)

    def long_call(self) -> ToolCall:
        """Return ten minutes of work in its own session, which survives its parents."""
        return self.shell(f"{shlex.join(['setsid', sys.executable, '-c', WORK])} & wait")

    # Actions

    def __call__(self, *arguments: str, code: int = 0) -> str:
        return self.rekindle(*arguments, code=code)

    def start(self, *arguments: str) -> Started:
        return self.rekindle.start(*arguments)

    def start_as(self, argv: Sequence[str], environment: Mapping[str, str]) -> Started:
        """Start the program in the way that cron or a service does."""
        return self.place.start(argv, env=environment, cwd=self.project)

    def kill(self, *pids: int) -> datetime:
        """Kill all of them at once; return the time."""
        assert pids
        # Stop them first, so that none sees another one die.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            now = datetime.now(UTC)
            for pid in pids:
                self.place.signal(pid, number)
        self.place.wait_for(lambda: not set(pids) & set(self.place.living()))
        return now

    def works(self) -> int:
        """Wait until the agent's tool call is running; return the process id of the CLI."""
        pid = self.rekindle.wait_until_hooked()
        assert len(self.rekindle.tools()) == 1
        return pid

    # Observations

    def supervisors(self) -> list[int]:
        return self._ours("run")

    def daemons(self) -> list[int]:
        return self._ours("daemon")

    def _ours(self, command: str) -> list[int]:
        found = self.place.living().items()
        return [
            pid
            for pid, argv in found
            if "rekindle" in argv[:4] and command in argv[:5] and "-m" in argv[:3]
        ]

    def is_alone(self) -> None:
        """Wait until exactly one of each process runs, and none of the old ones."""
        assert self.rekindle.tools() == []
        assert len(self.rekindle.agents()) == 1
        # On a slow host more than one is started; those without the lock exit.
        self.wait_for(lambda: len(self.supervisors()) == 1)
        assert len(self.rekindle.agents()) == 1

    def asked(self, step: Step) -> Request:
        return self.cli.asked(step)

    def log(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the log as it is on disk: any of our commands would fold it first."""
        path = self.folder / "ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in {"", one["kind"]}]

    def until(self, kind: str, count: int = 1, timeout: float = 120) -> dict[str, Any]:
        """Wait until the log has this many events of a kind; return the last."""
        self.wait_for(lambda: len(self.log(kind)) >= count, timeout)
        return self.log(kind)[count - 1]

    def wait_for(self, found: Callable[[], Any], timeout: float = 120) -> Any:
        return self.place.wait_for(found, timeout)

    def output(self) -> str:
        """Return the output of its background supervisors."""
        path = self.folder / "run/output.log"
        return path.read_text() if path.exists() else ""

    def exits(self) -> list[str]:
        return [one["exit"] for one in self.log("launch.ended")]

    def sessions(self) -> list[str]:
        """Return the sessions of its launches; a CLI may name its session only at the end."""
        ended = {one["launch"]: one["session"] for one in self.log("launch.ended")}
        return [ended.get(one["launch"], one["session"]) for one in self.log("launch.started")]

    def is_over(self) -> None:
        """Wait until its work is done and no process is left."""
        self.until("run.ended")
        self.wait_for(lambda: not self.supervisors())
        assert self.rekindle.agents() == self.rekindle.tools() == []


def at(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["ts"])
