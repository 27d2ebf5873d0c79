"""An agent CLI in a sandbox: no configuration of this machine, and no network but loopback.

What a sandbox starts lives in a place with processes of its own: some CLIs leave their tools alive
when they are killed, and some even when they are asked to end.
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
    """How a headless run ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The lines of the stream; the last may be torn if the program was killed."""
        return [json.loads(line) for line in self.stdout.split("\n")[:-1]]

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        """The events of a type, or of one of its subtypes."""
        return [
            event
            for event in self.events
            if event["type"] == kind and subtype in {None, event.get("subtype")}
        ]


class Folders:
    """A home, a place for temporary files and a project, all of them thrown away."""

    def __init__(self, root: Path) -> None:
        self.home, self.tmp, self.project = root / "home", root / "tmp", root / "project"
        self.bin = root / "bin"
        for folder in (self.home, self.tmp, self.project, self.bin):
            folder.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        """What every program sees, and nothing of the tests' own environment."""
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
        }


R = TypeVar("R", bound=Run)


class Launched(Generic[R]):
    """A run that has been started in a place."""

    def __init__(self, started: Started, kind: type[R]) -> None:
        self._started, self._kind = started, kind

    @property
    def pid(self) -> int:
        """Its number in the place, as the program itself knows it."""
        return self._started.pid

    @property
    def out(self) -> str:
        """What it has said so far."""
        return self._started.out

    def signal(self, number: int) -> None:
        self._started.signal(number)

    def wait(self, timeout: float = 60) -> R:
        """The run at its end; the place ends what takes longer."""
        code = self._started.wait(timeout)
        return self._kind(code, self._started.out, self._started.err)


class Sandbox(ABC, Folders, Generic[R]):
    """What the sandboxes of all CLIs have in common."""

    kind: type[R]
    """What a run of this CLI says."""

    def __init__(self, program: Path, *, model: Model, place: Place, root: Path) -> None:
        super().__init__(root)
        self.program, self.model, self.place = program, model, place

    @property
    @abstractmethod
    def headless(self) -> tuple[str, ...]:
        """The command that reads a prompt from its standard input, and tells in JSON."""

    @abstractmethod
    def hooks(self, hooks: Mapping[str, Sequence[str]]) -> Path:
        """Have one more command run at each of these events; the file that says so."""

    @abstractmethod
    def resuming(self, session: str) -> tuple[str, ...]:
        """The arguments that go on with a session."""

    def beginning(self, session: str) -> tuple[str, ...]:
        """The arguments that give a new session this id, where the program lets us choose."""
        return ()

    @abstractmethod
    def transcript(self, session: str) -> Path:
        """Where the program keeps this session."""

    @abstractmethod
    def beside(self, session: str) -> list[Path]:
        """Where it keeps those of the session's sub-agents."""

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment() | more

    def start(self, prompt: str, *arguments: str, **environment: str) -> Launched[R]:
        """Start a headless run, with the prompt on its standard input."""
        return self.launch([*self.headless, *arguments], prompt, **environment)

    def launch(self, argv: Sequence[str], prompt: str, **environment: str) -> Launched[R]:
        """Start a command of the test's own in the model's network."""
        started = self.place.start(
            argv, env=self.environment(**environment), cwd=self.project, stdin=prompt
        )
        return Launched(started, self.kind)

    def run(self, prompt: str, *arguments: str, timeout: float = 60, **environment: str) -> R:
        """Run to the end."""
        return self.start(prompt, *arguments, **environment).wait(timeout)

    def resume(self, session: str, prompt: str, *arguments: str, **environment: str) -> R:
        """Go on with a session, to the end."""
        return self.run(prompt, *arguments, *self.resuming(session), **environment)


_KEEP: Final = Path(__file__).parents[1] / "recordings" / "keep.py"


def keeping(sandbox: Sandbox[Any], events: Iterable[str]) -> Path:
    """Have a hook keep what it is told of these events; the file that it keeps it in."""
    kept = sandbox.home / "hooked"
    keep = (sys.executable, "-I", "-S", str(_KEEP), str(kept), "-")
    sandbox.hooks({event: (*keep, event) for event in events})
    return kept


def hooked(kept: Path) -> list[tuple[str, dict[str, Any]]]:
    """The events that fired, in their order, each with its payload."""
    rows = kept.read_text().splitlines() if kept.exists() else []
    return [(event, json.loads(told)) for event, told in (row.split(" ", 1) for row in rows)]
