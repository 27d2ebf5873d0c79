"""The interfaces through which flows access the outside world."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import (
    HookFiles,
    HookInstallation,
    HookObstacle,
)
from rekindle.documents.launches.launch_types import (
    BackgroundProcess,
    Brake,
    Capabilities,
    LaunchExit,
    LaunchSpec,
    OutputItem,
    ProcessResult,
    ProcessVitals,
    ProgramCommand,
    RefusedCall,
    SweptProcesses,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import (
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.transcripts.turns import (
    Passage,
    SubagentTranscripts,
)
from rekindle.errors import UsageError


class HarnessEssentials(Protocol):
    """The six members of every harness. A harness translates for a CLI but does not control it."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Return the name of the harness in manifests and records."""

    @property
    def INSTALL(self) -> str:  # noqa: N802 - as above
        """Return instructions for installing the program."""

    @property
    def CAN(self) -> Capabilities: ...  # noqa: N802 - as above

    def command(self, start: LaunchSpec) -> ProgramCommand:
        """Return the command that starts or resumes a session.

        Raises:
            UnenforceableError: The persona has a rule that the CLI cannot enforce.
            UsageError: The session's id is invalid, or the persona is otherwise unsupported.
        """

    def read_stream(self, line: bytes) -> tuple[OutputItem, ...]:
        """Return the items in a line of the program's output; never raise an error."""

    def classify(self, ended: ProcessResult) -> LaunchExit:
        """Return how the process exited; input to the restart policy."""


class HarnessEnvironment(Protocol):
    """The environment variables of a CLI, if it has any."""

    @property
    def PASSED_PREFIXES(self) -> Sequence[str]:  # noqa: N802 - a module's constant
        """Return the name prefixes of the variables that configure the program."""
        return ()

    @property
    def BLOCKED_VARIABLES(self) -> Sequence[str]:  # noqa: N802 - as above
        """Return the variables that would tell the program that it runs inside another session."""
        return ()


class HarnessHooks(Protocol):
    """Hook reports during a session, for a CLI with hooks (`Capabilities(hooks=True)`)."""

    @property
    def HOOK_FILES(self) -> HookFiles | None:  # noqa: N802 - a module's constant
        """Return the locations of the CLI's settings."""
        return None

    def hooks(
        self, program: Sequence[str], *, supervised: bool, folder: str = ""
    ) -> dict[str, Any]:
        """Return the hooks in the format that the CLI's settings use."""
        return {}

    def find_hook_obstacle(self, found: HookInstallation) -> HookObstacle | None:
        """Return the obstacle that prevents hooks from running, or None if none is visible."""
        return None

    def render_hook_output(self, event: str, text: str) -> str:
        """Return the output with which a hook for this event passes a text to the session."""
        return ""

    def read_hook(self, line: HookRecord) -> AnyEvent | None:
        """Return the event that a hook reports, or None if it is not recorded."""
        return None


