"""What flows need of the world, said without naming who provides it."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

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
    RefusedCall,
    Seen,
    Start,
    Swept,
    Usage,
    Used,
    Vitals,
)
from rekindle.documents.question import Answer, Question
from rekindle.documents.transcript import Asides, Passage
from rekindle.errors import UsageError


class Essentials(Protocol):
    """The six members that every harness has: the dialect of an agent CLI, not a driver of it."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """The name in manifests and records."""

    @property
    def INSTALL(self) -> str:  # noqa: N802 - as above
        """What a person does to get the program."""

    @property
    def CAN(self) -> Capabilities: ...  # noqa: N802 - as above

    def command(self, start: Start) -> Command:
        """Return the command that starts a session, or resumes one.

        Raises:
            UnenforceableError: The persona has a rule that the CLI cannot be held to.
            UsageError: The session's id is not one, or the persona cannot be kept otherwise.
        """

    def read_stream(self, line: bytes) -> tuple[Seen, ...]:
        """Return what a line of the program's output means; it never raises."""

    def classify(self, ended: Ended) -> Exit:
        """Return how the process exited; input to the restart policy."""


class Environment(Protocol):
    """Variables of the CLI's own, for a CLI that has some."""

    @property
    def PASSED_ON(self) -> Sequence[str]:  # noqa: N802 - a module's constant
        """Beginnings of the names of variables that set the program up."""
        return ()

    @property
    def NEVER_PASSED_ON(self) -> Sequence[str]:  # noqa: N802 - as above
        """Variables that would tell the program that it runs inside another session."""
        return ()


class Hooks(Protocol):
    """Reports while a session runs, for a CLI with hooks: `Capabilities(hooks=True)`."""

    @property
    def HOOK_FILES(self) -> HookFiles | None:  # noqa: N802 - a module's constant
        """Where the settings of the CLI are."""
        return None

    def hooks(
        self, program: Sequence[str], *, supervised: bool, folder: str = ""
    ) -> dict[str, Any]:
        """Return the hooks as they are in the CLI's settings."""
        return {}

    def muted(self, found: Installation) -> Muted | None:
        """Return what keeps installed hooks from running; None: nothing that can be seen."""
        return None

    def told(self, event: str, text: str) -> str:
        """Return what a hook of that event prints, so that the session is told a text."""
        return ""

    def read_hook(self, line: HookLine) -> AnyEvent | None:
        """Return the fact that a hook reports; None: nothing that is kept."""
        return None


class Transcripts(Protocol):
    """What a session said and did, for a CLI that writes it to a file."""

    def usage(self, tail: bytes, windows: Mapping[str, int]) -> Usage | None:
        """Return how full the window is, from the end of a transcript."""
        return None

    def turn(self, line: bytes) -> Used | None:
        """Return the turn that a line reports, for a CLI whose output reports none."""
        return None

    def read_transcript(self, line: bytes) -> tuple[Passage, ...]:
        """Return what a line says of the session."""
        return ()

    def refused_calls(self, transcript: Iterable[bytes]) -> Iterable[RefusedCall]:
        """Return the calls that nothing permitted, for a CLI whose output reports none."""
        return ()

    def asides(self, transcript: str, session: str) -> Asides | None:
        """Return where the session's sub-agents have their transcripts; None: they have none.

        `transcript` is the path of the session's own.
        """
        return None

    def holds(self, transcript: Iterable[bytes], prompt: str) -> bool:
        """Return whether a transcript still has the prompt that a hook reported, by its id.

        A session that lost its prompt is not resumed.
        """
        return True


class Handoff(Protocol):
    """Handoffs before the window is full, for a CLI that can be stopped between two turns."""

    def brake(self, *, interactive: bool) -> Brake | None:
        """Return how it is stopped between two turns; None: not without cutting a tool call.

        A CLI in a terminal is stopped when its person asks for something more.
        """
        return None

    def measure(self, program: Sequence[str]) -> Command | None:
        """Return the command that prints the size of the window without asking a model."""
        return None

    def measured(self, output: Iterable[bytes]) -> dict[str, int]:
        """Return the windows that its output names, by their models."""
        return {}


class Questions(Protocol):
    """One question without a session, for summaries: `Capabilities(questions=True)`."""

    def ask(self, question: Question) -> Command:
        """Return the command that answers: without hooks, or tools that write or run.

        Raises:
            ManifestError: The persona asks for more than to read, or for what cannot be kept.
        """
        raise UsageError(
            "this CLI cannot be asked for a summary",
            hint="name another `adapter:` in `personas: summarizer:`",
        )

    def answer(self, output: Iterable[bytes]) -> Answer | None:
        """Return what the lines of its standard output answer; None: nothing, or it failed."""
        return None


class Harness(Essentials, Environment, Hooks, Transcripts, Handoff, Questions, Protocol):
    """A harness as the rest of Rekindle uses it, with a default for each optional member."""


class _Defaults(Environment, Hooks, Transcripts, Handoff, Questions):
    pass


class _Completed:
    def __init__(self, own: Essentials) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name) if hasattr(self._own, name) else getattr(_DEFAULTS, name)


_DEFAULTS = _Defaults()
REQUIRED = tuple(name for name in vars(Essentials) if not name.startswith("_"))


def complete(own: Essentials) -> Harness:
    """Return a harness, a module or an object, with the defaults of what it does not have."""
    return cast(Harness, _Completed(own))


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
