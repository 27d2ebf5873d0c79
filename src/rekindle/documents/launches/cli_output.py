"""A launch: one process of a session, from its specification to its exit.

A harness turns a `LaunchSpec` into a `ProgramCommand`, the program's output into `OutputItem`s, and
a `ProcessResult` into a `LaunchExit`. These types use Rekindle's terms; the terms of a CLI stay in
its harness.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rekindle.documents.manifest import Persona

LAUNCH_VARIABLE = "REKINDLE_LAUNCH"
"""Variable that marks every process of a launch; hook.py has the same name."""
FOLDER = "REKINDLE_FOLDER"
"""Variable with the folder of the launch's agent."""

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
    "context-full",
    "handoff",
    "budget",
    "hang",
    "interrupted",
    "no-permission",
]


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of a launch, in a fresh session or a resumed one."""

    session: str
    """Id of the session; empty for a new session if the CLI assigns ids itself."""
    resumes: bool = False
    hook: tuple[str, ...] = ()
    """Program that the CLI's hooks start; empty for no hooks."""
    scratch: str = ""
    """Folder for the files of this launch, which the agent cannot write."""
    persona: Persona = Persona()
    instructions: str = ""
    """Text of the persona's system prompt."""
    program: tuple[str, ...] = ()
    """Program to start instead of the CLI's own."""
    usd_left: float | None = None
    """Dollars that the launch may cost; None without a limit."""
    draft: str = ""
    """File that the agent may always write; empty for none."""
    protected: tuple[str, ...] = ()
    """Files and folders that the agent may never write, except for the draft."""
    folder: str = ""
    """Working directory."""
    path: str = ""
    """PATH for the agent's commands, if it differs from the CLI's own; empty if it does not."""
    interactive: bool = False
    """Whether it is started in a terminal, for a person."""
    prompt: str = ""
    """First prompt of a launch in a terminal, whose standard input belongs to the person."""


class ProgramCommand(msgspec.Struct, frozen=True):
    """A program to start. The prompt goes to its standard input, unless that is a terminal."""

    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    """Variables to add to its environment."""
    files: dict[str, str] = {}
    """Contents of the files to create in the scratch folder first, by name."""
    asked: str = ""
    """Standard input of a program that takes a protocol message instead of a prompt."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a CLI; Rekindle works around a missing one, or does without."""

    hooks: bool = True
    """Whether it reports events through hooks while it runs."""
    launch_hooks: bool = True
    """Whether a launch can have its own hooks, independent of the CLI's settings."""
    resumes: bool = True
    """Whether it can resume an earlier session."""
    names_sessions: bool = True
    """Whether the caller can choose the id of a new session."""
    reports_money: bool = False
    """Whether it reports its cost and can enforce a cap."""
    denies_paths: bool = False
    """Whether its file tools can be denied some paths (`LaunchSpec.protected`)."""
    splits_path: bool = False
    """Whether the agent's commands can have a PATH of their own (`LaunchSpec.path`)."""
    model: bool = False
    """Whether the caller can choose the model (`Persona.model`)."""
    temperature: bool = False
    """Whether the caller can set the model's temperature (`Persona.temperature`)."""
    questions: bool = True
    """Whether it answers a question without a session, and so can write summaries."""


class WindowUsage(msgspec.Struct, frozen=True):
    """The fill of a session's window, and its source."""

    tokens: int
    window: int | None
    known: UsageSource
    """Source of the numbers; `unknown` if the window's size is unknown, so no decision may use
    them.
    """
    model: str = ""
    written: int = 0
    """Tokens that the turn wrote."""

    @property
    def percent(self) -> float | None:
        """The fill of the window in percent; None if its size is unknown."""
        return self.tokens * 100 / self.window if self.window and self.known != "unknown" else None

    def within(self, windows: Mapping[str, int]) -> "WindowUsage":
        """Return the usage with its model's window size from `windows`, if it is there."""
        window = windows.get(self.model)
        if not window:
            return self
        return WindowUsage(self.tokens, window, "reported", self.model, self.written)


class Brake(msgspec.Struct, frozen=True, kw_only=True):
    """The way to stop a CLI between two turns without interrupting a tool call.

    Rekindle's hook does it, because nothing else can happen while the CLI waits for a hook. The
    hook reads the fill of the window from the last line of the transcript that reports it. These
    fields describe such a line, so that the hook needs no knowledge of a CLI.
    """

    event: str
    """Hook event that fires between two turns."""
    signs: tuple[str, ...]
    """Texts that every line with the usage of the window contains."""
    after: str
    """Text in such a line after which the counts begin."""
    counts: tuple[str, ...]
    """Keys whose numbers add up to the used tokens."""
    window: str = ""
    """Key of the window's size on the same line; empty if the size must be known beforehand."""
    models: tuple[str, ...] = ()
    """Keys of the requested model, of which the first one present counts; empty if there is one
    model.
    """
    answer: str = ""
    """Answer of the hook that stops the CLI; empty if the hook holds the next call instead."""
    below: str = ""
    """Key that only a sub-agent's payload has; empty if a sub-agent has its own transcript."""
    call: str = ""
    """Key of the finished calls in the payload, because the transcript may lag behind it."""
    calls: tuple[str, ...] = ()
    """Text before the id of a call that starts, then before the id of one that has ended.

    For an event that may also fire during a turn, when a person submits a prompt.
    """
    asides: str = ""
    """Folder beside the transcript with the transcripts of background sub-agents."""
    settled: str = ""
    """Text after the counts once the turn's calls have finished; empty if the event implies it."""
    void: str = ""
    """Start of a line that invalidates everything before it."""
    is_kept: bool = False
    """Whether the transcript is complete when the hook runs, so that ending the CLI at once loses
    nothing.
    """
    beside: tuple[str, ...] = ()
    """Texts in a sub-agent's transcript at the start of a turn, then at its end.

    For sub-agents that work beside the main thread, which must not be stopped meanwhile; empty if
    the main thread waits for all of them.
    """


