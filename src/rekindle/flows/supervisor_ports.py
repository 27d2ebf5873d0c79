"""The inputs of a supervisor: its agent, its ports, and the reports it sends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import msgspec

from rekindle.documents.events import WorkSigns
from rekindle.documents.launches import launch_types
from rekindle.documents.launches.launch_types import LaunchExit, OutputItem
from rekindle.documents.manifest import Budget, ModelPrice, Persona
from rekindle.errors import RekindleError
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.operator.notification_kinds import NotificationKind
from rekindle.policy.settings.runtime_settings import FOLD_EVERY_SECONDS, Settings
from rekindle.ports import Harness, Processes
from rekindle.stores.files import FileStore


class AgentSpec(msgspec.Struct, frozen=True):
    """Everything needed to start an agent."""

    name: str
    harness: Harness
    folder: str
    """The agent's working directory."""
    task: str
    rules: str
    persona: Persona
    environment: Mapping[str, str]
    hook: tuple[str, ...]
    """Command line of the hook program."""
    scratch: str = ""
    """Folder outside the workspace for files that a launch passes to the CLI."""
    protected: tuple[str, ...] = ()
    """Paths the agent must not write to, because they control what runs outside the sandbox."""
    path: str = ""
    """PATH for the agent's commands; empty to use the CLI's own PATH."""
    program: tuple[str, ...] = ()
    """Command to run instead of the CLI's own program; empty to run the CLI itself."""
    instructions: str = ""
    """Text of the persona's system prompt."""
    budget: Budget | None = None
    prices: Mapping[str, ModelPrice] = {}
    stays: bool = False
    """Whether the agent runs in a terminal where a person works with it."""
    cycles: int = 1
    """Maximum number of cycles in a run; 0 means unlimited."""
    until_claimed: bool = False
    """Whether `until:` runs only after the agent has reported that it is done."""
    converges: bool = False
    """Whether each topic must go through three stages in order: options, a choice, and work."""
    threshold: int | None = None
    """Context-window usage, in percent, at which a fresh session takes over; None to disable."""
    keep: tuple[str, ...] = ()
    """Command-line patterns; processes that match one outlive the launch that started them."""
    may_control: bool = False
    """Whether commands run by the agent may start and stop other agents of its project."""
    drafts: bool = False
    """Whether the agent is asked to write the relay for the next cycle."""
    persona_name: str = "default"
    project: str = ""
    """The folder that contains the manifest."""
    relay: str = ""
    """Path of the agent's own relay file, relative to the manifest; empty if there is none."""


class LaunchReport(msgspec.Struct, frozen=True):
    """Report that the supervisor is about to start a process."""

    cycle: int
    session: str
    resumes: bool
    recovery: bool
    why: str = ""


class RefusedCallReport(msgspec.Struct, frozen=True):
    """Report that the CLI refused a tool call because no rule permits it."""

    call: str
    """The tool and its arguments, on one line."""
    command: str = ""
    """The command that answers the question about this call; empty if there is no question."""
    is_repeated: bool = False
    """Whether the call was reported before, and is reported again because it now has a question."""


class ExitReport(msgspec.Struct, frozen=True):
    """Report that a process has exited."""

    exit: LaunchExit
    swept: int


class HandoffReport(msgspec.Struct, frozen=True):
    """Report that a session has handed its work over to a fresh session in the same cycle."""

    how: str
    """How the checkpoint was written: `headless` (by a model) or `mechanical` (without one)."""
    words: str = ""
    """Why the checkpoint was written without a model."""


class CycleReport(msgspec.Struct, frozen=True):
    """Report that a cycle has ended."""

    cycle: int
    how: str
    verdict: str
    words: str
    refused: str = ""
    """Why `until:` or the review rejected the end of the run; empty if neither did."""


class TroubleReport(msgspec.Struct, frozen=True):
    """Report of a problem that does not stop the agent."""

    words: str


class HangReport(msgspec.Struct, frozen=True):
    """Report that a process shows no sign of life, whether or not the supervisor ended it."""

    words: str
    ended: bool


class SettingsReport(msgspec.Struct, frozen=True):
    """Report that the operator's command accepts changed settings."""

    changes: list[str]


class WaitReport(msgspec.Struct, frozen=True):
    """Report that the supervisor waits until a given time before it starts anything."""

    why: str
    until: datetime


