"""A project in git whose agent records, outside of it, whether it is alone."""

import collections
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from loopback.place import Place, Started

AGENT: Final = "trades"
PROGRAM: Final = """\
import fcntl, os, sys, time
ledger, seconds = sys.argv[1], float(sys.argv[2])
launch = os.environ["REKINDLE_LAUNCH"]

def tell(what):
    fd = os.open(ledger + "/told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, f"{what} {launch} {os.getpid()} {os.getppid()}\\n".encode())
    os.close(fd)

alone = os.open(ledger + "/alone", os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    tell("fault")
    fcntl.flock(alone, fcntl.LOCK_EX)
tell("start")
print("working", flush=True)
time.sleep(seconds)
tell("end")
"""
LOGIN: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "REKINDLE_TRUST": "1"}


class Guarded:
    """The project, the commands that run in it, and the ledger of its agent."""

    def __init__(
        self, place: Place, folder: Path, *, seconds: float = 600.0, ledger: Path | None = None
    ) -> None:
        """Create the project; each launch of the agent works for `seconds`."""
        self.place, self.path = place, folder / "project"
        self.ledger = ledger or folder / "ledger"
        self.ledger.mkdir(parents=True, exist_ok=True)
        self.path.mkdir()
        program = self.ledger / "agent.py"
        program.write_text(PROGRAM)
        command = [sys.executable, "-IS", str(program), str(self.ledger), str(seconds)]
        entry = {"harness": "command", "cycles": 0, "command": command}
        (self.path / "rekindle.yaml").write_text(
            "version: 1\n"
            f"agents: {json.dumps({AGENT: entry})}\n"
            "runtime:\n"
            "  relay: {summarizer: mechanical}\n"
            "  restart: {cooldown: 0s, max_crashes: 100000}\n"
            "  stall: {pause: false}\n"
        )
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
            self.git(*words)

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        subprocess.run(
            ["git", *identity, *words],
            cwd=self.path,
            check=True,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.ledger)},
        )

    def start(self, *words: str, **variables: str) -> Started:
        argv = [sys.executable, "-I", "-m", "rekindle", *words]
        return self.place.start(argv, env={**LOGIN, **variables}, cwd=self.path)

    def __call__(self, *words: str, code: int = 0, **variables: str) -> Started:
        started = self.start(*words, **variables)
        assert started.wait() == code, f"{words}: {started.out}{started.err}"
        return started

    def told(self, what: str) -> list[tuple[str, int, int]]:
        """Return the ledger of the agent's processes: launch, process, supervisor."""
        path = self.ledger / "told"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [line.split() for line in lines]
        return [(launch, int(pid), int(by)) for kind, launch, pid, by in found if kind == what]

    def until_up(self, after: int = 0, timeout: float = 120) -> tuple[int, int]:
        """Wait for a running agent with more than `after` starts; return it and its supervisor."""

        def found() -> tuple[int, int] | None:
            started = self.told("start")
            if len(started) <= after:
                return None
            _, pid, by = started[-1]
            return (pid, by) if {pid, by} <= set(self.place.living()) else None

        both: tuple[int, int] = self.place.wait_for(found, timeout)
        return both

    def supervisors(self) -> list[int]:
        found = self.place.living().items()
        return [pid for pid, argv in found if {"rekindle", "run"} <= set(argv)]

    def agents(self) -> list[int]:
        program = str(self.ledger / "agent.py")
        return [pid for pid, argv in self.place.living().items() if program in argv]

    def until_gone(self, timeout: float = 120) -> None:
        """Check that no agent runs now, and wait until no supervisor does."""
        assert self.agents() == []
        self.place.wait_for(lambda: not self.supervisors(), timeout)

    def copy_state(self, to: Path) -> None:
        """Copy .rekindle as it is now, while others write to it."""
        with contextlib.suppress(shutil.Error):  # a temporary file that is already gone
            shutil.copytree(self.path / ".rekindle", to)

    @property
    def log(self) -> Path:
        return self.path / ".rekindle" / "agents" / AGENT / "ops.jsonl"

    def events(self, kind: str, log: Path | None = None) -> list[dict[str, Any]]:
        try:
            lines = (log or self.log).read_bytes().splitlines()
        except OSError:
            return []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]

    def repeated_ends(self) -> list[int]:
        """Return the cycles that the log ends more than once."""
        ended = collections.Counter(one["cycle"] for one in self.events("cycle.ended"))
        return [cycle for cycle, times in ended.items() if times > 1]
