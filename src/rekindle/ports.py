"""What flows need of the world, said without naming who provides it."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rekindle.documents.event import AnyEvent
from rekindle.documents.hookline import HookLine
from rekindle.documents.hooksettings import HookFiles, Installation, Muted
from rekindle.documents.launch import (
    Background,
    Brake,
    Capabilities,
    Command,
    Ended,
    Exit,
    Seen,
    Start,
    Swept,
    Usage,
    Used,
    Vitals,
)
from rekindle.documents.question import Answer, Question
from rekindle.documents.transcript import Asides, Passage


class Harness(Protocol):
    """The dialect of an agent CLI: a dictionary, not a driver."""

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant

    @property
    def PASSED_ON(self) -> Sequence[str]:  # noqa: N802 - as above
        """How the environment variables begin that its program is set up with."""

    @property
    def NEVER_PASSED_ON(self) -> Sequence[str]:  # noqa: N802 - as above
        """Those that would tell it that it runs inside another session."""

    @property
    def CAN(self) -> Capabilities: ...  # noqa: N802 - as above

    @property
    def INSTALL(self) -> str:  # noqa: N802 - as above
        """How a person gets the program."""

    @property
    def HOOK_FILES(self) -> HookFiles | None:  # noqa: N802 - as above
        """Where its settings are; None for a CLI that has no hooks."""

    def command(self, start: Start) -> Command: ...

    def hooks(
        self, program: Sequence[str], *, supervised: bool, folder: str = ""
    ) -> dict[str, Any]: ...

    def muted(self, found: Installation) -> Muted | None:
        """What keeps hooks that are installed from running; None: nothing that can be seen."""

    def told(self, event: str, text: str) -> str:
        """What a hook of that event prints, so that the session is told a text."""

    def read_hook(self, line: HookLine) -> AnyEvent | None: ...

    def read_stream(self, line: bytes) -> tuple[Seen, ...]: ...

    def usage(self, tail: bytes, windows: Mapping[str, int]) -> Usage | None: ...

    def turn(self, line: bytes) -> Used | None:
        """The turn that a line of a transcript tells of; None: it tells of none."""

    def read_transcript(self, line: bytes) -> tuple[Passage, ...]:
        """What a line of a transcript tells of the session; nothing, where it tells nothing."""

    def asides(self, transcript: str, session: str) -> Asides | None:
        """The files in which a session's sub-agents have their own; None: they have none.

        `transcript` is the path of the session's.
        """

    def brake(self, *, interactive: bool) -> Brake | None:
        """How it is stopped between two turns; None: it cannot be, without cutting a tool call.

        One in a terminal is stopped where its person asks for something more.
        """

    def measure(self, program: Sequence[str]) -> Command | None:
        """What says how large the window is, without asking a model; None: nothing does."""

    def measured(self, output: Iterable[bytes]) -> dict[str, int]:
        """The windows that its output tells, by their models."""

    def holds(self, transcript: Iterable[bytes], prompt: str) -> bool:
        """Whether the lines of a transcript still have the prompt that a hook told of, by its id.

        A CLI that goes on with less than it was asked must not be let.
        """

    def classify(self, ended: Ended) -> Exit: ...

    def ask(self, question: Question) -> Command:
        """What answers a question: without tools that write or run, hooks, or a session that stays.

        Raises:
            ManifestError: The persona asks for more than to read, or for what nobody could keep.
        """

    def answer(self, output: Iterable[bytes]) -> Answer | None:
        """What the lines of its standard output answer; None: it was refused, or it broke."""


class Register(Protocol):
    """Who says what the log of an agent holds, where that is not the agent's folder itself."""

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        """Have facts counted; returns the log's lines after `known`, with these at their end.

        `documents` are the bytes of those that the facts commit, by their path in the folder.

        Raises:
            OwnershipError: Another host has the agent by now.
        """


class Child(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int: ...

    @property
    def errors(self) -> str: ...

    def follow(self, every: float) -> Generator[bytes | None, None, None]:
        """Its lines as they come, and None when none came for a while; ends when it has."""

    def ask_to_end(self) -> None: ...

    def kill(self) -> None: ...


class Processes(Protocol):
    def start(
        self, argv: Sequence[str], *, prompt: str, environment: Mapping[str, str], folder: str
    ) -> Child:
        """Start a program in a group of its own, that ends when we do."""

    def start_detached(
        self, argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
    ) -> int:
        """Start a program that goes on without us, and return its number; its words go to a file.

        It has a session of its own, and nobody here has to wait for it.
        """

    def boot(self) -> str:
        """Which boot of the host this is."""

    def uptime(self) -> float:
        """Seconds since that boot."""

    def end_marked(
        self,
        mark: str,
        *,
        boot: str,
        uptime: float,
        patience: float,
        recorded: Sequence[str] = (),
        program: str = "",
    ) -> Swept:
        """End every process of a launch that is not kept, and return what there was.

        `recorded` are processes that `background` has told of before, `program` the agent's own.
        """

    def background(
        self, mark: str, *, boot: str, uptime: float, program: str
    ) -> tuple[Background, ...]:
        """Return the processes of a launch that are kept, or that do not bear its mark."""

    def end(self, processes: Collection[str], *, patience: float) -> Swept:
        """End these processes and everything below them, and return what there was."""

    def identify(self, pid: int) -> str:
        """Return the identity of a process, as `background` gives it; empty: it is gone."""

    def vitals(self, pid: int, mark: str, *, boot: str, uptime: float) -> Vitals | None:
        """How a launch's process does, and what else bears its mark; None: it is gone."""

    def is_alive(self, process: str) -> bool: ...
