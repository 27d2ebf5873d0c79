"""A launch: one process that runs a session, from its specification to its exit.

A harness turns a `LaunchSpec` into a `ProgramCommand`, the program's output into `OutputItem`s, and
a `ProcessResult` into a `LaunchExit`. These types use Rekindle's terms; a CLI's own terms are used
only in its harness.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.documents.manifest import Persona

LAUNCH_VARIABLE = "REKINDLE_LAUNCH"
"""Environment variable that marks every process of a launch. `hook` defines the same name."""
FOLDER = "REKINDLE_FOLDER"
"""Environment variable with the folder of the launch's agent."""

UsageSource = Literal["reported", "exact", "estimated", "unknown"]
ExitKind = Literal[
    "clean",
    "crash",
    "resume-failed",
    "limit",
    "overload",
    "network",
    "auth",
    "billing",
    "misconfigured",
    "context-full",
    "handoff",
    "budget",
    "hang",
    "interrupted",
    "no-permission",
]


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of a launch, in a fresh or a resumed session."""

    session: str
    """Id of the session; empty if it is new and the CLI assigns the id."""
    resumes: bool = False
    hook: tuple[str, ...] = ()
    """Program that the CLI's hooks start; empty if there are no hooks."""
    gate: tuple[str, ...] = ()
    """Program that holds calls which match `ask` rules until a person has decided."""
    gate_seconds: float = 0.0
    """How long the gate holds a call. The CLI's own timeout is twice as long."""
    scratch: str = ""
    """Folder for this launch's files, which the agent cannot change."""
    persona: Persona = Persona()
    instructions: str = ""
    """Text of the persona's system prompt."""
    program: tuple[str, ...] = ()
    """Program to start instead of the CLI's default program."""
    usd_left: float | None = None
    """Maximum cost of the launch in dollars; None for no limit."""
    session_usd: float = 0.0
    """Cost in dollars that the CLI has already reported for the session that it resumes."""
    draft: str = ""
    """File that the agent may always write; empty if there is none."""
    protected: tuple[str, ...] = ()
    """Files and folders that the agent may never write, except for the draft."""
    folder: str = ""
    """Working directory."""
    path: str = ""
    """PATH for the agent's commands; empty to use the CLI's own."""
    is_sandboxed: bool = False
    """Whether the program runs in Rekindle's own sandbox."""
    interactive: bool = False
    """Whether the program is started in a person's terminal."""
    prompt: str = ""
    """First prompt in a terminal, where standard input belongs to the person."""


class ProgramCommand(msgspec.Struct, frozen=True):
    """A program to start. It reads the prompt from standard input, unless that is a terminal."""

    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    """Environment variables to add."""
    files: dict[str, str] = {}
    """Contents of the files to create in the scratch folder before the start, by name."""
    inner: int = 0
    """Position of the CLI's own program in `argv`, which may start with another one."""
    asked: str = ""
    """Standard input for a program that reads a protocol message instead of a prompt."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Capabilities of a CLI. Rekindle works around those that are missing, or does without them."""

    hooks: bool = True
    """Whether the CLI reports events through hooks while it is running."""
    launch_hooks: bool = True
    """Whether a launch can have its own hooks, independent of the CLI's settings."""
    resumes: bool = True
    """Whether the CLI can resume an earlier session."""
    carries_sessions: bool = False
    """Whether a session continues in another account's folder, if its transcript is copied there.
    """
    names_sessions: bool = True
    """Whether the caller can choose the id of a new session."""
    reports_money: bool = False
    """Whether the CLI reports its cost and can enforce a cap."""
    reports_tokens: bool = True
    """Whether the CLI reports the tokens of all requests, so that list prices give its cost."""
    permits_tools: bool = False
    """Whether a persona's `allowed_tools` and `deny` apply to the CLI's tools."""
    denies_paths: bool = False
    """Whether the CLI's file tools can be denied access to paths (`LaunchSpec.protected`)."""
    splits_path: bool = False
    """Whether the agent's commands can have their own PATH (`LaunchSpec.path`)."""
    writes_temporary: bool = False
    """Whether the CLI's sandbox lets the agent write to /tmp and $TMPDIR."""
    model: bool = False
    """Whether the caller can choose the model (`Persona.model`)."""
    temperature: bool = False
    """Whether the caller can set the model's temperature (`Persona.temperature`)."""
    gate: Literal["none", "open", "closed"] = "none"
    """Whether calls that match `ask` rules can wait for a person, and whether the CLI runs (`open`)
    or refuses (`closed`) such a call if its hooks are broken.
    """
    asks: bool = False
    """Whether the CLI asks for permission and waits. A person decides if no rule does."""
    terminal: bool = True
    """Whether the CLI can run in a person's terminal (`mode: stay`)."""
    questions: bool = True
    """Whether the CLI can answer a question without a session, as summaries require."""