class SkippedWaitReport(msgspec.Struct, frozen=True):
    """Report that a wait is skipped, because the operator stopped and restarted the agent."""

    why: str
    until: datetime


class SafeModeReport(msgspec.Struct, frozen=True):
    """Report that the agent is in safe mode: nothing runs until a person decides."""

    why: str
    words: str
    command: str = ""
    """The command that answers the safe-mode question; empty if there is no question."""
    takes_enter: bool = False
    """Whether pressing Enter at the terminal also answers the question."""


SupervisorReport = (
    LaunchReport
    | OutputItem
    | RefusedCallReport
    | ExitReport
    | HandoffReport
    | CycleReport
    | TroubleReport
    | HangReport
    | SettingsReport
    | WaitReport
    | SkippedWaitReport
    | SafeModeReport
)


REPORT_KINDS: Mapping[type[SupervisorReport], str] = {
    LaunchReport: "launch.started",
    ExitReport: "launch.ended",
    HandoffReport: "handoff.resumed",
    CycleReport: "cycle.ended",
    HangReport: "hang.detected",
    WaitReport: "wait.started",
    SkippedWaitReport: "wait.skipped",
    SafeModeReport: "safe_mode.entered",
    SettingsReport: "settings.changed",
    RefusedCallReport: "call.refused",
    TroubleReport: "trouble",
    launch_types.SessionOpened: "cli.opened",
    launch_types.AssistantText: "cli.said",
    launch_types.ToolCallStarted: "cli.called",
    launch_types.ToolCallFinished: "cli.returned",
    launch_types.UsageReport: "cli.used",
    launch_types.RetryReport: "cli.retried",
    launch_types.WarningReport: "cli.warned",
    launch_types.LimitReport: "cli.refused",
    launch_types.RefusedCall: "cli.refused_call",
    launch_types.CompactionReport: "cli.compacted",
    launch_types.FinalReport: "cli.finished",
}
"""Report names used in a host's output; same as the event kind if the log has such an event."""


class SupervisorPorts(msgspec.Struct, frozen=True):
    """The ports that a supervisor uses."""

    store: FileStore
    processes: Processes
    settings: Settings
    clock: Callable[[], datetime]
    elapsed: Callable[[], float]
    """Function that returns the time of a monotonic clock in seconds; it pauses while the host
    sleeps.
    """
    rest: Callable[[float], None]
    """Function that sleeps for at most the given number of seconds."""
    interrupted: Callable[[], int]
    """Function that returns the number of stop signals received so far."""
    by_hand: Callable[[], bool]
    """Function that returns whether a person at the terminal requested the stop."""
    enter_pressed: Callable[[], bool]
    """Function that returns whether a person at the terminal pressed Enter to continue."""
    tell: Callable[[SupervisorReport], None]
    notify: Callable[[StopReason | NotificationKind, str], None]
    """Function that notifies a person who is not at the terminal, given the occasion and a text."""
    stops: Callable[[], bool] = bool
    """Function that returns whether to stop; polled while the supervisor waits for a program's
    answer.
    """
    fold_every: float = FOLD_EVERY_SECONDS
    """Maximum interval between two folds of the hooks' reports into the log, in seconds."""
    windows: Callable[[], Mapping[str, int]] = dict
    """Function that returns the context-window sizes of the CLI's models, in tokens."""
    work: Callable[[], str] = str
    """Function that returns a fingerprint of the git state of the agent's folder, or "" if unknown.
    """
    signs: Callable[[str, float], WorkSigns | None] = lambda head, since: None  # noqa: ARG005 - unknown
    """Function that returns the work done in the agent's folder since a commit and a Unix time, or
    None if unknown.
    """
    head: Callable[[], str] = str
    """Function that returns the current commit in the agent's folder, or "" if unknown."""
    unaccepted: Callable[[], str] = str
    """Function that returns a message about settings that the operator has not accepted, or ""."""
    settings_stamp: Callable[[], object] = object
    """Function that returns a cheap value, which changes whenever the result of `unaccepted` may
    have changed.
    """
    renewed: Callable[[], AgentSpec | None] = lambda: None
    """Function that returns the agent with its current settings, or None if they have not changed.
    """

    @contextmanager
    def report_trouble(
        self, kind: type[RekindleError] | tuple[type[RekindleError], ...] = RekindleError
    ) -> Iterator[None]:
        """Report errors of type `kind` raised in the block instead of raising them."""
        try:
            yield
        except kind as error:
            self.tell(TroubleReport(str(error)))
