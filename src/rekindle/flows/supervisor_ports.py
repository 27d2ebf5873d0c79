"""A supervisor's inputs: its agent, its ports, and the reports that it sends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import msgspec

from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel
from rekindle.documents.events import WorkSigns
from rekindle.documents.launches import launch_types
from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.documents.launches.launch_types import LaunchExit, OutputItem
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.documents.launches.route import Route
from rekindle.documents.manifest import Persona
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import RekindleError
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.operator.notification_kinds import NotificationKind
from rekindle.policy.quota.pacing import QuotaHold
from rekindle.policy.sandbox.mounts import SandboxPaths
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.settings.runtime_settings import FOLD_EVERY_SECONDS, Settings
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.list_prices import PriceList
from rekindle.ports import Harness, Processes
from rekindle.stores.files import FileStore
from rekindle.system.git.agent_checkout import NewCheckout


class AgentSandbox(msgspec.Struct, frozen=True):
    """An agent's sandbox. The paths that depend on the launch are still empty."""

    profile: SandboxProfile
    paths: SandboxPaths


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
    gate: tuple[str, ...] = ()
    """Command line of the gate, which holds calls that match `ask` rules."""
    scratch: str = ""
    """Folder outside the workspace for files that a launch passes to the CLI."""
    protected: tuple[str, ...] = ()
    """Paths that the agent must not write, because they control code outside the sandbox."""
    path: str = ""
    """PATH for the agent's commands; empty for the CLI's own PATH."""
    program: tuple[str, ...] = ()
    """Command to run instead of the CLI's own program; empty for the CLI itself."""
    instructions: str = ""
    """The persona's system prompt."""
    budget: Budget | None = None
    prices: PriceList = PriceList()
    stays: bool = False
    """Whether the agent runs in the user's terminal."""
    cycles: int = 1
    """Maximum number of cycles in a run; 0 for no limit."""
    until_claimed: bool = False
    """Whether `until:` runs only after the agent has reported that it is done."""
    converges: bool = False
    """Whether each topic goes through three stages: options, a choice, and the work."""
    threshold: int | None = None
    """Window usage in percent at which a fresh session takes over; None to disable handoffs."""
    keep: tuple[str, ...] = ()
    """Patterns for command lines. Matching processes may outlive their launch."""
    may_control: bool = False
    """Whether the agent may start and stop other agents in its project."""
    drafts: bool = False
    """Whether the agent is asked to write a relay for the next cycle."""
    persona_name: str = "default"
    project: str = ""
    """Folder that contains the manifest."""
    relay: str = ""
    """Path of the agent's own relay file, relative to the manifest; empty if unset."""
    prepare: tuple[str, ...] = ()
    """Command that runs once in a new workspace; empty if there is none."""
    branch: str = ""
    """Branch of the agent's own clone or work tree; empty if it works in the user's checkout."""
    sandbox: AgentSandbox | None = None
    """Sandbox around the whole CLI; None if there is none."""
    credentials: HostCredentials | None = None
    """How the agent's launches on a host of a fleet get credentials; None if it is not on one."""
    account: str = ""
    """Account of the CLI; empty for the CLI's own configuration."""
    routes: tuple[Route, ...] = ()
    """Routes on which the work can run, in order of preference. This is the agent on one of them.
    """
    harnesses: Mapping[str, Harness] = {}
    """Harnesses of all routes, by name."""
    config_folders: Mapping[str, str] = {}
    """The CLI's own folder for each of its accounts, by the account's name."""

    @property
    def route(self) -> Route:
        return Route(self.harness.NAME, self.account)

    def has_left(self, route: Route) -> bool:
        """Return whether work on this route has moved to the agent's current one."""
        return bool(self.routes) and route != self.route

    @property
    def marks(self) -> str:
        """Folder for the hooks' marker files. In a sandbox, the scratch folder is read-only."""
        return self.sandbox.paths.marks if self.sandbox else self.scratch


class LaunchReport(msgspec.Struct, frozen=True):
    """The supervisor is about to start a process."""

    cycle: int
    session: str
    resumes: bool
    recovery: bool
    why: str = ""
    route: str = ""
    """CLI and account; empty if the agent always uses the same CLI without an account."""


class RefusedCallReport(msgspec.Struct, frozen=True):
    """The CLI refused a tool call because no rule allows it."""

    call: str
    """Tool and arguments, on one line."""
    command: str = ""
    """Command that answers the question about this call; empty if there is none."""
    is_repeated: bool = False
    """Whether the call was reported before, without a question."""


class ExitReport(msgspec.Struct, frozen=True):
    """A process has exited."""

    exit: LaunchExit
    swept: int


class HandoffReport(msgspec.Struct, frozen=True):
    """A session was handed over to a fresh session in the same cycle."""

    how: str
    """How the checkpoint was written: `headless` (by a model) or `mechanical`."""
    words: str = ""
    """Reason why no model wrote the checkpoint; empty if one did."""


class CycleReport(msgspec.Struct, frozen=True):
    """A cycle has ended."""

    cycle: int
    how: str
    verdict: str
    words: str
    refused: str = ""
    """Reason why `until:` or the reviewer rejected the end of the work; empty if they accepted."""


class TroubleReport(msgspec.Struct, frozen=True):
    """A problem that does not stop the agent."""

    words: str


class HangReport(msgspec.Struct, frozen=True):
    """A process shows no sign of life. The supervisor may have ended it."""

    words: str
    ended: bool


class RepetitionReport(msgspec.Struct, frozen=True):
    """The agent repeats itself."""

    words: str