class WindowUsage(msgspec.Struct, frozen=True):
    """Usage of a session's window, and the source of the numbers."""

    tokens: int
    window: int | None
    known: UsageSource
    """Source of the numbers: `unknown` if the window's size is unknown, so that no decision uses
    them.
    """
    model: str = ""
    written: int = 0
    """Number of tokens that the model wrote in the turn."""
    cached: int = 0
    """Number of `tokens` that the API read from its cache."""
    stored: int = 0
    """Number of `tokens` that the API wrote to its cache, for a few minutes."""
    stored_long: int = 0
    """Number of `tokens` that the API wrote to its cache, for an hour."""
    longest: int = 0
    """Number of tokens in the longest request, if `tokens` is a sum of several requests."""

    @property
    def percent(self) -> float | None:
        """Return the window's usage in percent, or None if its size is unknown."""
        return self.tokens * 100 / self.window if self.window and self.known != "unknown" else None

    def within(self, windows: Mapping[str, int]) -> "WindowUsage":
        """Return a copy with the model's window size from `windows`, if it is listed there."""
        window = windows.get(self.model)
        if not window:
            return self
        return msgspec.structs.replace(self, window=window, known="reported")


class SessionOpened(msgspec.Struct, frozen=True):
    """Report of the session that the program is using."""

    session: str
    model: str = ""
    version: str = ""
    window: int | None = None
    """Size of the window in tokens, if the model's name alone determines it."""
    billed: bool | None = None
    """Whether the account is billed per token, or None if the CLI does not show it."""


class AssistantText(msgspec.Struct, frozen=True):
    text: str


class ToolCallStarted(msgspec.Struct, frozen=True):
    """Report that a tool call has started."""

    tool: str
    call: str
    about: str = ""
    """The tool's input, on one line."""
    arguments: dict[str, Any] = {}


class ToolCallFinished(msgspec.Struct, frozen=True):
    """Report that a tool call has ended, with or without success."""

    call: str
    refused: bool = False
    """Whether the CLI refused the call because no rule permits it."""


class RefusedCall(msgspec.Struct, frozen=True):
    """A tool call that the CLI refused because no rule permits it."""

    tool: str = ""
    """Tool name. Both this and `about` are empty if `call` is the id of a call that was reported
    before.
    """
    about: str = ""
    """The tool's input, on one line."""
    arguments: dict[str, Any] = {}
    call: str = ""
    permission: str = ""
    """The tool's name in a persona's permissions, or empty if it is the same as `tool`."""


class UsageReport(msgspec.Struct, frozen=True):
    """Usage of one turn. The model's name may be shortened, unlike in `SessionOpened`."""

    usage: WindowUsage
    turn: str = ""
    """Id of the turn, which may be reported several times; empty if each report is a new turn."""
    usd: float | None = None
    """Cost of the launch so far in dollars, if the CLI reports it while it runs."""
    is_context: bool = False
    """Whether `usage` is only the size of the context, which may be cached and read repeatedly."""


