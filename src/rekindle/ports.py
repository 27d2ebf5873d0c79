"""Interfaces through which flows reach the outside world."""

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
from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import (
    BackgroundProcess,
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
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.documents.phone.phone_messages import PhoneInput, PhoneMessage
from rekindle.documents.transcripts.turns import (
    Passage,
    SubagentTranscripts,
)
from rekindle.errors import UsageError


class HarnessEssentials(Protocol):
    """The six members that every harness must have."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """The harness's name in manifests and records."""

    @property
    def INSTALL(self) -> str:  # noqa: N802 - as above
        """Instructions for installing the program."""

    @property
    def CAN(self) -> Capabilities: ...  # noqa: N802 - as above

    def command(self, start: LaunchSpec) -> ProgramCommand:
        """Return the command that starts or resumes a session.

        Raises:
            UnenforceableError: The persona has a rule that the CLI cannot enforce.
            UsageError: The session's id is invalid, or the persona is otherwise unsupported.
        """

    def read_stream(self, line: bytes) -> tuple[OutputItem, ...]:
        """Return the items in a line of the program's output. Must not raise."""

    def classify(self, ended: ProcessResult) -> LaunchExit:
        """Return how the process exited, for the restart policy."""


class HarnessEnvironment(Protocol):
    """A CLI's environment variables."""

    @property
    def PASSED_PREFIXES(self) -> Sequence[str]:  # noqa: N802 - a module's constant
        """Name prefixes of the variables that configure the program."""
        return ()

    @property
    def PROGRAM(self) -> str:  # noqa: N802 - as above
        """Program that the harness's own command starts, or "" if it is the command itself."""
        return ""

    @property
    def BLOCKED_VARIABLES(self) -> Sequence[str]:  # noqa: N802 - as above
        """Variables that would tell the program that it runs inside another session."""
        return ()

    @property
    def ACCOUNT_VARIABLE(self) -> str:  # noqa: N802 - as above
        """Variable that names the folder with an account's login; empty if there is none."""
        return ""

    @property
    def LOGIN_SWITCHES(self) -> Sequence[str]:  # noqa: N802 - as above
        """Variables that select another login than the account's, such as that of another cloud.

        Variables named like a credential are not listed, because an account replaces all of them.
        """
        return ()


class HarnessSandbox(Protocol):
    """Sandbox requirements of a CLI. By default, it gets no network access and no state folder."""

    @property
    def SANDBOX(self) -> SandboxNeeds:  # noqa: N802 - a module's constant
        """Hosts and folder that the program needs in a sandbox."""
        return SandboxNeeds()


class HarnessHooks(Protocol):
    """Hooks that report a session's events, for a CLI with `Capabilities(hooks=True)`."""

    @property
    def HOOK_FILES(self) -> HookFiles | None:  # noqa: N802 - a module's constant
        """Locations of the CLI's settings."""
        return None

    def hooks(
        self, program: Sequence[str], *, supervised: bool, folder: str = ""
    ) -> dict[str, Any]:
        """Return the hooks in the format of the CLI's settings."""
        return {}

    def find_hook_obstacle(self, found: HookInstallation) -> HookObstacle | None:
        """Return what prevents the hooks from running, or None if nothing does."""
        return None

    def gate_hooks(self, program: Sequence[str]) -> dict[str, Any]:
        """Return the hooks that hold calls, if a launch cannot have its own hooks.

        They are installed in the user's settings.
        """
        return {}

    def find_gate_obstacle(
        self, user: HookInstallation, project: str, environment: Mapping[str, str]
    ) -> HookObstacle | None:
        """Return what prevents a gate that is installed from running, or None if nothing does.

        `user` is the user's installation, `project` the text of the settings in the agent's folder,
        without comments, and `environment` the CLI's.
        """
        return None

    def render_hook_output(self, event: str, text: str) -> str:
        """Return the output that a hook prints to pass text to the session."""
        return ""

    def read_hook(self, line: HookRecord) -> AnyEvent | None:
        """Return the event that a hook reports, or None if it can be ignored."""
        return None


class HarnessTranscripts(Protocol):
    """Access to transcripts, for a CLI that writes them to files."""

    def usage(self, tail: bytes, windows: Mapping[str, int]) -> WindowUsage | None:
        """Return the context window usage, read from the end of a transcript."""
        return None

    def turn(self, line: bytes) -> UsageReport | None:
        """Return the turn in a transcript line, for a CLI whose output has no turns."""
        return None

    def quota(self, line: bytes) -> QuotaReport | None:
        """Return the quota in a transcript line, for a CLI whose output does not report it."""
        return None

    def read_transcript(self, line: bytes) -> tuple[Passage, ...]:
        """Return the parts of the conversation in a transcript line."""
        return ()

    def refused_calls(self, transcript: Iterable[bytes]) -> Iterable[RefusedCall]:
        """Return refused calls in a transcript, for a CLI whose output does not report them."""
        return ()

    def asides(self, transcript: str, session: str) -> SubagentTranscripts | None:
        """Return the location of the subagents' transcripts, or None.

        `transcript` is the path of the session's own transcript.
        """
        return None

    def has_prompt(self, transcript: Iterable[bytes], prompt: str) -> bool:
        """Return whether a transcript contains the prompt whose id a hook reported.

        A session that has lost its prompt is not resumed.
        """
        return True


class HarnessHandoff(Protocol):
    """Handoffs before the context window is full, for CLIs that can stop between two turns."""

    def brake(self, *, interactive: bool) -> Brake | None:
        """Return how to stop the CLI between two turns, or None if that could interrupt a call.

        A CLI in a terminal is stopped when the user makes the next request.
        """
        return None

    def measure(self, program: Sequence[str]) -> ProgramCommand | None:
        """Return a command that prints the window size without calling a model."""
        return None

    def parse_window_sizes(self, output: Iterable[bytes]) -> dict[str, int]:
        """Parse the output of `measure` into window sizes by model."""
        return {}


class HarnessQuestions(Protocol):
    """One-shot questions for summaries, for a CLI with `Capabilities(questions=True)`."""

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
        """Return the answer in the program's output, or None if there is none."""
        return None


class Harness(
    HarnessEssentials,
    HarnessEnvironment,
    HarnessSandbox,
    HarnessHooks,
    HarnessTranscripts,
    HarnessHandoff,
    HarnessQuestions,
    Protocol,
):
    """A complete harness, with a default for each optional member."""


class _Defaults(
    HarnessEnvironment,
    HarnessSandbox,
    HarnessHooks,
    HarnessTranscripts,
    HarnessHandoff,
    HarnessQuestions,
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
    """Return a harness (a module or object) with defaults for missing members."""
    return cast(Harness, _Completed(own))


class EventRegister(Protocol):
    """Commits events to an agent's log when the log is owned elsewhere, such as by an engine."""

    def commit(
        self, known: int, new: Sequence[AnyEvent], documents: Mapping[str, bytes]
    ) -> Sequence[bytes]:
        """Commit events, and return the log's lines after `known`, including these events.

        `documents` maps paths in the folder to the contents that the events commit.

        Raises:
            OwnershipError: Another host has taken over the agent.
        """


class ProcessHandle(Protocol):
    """A running process."""

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
        """Start a program in its own process group. It is killed when this process exits."""

    def start_detached(
        self, argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
    ) -> int:
        """Start a program that outlives this process, and return its pid.

        It runs in its own session and writes its output to a file. The caller does not have to wait
        for it.
        """

    def boot(self) -> str:
        """Return an id for the host's current boot."""

    def uptime(self) -> float:
        """Return the seconds since the host booted."""

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
        """Kill all of a launch's processes except those to keep, and return the processes found.

        `recorded` lists processes that `background` reported earlier, and `program` is the agent's
        own process.
        """

    def background(
        self, mark: str, *, boot: str, uptime: float, program: str
    ) -> tuple[BackgroundProcess, ...]:
        """Return a launch's processes that are kept or do not have its mark."""

    def end(self, processes: Collection[str], *, patience: float) -> SweptProcesses:
        """Kill processes and all their descendants, and return the processes found."""

    def identify(self, pid: int) -> str:
        """Return a process's identity, as in `background`; empty if it has exited."""

    def vitals(self, pid: int, mark: str, *, boot: str, uptime: float) -> ProcessVitals | None:
        """Return the state of a launch's processes, or None if its main process has exited."""

    def is_alive(self, process: str) -> bool: ...


class PhoneChannel(Protocol):
    """A service that carries messages between the bridge and phones.

    All methods raise PhoneError if the service cannot be reached or refuses a call. The bridge
    calls `receive` in one thread and the other methods in another.
    """

    def check(self) -> str:
        """Return the name of the bot or topic that people see, after a call to the service."""

    def receive(self, cursor: str) -> Iterable[PhoneInput]:
        """Wait for inputs after a cursor, and yield them in order. Return at least once a minute.

        An empty cursor stands for the oldest input that the service has kept. The same input may
        come again until a later call passes its cursor.
        """

    def send(self, chat: str, message: PhoneMessage) -> str:
        """Send a message, and return its id."""

    def close(self, chat: str, message: str, text: str) -> None:
        """Replace a message's text and remove its buttons, if the service can do that."""

    def acknowledge(self, received: PhoneInput, text: str) -> None:
        """Show a short text to the person who sent an input."""