class HarnessTranscripts(Protocol):
    """Access to a session's transcript, for a CLI that writes transcripts to files."""

    def usage(self, tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
        """Return the fill of the window, read from the end of a transcript."""
        return None

    def turn(self, line: bytes) -> UsageReport | None:
        """Return the turn that a transcript line reports, for a CLI whose output has no turns."""
        return None

    def read_transcript(self, line: bytes) -> tuple[Passage, ...]:
        """Return the parts of the conversation that a transcript line contains."""
        return ()

    def refused_calls(self, transcript: Iterable[bytes]) -> Iterable[RefusedCall]:
        """Return the calls that lacked permission, for a CLI whose output does not report them."""
        return ()

    def asides(self, transcript: str, session: str) -> SubagentTranscripts | None:
        """Return the location of the sub-agents' transcripts, or None if there are none.

        `transcript` is the path of the session's own transcript.
        """
        return None

    def has_prompt(self, transcript: Iterable[bytes], prompt: str) -> bool:
        """Return whether a transcript still has the prompt with the id that a hook reported.

        A session that has lost its prompt is not resumed.
        """
        return True


class HarnessHandoff(Protocol):
    """Handoffs before the window is full, for a CLI that can be stopped between two turns."""

    def brake(self, *, interactive: bool) -> Brake | None:
        """Return how to stop the CLI between two turns, or None if it could interrupt a call.

        A CLI in a terminal is stopped when its user makes the next request.
        """
        return None

    def measure(self, program: Sequence[str]) -> ProgramCommand | None:
        """Return the command that prints the size of the window without a request to a model."""
        return None

    def parse_window_sizes(self, output: Iterable[bytes]) -> dict[str, int]:
        """Return the window size of each model, parsed from the output of the `measure` command."""
        return {}


class HarnessQuestions(Protocol):
    """A single question without a session, for summaries (`Capabilities(questions=True)`)."""

    def ask(self, question: OneShotQuestion) -> ProgramCommand:
        """Return the command that answers the question, without hooks and with read-only tools.

        Raises:
          ManifestError: The persona needs more than read access, or is not supported.
        """
        raise UsageError(
            "this CLI cannot write summaries",
            hint="choose another `adapter:` in `personas: summarizer:`",
        )

    def answer(self, output: Iterable[bytes]) -> OneShotAnswer | None:
        """Return the answer in the program's output, or None if it failed or has no answer."""
        return None


class Harness(
    HarnessEssentials,
    HarnessEnvironment,
    HarnessHooks,
    HarnessTranscripts,
    HarnessHandoff,
    HarnessQuestions,
    Protocol,
):
    """A harness as the rest of Rekindle uses it, with a default for each optional member."""


class _Defaults(
    HarnessEnvironment, HarnessHooks, HarnessTranscripts, HarnessHandoff, HarnessQuestions
):
    pass


class _Completed:
    def __init__(self, own: HarnessEssentials) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name) if hasattr(self._own, name) else getattr(_DEFAULTS, name)


_DEFAULTS = _Defaults()
REQUIRED_MEMBERS = tuple(name for name in vars(HarnessEssentials) if not name.startswith("_"))


def complete_harness(own: HarnessEssentials) -> Harness:
    """Return a harness (a module or an object) with defaults for the members that it lacks."""
    return cast(Harness, _Completed(own))


class EventRegister(Protocol):
    """The authority over an agent's log, if that is not the agent's folder."""

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        """Commit events; return the log's lines after `known`, which end with these events.

        `documents` holds the contents of the documents that the events commit, by their path in the
        folder.

        Raises:
            OwnershipError: Another host has taken over the agent.
        """


class ProcessHandle(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int: ...

    @property
    def errors(self) -> str: ...

    def follow(self, every: float) -> Generator[bytes | None, None, None]:
        """Yield lines until the process exits, and None after each interval without a line."""

    def ask_to_end(self) -> None: ...

    def kill(self) -> None: ...


class Processes(Protocol):
    def start(
        self, argv: Sequence[str], *, prompt: str, environment: Mapping[str, str], folder: str
    ) -> ProcessHandle:
        """Start a program in its own process group; it is killed when this process exits."""

    def start_detached(
        self, argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
    ) -> int:
        """Start a program that outlives this process, and return its pid.

        Its output is written to a file. It runs in its own session, and this process need not wait
        for it.
        """

    def boot(self) -> str:
        """Return an identifier for the current boot of the host."""

    def uptime(self) -> float:
        """Return the time since the host's boot, in seconds."""

    def end_launch_processes(
        self,
        mark: str,
        *,
        boot: str,
        uptime: float,
        patience: float,
        recorded: Sequence[str] = (),
        program: str = "",
    ) -> SweptProcesses:
        """Kill every process of a launch that is not kept, and return the processes found.

        `recorded` lists processes that `background` reported earlier; `program` is the agent's own
        process.
        """

    def background(
        self, mark: str, *, boot: str, uptime: float, program: str
    ) -> tuple[BackgroundProcess, ...]:
        """Return the processes of a launch that are kept, or that lack its mark."""

    def end(self, processes: Collection[str], *, patience: float) -> SweptProcesses:
        """Kill these processes and all their descendants, and return the processes found."""

    def identify(self, pid: int) -> str:
        """Return the identity of a process, as in `background`; empty if it is not running."""

    def vitals(self, pid: int, mark: str, *, boot: str, uptime: float) -> ProcessVitals | None:
        """Return the state of a launch's processes, or None if its main process is not running."""

    def is_alive(self, process: str) -> bool: ...
