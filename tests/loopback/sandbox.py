"""An agent CLI in a sandbox: no configuration of this machine, and no network but loopback.

The programs of a sandbox run in a place with its own processes: some CLIs leave their tools running
when they are killed, and some even after SIGTERM.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from loopback.model import Model
from loopback.place import Place, Started

KEY: Final = "sk-test-loopback"
"""An address that belongs to no host."""


@dataclass(frozen=True)
class Run:
    """The exit of a headless run, and its output."""

    returncode: int
    stdout: str
    stderr: str

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Return the lines of the stream; the last may be torn if the program was killed."""
        return [json.loads(line) for line in self.stdout.split("\n")[:-1]]

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        """Return the events of a type, or of one of its subtypes."""
        return [
            event
            for event in self.events
            if event["type"] == kind and subtype in {None, event.get("subtype")}
        ]


class Folders:
    """A home, a temporary folder and a project, all of them thrown away."""

    def __init__(self, root: Path) -> None:
        self.home, self.tmp, self.project = root / "home", root / "tmp", root / "project"
        self.bin = root / "bin"
        for folder in (self.home, self.tmp, self.project, self.bin):
            folder.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        """Return the environment of every program, without the tests' own."""
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
        }


R = TypeVar("R", bound=Run)


class Launched(Generic[R]):
    """A run that was started in a place."""

    def __init__(self, started: Started, kind: type[R]) -> None:
        self._started, self._kind = started, kind

    @property
    def pid(self) -> int:
        """Return its pid in the place, as the program itself knows it."""
        return self._started.pid

    @property
    def out(self) -> str:
        """Return its output so far."""
        return self._started.out

    def signal(self, number: int) -> None:
        self._started.signal(number)

    def wait(self, timeout: float = 180) -> R:
        """Wait for the end of the run; the place ends one that takes longer."""
        code = self._started.wait(timeout)
        return self._kind(code, self._started.out, self._started.err)


class Sandbox(ABC, Folders, Generic[R]):
    """The common part of the sandboxes of all CLIs."""

    kind: type[R]
    """The type of this CLI's run."""

    def __init__(self, program: Path, *, model: Model, place: Place, root: Path) -> None:
        super().__init__(root)
        self.program, self.model, self.place = program, model, place

    @property
    @abstractmethod
    def headless(self) -> tuple[str, ...]:
        """Return the command that reads a prompt from its standard input, and prints JSON."""

    @abstractmethod
    def hooks(self, hooks: Mapping[str, Sequence[str]]) -> Path:
        """Run one more command at each of these events; return the settings file."""

    @abstractmethod
    def resuming(self, session: str) -> tuple[str, ...]:
        """Return the arguments that resume a session."""

    def beginning(self, session: str) -> tuple[str, ...]:
        """Return the arguments that give a new session this id, if the program supports that."""
        return ()

    @abstractmethod
    def transcript(self, session: str) -> Path:
        """Return the file of this session."""

    @abstractmethod
    def beside(self, session: str) -> list[Path]:
        """Return the folder of the session's sub-agents."""

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment() | more

    def start(self, prompt: str, *arguments: str, **environment: str) -> Launched[R]:
        """Start a headless run, with the prompt on its standard input."""
        return self.launch([*self.headless, *arguments], prompt, **environment)

    def launch(self, argv: Sequence[str], prompt: str, **environment: str) -> Launched[R]:
        """Start a command of the test in the model's network."""
        started = self.place.start(
            argv, env=self.environment(**environment), cwd=self.project, stdin=prompt
        )
        return Launched(started, self.kind)

    def run(self, prompt: str, *arguments: str, timeout: float = 60, **environment: str) -> R:
        """Run to the end."""
        return self.start(prompt, *arguments, **environment).wait(timeout)

    def resume(self, session: str, prompt: str, *arguments: str, **environment: str) -> R:
        """Resume a session, and run it to its end."""
        return self.run(prompt, *arguments, *self.resuming(session), **environment)


_KEEP: Final = Path(__file__).parents[1] / "recordings" / "keep.py"


def keeping(sandbox: Sandbox[Any], events: Iterable[str]) -> Path:
    """Store the payloads of these events by a hook; return the file."""
    kept = sandbox.home / "hooked"
    keep = (sys.executable, "-I", "-S", str(_KEEP), str(kept), "-")
    sandbox.hooks({event: (*keep, event) for event in events})
    return kept


def hooked(kept: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the events that fired, in their order, each with its payload."""
    rows = kept.read_text().splitlines() if kept.exists() else []
    return [(event, json.loads(told)) for event, told in (row.split(" ", 1) for row in rows)]