class RetryReport(msgspec.Struct, frozen=True):
    """Report that the CLI is retrying a request that was refused."""

    status: int | None
    seconds: float


class WarningReport(msgspec.Struct, frozen=True):
    """A problem that the CLI reported. The CLI may continue afterwards."""

    text: str


class LimitReport(msgspec.Struct, frozen=True):
    """Report that a usage limit was reached. `resets_at` is in seconds since 1970, if known."""

    resets_at: int | None


class CompactionReport(msgspec.Struct, frozen=True):
    """Report that the CLI replaced the conversation with a summary."""

    before: int | None
    after: int | None


class FinalReport(msgspec.Struct, frozen=True):
    """The program's report of its final result."""

    session: str
    ok: bool
    reason: str = ""
    """The CLI's name for the reason it ended."""
    text: str = ""
    errors: tuple[str, ...] = ()
    status: int | None = None
    """HTTP status with which the API refused a request, if any."""
    usd: float | None = None
    tokens: int | None = None
    """Number of tokens read and written in all turns, if the CLI reports them only at the end."""
    usage: WindowUsage | None = None
    """The same tokens by kind, from which the cost of all turns is computed."""
    windows: dict[str, int] = {}
    """Window size in tokens of each model that was used."""


OutputItem = (
    SessionOpened
    | AssistantText
    | ToolCallStarted
    | ToolCallFinished
    | RefusedCall
    | UsageReport
    | RetryReport
    | WarningReport
    | LimitReport
    | QuotaReport
    | CompactionReport
    | FinalReport
)
SpokenItem = AssistantText | ToolCallStarted | WarningReport
"""Items that can explain an exit if they come last."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about a process when it exits."""

    code: int
    """Exit code; a negative number is the signal that ended the process."""
    session: str
    """Id of the session for which the process was started."""
    resumes: bool = False
    opened: str = ""
    """Id of the session that the process reported."""
    finished: FinalReport | None = None
    refused: LimitReport | None = None
    errors: str = ""
    """Last part of standard error."""
    last: tuple[SpokenItem, ...] = ()
    """The process's last texts, tool calls and warnings, in order."""
    stopped: bool = False
    """Whether Rekindle stopped the process at the operator's request."""
    interactive: bool = False
    """Whether the process ran in a terminal, where only its exit code shows how it ended."""


class BackgroundProcess(msgspec.Struct, frozen=True):
    """One of a launch's processes, recorded so that the supervisor can find it again."""

    process: str
    """Pid, start time, boot id and namespace, which together identify a process permanently."""
    command: str
    is_kept: bool
    """Whether the process matches a `keep:` pattern and keeps running after the launch."""


class SweptProcesses(msgspec.Struct, frozen=True):
    """Processes that a launch left running and that the supervisor stopped."""

    processes: int = 0
    commands: tuple[str, ...] = ()
    """Command lines of the topmost processes, without their child processes."""


class ProcessVitals(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements that the operating system provides for a running launch."""

    stopped: bool
    """Whether the process is suspended, for example by Ctrl-Z."""
    cpu_seconds: float
    """CPU time of the launch's own process, in seconds."""
    tools: int
    """Number of other processes that have the launch's mark or descend from its process."""
    tools_cpu_seconds: float
    """CPU time of the other processes in seconds, including those that ended and were waited for if
    the system counts them. The number drops if a process ends and the launch does not wait for it.
    """
    moved_bytes: int = 0
    """Number of bytes that the launch's own process has read and written; 0 if not counted."""
    tools_moved_bytes: int = 0
    """Number of bytes that the other running processes have read and written."""


class LaunchExit(msgspec.Struct, frozen=True):
    kind: ExitKind
    words: str = ""
    """One-line description of the exit for people."""
    hint: str = ""
    """The CLI's message about when a usage limit resets; empty for other exits."""
    resets_at: int | None = None
    """When a usage limit resets, in seconds since 1970, if the CLI reports it as a number."""
    is_held: bool = False  # Rekindle stopped it, because the rest of the quota is not for it