class RefusedHostReport(msgspec.Struct, frozen=True):
    """The sandbox refused a connection to a host."""

    host: str
    permission: str
    """Line in rekindle.yaml that would allow the host."""


class SettingsReport(msgspec.Struct, frozen=True):
    """The operator has accepted changed settings."""

    changes: list[str]


class WaitReport(msgspec.Struct, frozen=True):
    """The supervisor is waiting until a given time."""

    why: str
    until: datetime
    words: str = ""


class SkippedWaitReport(msgspec.Struct, frozen=True):
    """A wait is skipped because the operator stopped and restarted the agent."""

    why: str
    until: datetime


class SafeModeReport(msgspec.Struct, frozen=True):
    """The agent is in safe mode: nothing runs until the operator decides."""

    why: str
    words: str
    command: str = ""
    """Command that answers the safe-mode question; empty if there is none."""
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
    | RepetitionReport
    | RefusedHostReport
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
    RepetitionReport: "repetition.detected",
    RefusedHostReport: "host.refused",
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
    QuotaReport: "cli.quota",
    launch_types.RefusedCall: "cli.refused_call",
    launch_types.CompactionReport: "cli.compacted",
    launch_types.FinalReport: "cli.finished",
}
"""Names of the reports in a host's output. A report about an event is named after its kind."""


class SupervisorPorts(msgspec.Struct, frozen=True):
    """Functions and settings that a supervisor uses."""

    store: FileStore
    processes: Processes
    settings: Settings
    clock: Callable[[], datetime]
    elapsed: Callable[[], float]
    """Returns monotonic time in seconds. The clock pauses while the host is asleep."""
    rest: Callable[[float], None]
    """Sleeps for at most the given number of seconds."""
    interrupted: Callable[[], int]
    """Returns the number of stop signals received so far."""
    by_hand: Callable[[], bool]
    """Returns whether the user stopped the supervisor at the terminal."""
    enter_pressed: Callable[[], bool]
    """Returns whether the user pressed Enter at the terminal to continue."""
    tell: Callable[[SupervisorReport], None]
    notify: Callable[[StopReason | NotificationKind, str], None]
    """Sends a notification to an operator who is not at the terminal."""
    stops: Callable[[], bool] = bool
    """Returns whether to stop. Polled while waiting for a program's answer."""
    fold_every: float = FOLD_EVERY_SECONDS
    """Maximum number of seconds between two looks at the inbox."""
    reports_wait: float = 0.0
    """Maximum number of seconds that hook reports may wait in the inbox."""
    windows: Callable[[], Mapping[str, int]] = dict
    """Returns the context-window sizes of the CLI's models, in tokens."""
    work: Callable[[], str] = str
    """Returns a fingerprint of the git state in the agent's folder, or "" if unknown."""
    signs: Callable[[str, float], WorkSigns | None] = lambda head, since: None  # noqa: ARG005 - None means unknown
    """Returns the work done in the agent's folder since a commit and a Unix time, or None."""
    take_snapshot: Callable[[SnapshotLabel], tuple[Snapshot, bool] | None] | None = None
    """Takes a snapshot of the work tree. Returns it and whether it is new, or None.

    The field is None if snapshots are disabled.
    """
    open_workspace: Callable[[Callable[[], None], bool], NewCheckout | None] | None = None
    """Creates or updates the agent's own clone or work tree. Returns it if it is new, or None.

    The arguments are a function that prepares a new checkout, and whether to update an existing
    one. The field is None if the agent works in the user's checkout.
    """
    head: Callable[[], str] = str
    """Returns the current commit in the agent's folder, or "" if unknown."""
    unaccepted: Callable[[], str] = str
    """Returns a message about settings that the operator has not accepted, or ""."""
    settings_stamp: Callable[[], object] = object
    """Returns a value that changes whenever the result of `unaccepted` may change."""
    note_quota: Callable[[Route, QuotaReport], bool] = lambda route, report: False  # noqa: ARG005 - stores nothing
    """Stores the quota that the CLI reported for a route. Returns whether it has changed."""
    note_spending: Callable[[Route, str, RunSpending, bool], None] = lambda *_: None
    """Stores a run's spending for the caps of all agents.

    The arguments are the route, the name of the run, its spending, and whether a launch is running.
    """
    route_hold: Callable[[Route], QuotaHold | None] = lambda route: None  # noqa: ARG005 - no hold
    """Returns until when and why no launch may start on a route, or None."""
    note_hold: Callable[[Route, QuotaHold | None], None] = lambda *_: None
    """Stores whether the agent waits for its share of a route's account."""
    rechecks_quota: bool = False
    """Whether `route_hold` is called before each launch, and repeatedly during a wait."""
    route_stop: Callable[[Route], QuotaHold | None] = lambda route: None  # noqa: ARG005 - no stop
    """Returns why a launch on a route must stop between two turns, or None."""
    renewed: Callable[[], AgentSpec | None] = lambda: None
    """Returns the agent with its current settings, or None if they are unchanged."""
    open_route: Callable[[Route], AgentSpec | None] = lambda _: None
    """Returns the agent on another of its routes. If that one cannot be used, it is missing from
    the routes of the result, which is None only if the agent has no other route.
    """

    @contextmanager
    def report_trouble(
        self, kind: type[RekindleError] | tuple[type[RekindleError], ...] = RekindleError
    ) -> Iterator[None]:
        """Catch errors of type `kind` and report them."""
        try:
            yield
        except kind as error:
            self.tell(TroubleReport(str(error)))