class SessionOpened(msgspec.Struct, frozen=True):
    """The program reported the session that it works in."""

    session: str
    model: str = ""
    version: str = ""
    window: int | None = None
    """Size of the window in tokens, if the model's name alone determines it."""
    billed: bool | None = None
    """Whether the account is billed per token; None if the CLI does not show it."""


class AssistantText(msgspec.Struct, frozen=True):
    text: str


class ToolCallStarted(msgspec.Struct, frozen=True):
    """A tool call started."""

    tool: str
    call: str
    about: str = ""
    """Input of the tool, on one line."""
    arguments: dict[str, Any] = {}


class ToolCallFinished(msgspec.Struct, frozen=True):
    """A tool call ended, with success or without."""

    call: str
    refused: bool = False
    """Whether the CLI refused to run it because nothing permits it."""


class RefusedCall(msgspec.Struct, frozen=True):
    """A tool call that the CLI refused because nothing permits it."""

    tool: str = ""
    """Name of the tool; empty, like `about`, if `call` refers to a call that was shown before."""
    about: str = ""
    """Input of the tool, on one line."""
    arguments: dict[str, Any] = {}
    call: str = ""
    permission: str = ""
    """Name under which a persona permits the tool; empty if it is `tool` itself."""


class UsageReport(msgspec.Struct, frozen=True):
    """The usage of one turn. Its model's name may be short; `SessionOpened` has the full one."""

    usage: WindowUsage
    turn: str = ""
    """Id of the turn, since a CLI may report one several times; empty if each report is a turn."""


class RetryReport(msgspec.Struct, frozen=True):
    """The CLI retries a refused request by itself."""

    status: int | None
    seconds: float


class WarningReport(msgspec.Struct, frozen=True):
    """The CLI reported a problem; it may continue, and later output follows this report."""

    text: str


class LimitReport(msgspec.Struct, frozen=True):
    """A usage limit was reached; `resets_at` is its end in seconds since 1970, if reported."""

    resets_at: int | None


class CompactionReport(msgspec.Struct, frozen=True):
    """The CLI replaced the conversation with a summary."""

    before: int | None
    after: int | None


class FinalReport(msgspec.Struct, frozen=True):
    """The program's own report of its result."""

    session: str
    ok: bool
    reason: str = ""
    """Reason for the end, in the CLI's term."""
    text: str = ""
    errors: tuple[str, ...] = ()
    status: int | None = None
    """HTTP status with which the API refused, if it did."""
    usd: float | None = None
    tokens: int | None = None
    """Tokens read and written over all turns, if the CLI reports them only at the end."""
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
    | CompactionReport
    | FinalReport
)
SpokenItem = AssistantText | ToolCallStarted | WarningReport
"""Items that may explain an exit if they were the last ones."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about a process at its end."""

    code: int
    """Exit code; negative for the signal that ended it."""
    session: str
    """Id of the session that it was started for."""
    resumes: bool = False
    opened: str = ""
    """Id of the session that it reported."""
    finished: FinalReport | None = None
    refused: LimitReport | None = None
    errors: str = ""
    """End of its standard error."""
    last: tuple[SpokenItem, ...] = ()
    """Its last texts, tool calls and warnings, in order."""
    stopped: bool = False
    """Whether Rekindle ended it at the operator's request."""
    interactive: bool = False
    """Whether it was in a terminal, where only the exit code shows how it ended."""


class BackgroundProcess(msgspec.Struct, frozen=True):
    """A process of a launch that its supervisor may have to find again without the mark."""

    process: str
    """Pid, start time, boot id and namespace, which together identify one process for good."""
    command: str
    is_kept: bool
    """Whether it matches a pattern of `keep:` and outlives the launch."""


class SweptProcesses(msgspec.Struct, frozen=True):
    """The processes that a launch left running and the supervisor ended."""

    processes: int = 0
    commands: tuple[str, ...] = ()
    """Command lines of the topmost processes, without those that they started."""


class ProcessVitals(msgspec.Struct, frozen=True, kw_only=True):
    """The system's view of a running launch, independent of its output."""

    stopped: bool
    """Whether its process is stopped, as by Ctrl-Z, and can do nothing."""
    cpu_seconds: float
    """CPU seconds of its own process."""
    tools: int
    """Number of other processes that have its mark or descend from it."""
    tools_cpu_seconds: float
    """CPU seconds of those processes, including ended ones that were waited for, if the system
    counts them.

    It falls when a process ends that no process of the launch waited for.
    """
    moved_bytes: int = 0
    """Bytes that its own process has read and written; 0 if the system does not count them."""
    tools_moved_bytes: int = 0
    """Bytes that the other running processes have read and written."""


class LaunchExit(msgspec.Struct, frozen=True):
    kind: ExitKind
    words: str = ""
    """Description for people, on one line."""
    hint: str = ""
    """For a limit: the CLI's own sentence about its end."""
    resets_at: int | None = None
    """For a limit: its end in seconds since 1970, if the CLI reports it as a number."""
