"""A launch: one process of a session, from what it is to be to how it ended.

A harness turns `LaunchSpec` into a `ProgramCommand`, its program's output into `OutputItem`, and
what is known at the end, `ProcessResult`, into an `LaunchExit`. All of it is said in our words:
what a CLI calls these things stays in its harness.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rekindle.documents.manifest import Persona

LAUNCH_VARIABLE = "REKINDLE_LAUNCH"
"""The variable with which everything that a launch starts is marked; hook.py looks for it too."""
FOLDER = "REKINDLE_FOLDER"
"""The variable with the folder of the agent that a launch is of."""

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
    "costly",
    "handoff",
    "budget",
    "hang",
    "interrupted",
    "no-permission",
]


class LaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch is to be: a fresh session, or one that goes on."""

    session: str
    """The id that the session is to have, or has; empty where the CLI gives new ones theirs."""
    resumes: bool = False
    hook: tuple[str, ...] = ()
    """The program that the CLI's hooks are to start; empty: none."""
    scratch: str = ""
    """A folder for the files of this launch, where the agent cannot write."""
    persona: Persona = Persona()
    instructions: str = ""
    """The text of the persona's system prompt."""
    program: tuple[str, ...] = ()
    """What is started in the place of the CLI's own program."""
    usd_left: float | None = None
    """What the launch may cost; None: nobody has said."""
    draft: str = ""
    """A file that it may write, whatever else it may not; empty: none."""
    protected: tuple[str, ...] = ()
    """Files and folders that it must not write, but for the draft, whatever else it may."""
    folder: str = ""
    """The folder that it works in."""
    path: str = ""
    """The PATH for commands of its agent, if the CLI itself has another one; empty: the same."""
    interactive: bool = False
    """It is started in a terminal, for a person who sits there."""
    prompt: str = ""
    """Of one in a terminal, what it begins with: its standard input is the person's."""


class ProgramCommand(msgspec.Struct, frozen=True):
    """A program to start. The prompt goes to its standard input, unless that is a terminal."""

    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    """What is added to the environment that it gets."""
    files: dict[str, str] = {}
    """What must stand in the scratch folder first, by name."""
    asked: str = ""
    """What it is asked on its standard input, where that is no prompt of ours."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a CLI can do; what it cannot is done another way, or not at all."""

    hooks: bool = True
    """It tells us what happens while it happens."""
    launch_hooks: bool = True
    """A launch can be given hooks of its own, whatever its settings say."""
    resumes: bool = True
    """It can go on in a session that it had before."""
    names_sessions: bool = True
    """A new session can be given its id."""
    reports_money: bool = False
    """It says what it has cost, and can be held to a cap."""
    denies_paths: bool = False
    """Its file tools can be kept from writing some paths (`LaunchSpec.protected`)."""
    splits_path: bool = False
    """Its agent's commands can have another PATH (`LaunchSpec.path`) than the CLI itself."""
    model: bool = False
    """It can be asked for a model (`Persona.model`)."""
    temperature: bool = False
    """Its model's temperature can be set (`Persona.temperature`)."""
    questions: bool = True
    """It answers a question without a session, and can write summaries."""


class WindowUsage(msgspec.Struct, frozen=True):
    """How full a session's window is, and how that is known."""

    tokens: int
    window: int | None
    known: UsageSource
    """`unknown` where the window is: nothing may be decided by it."""
    model: str = ""
    written: int = 0
    """What the turn has put out, in tokens."""

    @property
    def percent(self) -> float | None:
        """How full the window is; None where nobody knows how large it is."""
        return self.tokens * 100 / self.window if self.window and self.known != "unknown" else None

    def within(self, windows: Mapping[str, int]) -> "WindowUsage":
        """The same in its model's window, where that was learnt from an earlier launch."""
        window = windows.get(self.model)
        if not window:
            return self
        return WindowUsage(self.tokens, window, "reported", self.model, self.written)


class Brake(msgspec.Struct, frozen=True, kw_only=True):
    """How a CLI is stopped between two turns, without cutting a tool call.

    A hook of ours does it: only there nothing else can happen meanwhile. It reads in the transcript
    how full the window is, by the last line that tells; what such a line looks like is said here,
    so that the hook knows no CLI.
    """

    event: str
    """The hook's event, at a boundary."""
    signs: tuple[str, ...]
    """What stands in the lines that tell how full the window is."""
    after: str
    """Where in such a line the counts begin."""
    counts: tuple[str, ...]
    """The keys whose numbers add up to what is used."""
    window: str = ""
    """The key of the window's size, where the same line has it; empty: it must be known before."""
    models: tuple[str, ...] = ()
    """The keys of the model that was asked, the first that the line has; empty: there is one."""
    answer: str = ""
    """What the hook says, so that the CLI stops; empty: it holds the next call until that."""
    below: str = ""
    """The key that only a sub-agent's payload has; empty: its transcript is another."""
    call: str = ""
    """The key, in the payload, of the calls that are over: the transcript may be behind them."""
    calls: tuple[str, ...] = ()
    """What stands before the id of a call that begins, and of one that is over.

    Where a boundary may be none, since a person asks for something while it works.
    """
    asides: str = ""
    """The folder beside the transcript where sub-agents have theirs that work in the background."""
    settled: str = ""
    """What stands behind the counts once the turn's calls are over; empty: the event says that."""
    void: str = ""
    """How a line begins behind which nothing that stands before it counts any more."""
    is_kept: bool = False
    """The transcript has all of it when the hook is asked: what it would do to end is not missed.
    """
    beside: tuple[str, ...] = ()
    """What a sub-agent's transcript has where a turn of it begins, then where one is over.

    Of one that works beside the main thread, which must not be stopped meanwhile; empty: the main
    thread waits for all of them.
    """


class SessionOpened(msgspec.Struct, frozen=True):
    """The program has said which session it works in."""

    session: str
    model: str = ""
    version: str = ""
    window: int | None = None
    """How large its window is, where its model's name alone tells that."""
    billed: bool | None = None
    """Whether the account is billed per token; None: the CLI does not show it."""


class AssistantText(msgspec.Struct, frozen=True):
    text: str


class ToolCallStarted(msgspec.Struct, frozen=True):
    """A tool call has begun."""

    tool: str
    call: str
    about: str = ""
    """What it is given, in a line."""
    arguments: dict[str, Any] = {}


class ToolCallFinished(msgspec.Struct, frozen=True):
    """A tool call has ended, well or not."""

    call: str
    refused: bool = False
    """The CLI did not run it: nothing permits it."""


class RefusedCall(msgspec.Struct, frozen=True):
    """A tool call that the CLI refused because nothing permits it."""

    tool: str = ""
    """Empty, as is the rest: the call that was shown before by the same id is meant."""
    about: str = ""
    """What it was given, in a line."""
    arguments: dict[str, Any] = {}
    call: str = ""
    permission: str = ""
    """The tool by which a persona permits it; empty: `tool` itself."""


class UsageReport(msgspec.Struct, frozen=True):
    """A turn was made. Its model may be named in short; whole it stands in `SessionOpened`."""

    usage: WindowUsage
    turn: str = ""
    """Which one: a CLI may report the same turn several times. Empty: each report is one."""


class RetryReport(msgspec.Struct, frozen=True):
    """The CLI tries a refused request again by itself."""

    status: int | None
    seconds: float


class WarningReport(msgspec.Struct, frozen=True):
    """The CLI has complained; it may go on, and what it then says and does comes after it."""

    text: str


class LimitReport(msgspec.Struct, frozen=True):
    """A usage limit was reached; when it ends, in seconds since 1970, where that was said."""

    resets_at: int | None


class CompactionReport(msgspec.Struct, frozen=True):
    """The CLI has put a summary in the place of the conversation."""

    before: int | None
    after: int | None


class FinalReport(msgspec.Struct, frozen=True):
    """The program's own account of how it went."""

    session: str
    ok: bool
    reason: str = ""
    """Why it ended, in the CLI's word."""
    text: str = ""
    errors: tuple[str, ...] = ()
    status: int | None = None
    """The status with which the API refused, where it did."""
    usd: float | None = None
    tokens: int | None = None
    """All that was read and written, over all its turns, where it says so only at the end."""
    windows: dict[str, int] = {}
    """The size of the window of each model that was used."""


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
"""What may tell why it ended, where it was the last that was shown."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when a process has ended."""

    code: int
    """Its exit code; negative: the signal that ended it."""
    session: str
    """The session that it was started for."""
    resumes: bool = False
    opened: str = ""
    """The session that it said it works in."""
    finished: FinalReport | None = None
    refused: LimitReport | None = None
    errors: str = ""
    """The end of what it wrote to its standard error."""
    last: tuple[SpokenItem, ...] = ()
    """The last that it said, did and complained of, in its order."""
    stopped: bool = False
    """We ended it, because the operator said so."""
    interactive: bool = False
    """It was in a terminal, where nothing but its exit code tells how it ended."""


class BackgroundProcess(msgspec.Struct, frozen=True):
    """A process of a launch that its supervisor may have to find again without its mark."""

    process: str
    """Its number, start, boot and namespace: together they name one process for good."""
    command: str
    is_kept: bool
    """It matches a pattern of `keep:` and outlives the launch."""


class SweptProcesses(msgspec.Struct, frozen=True):
    """What a launch had left running, and was ended."""

    processes: int = 0
    commands: tuple[str, ...] = ()
    """The command lines; of a process with others below it, its own alone."""


class ProcessVitals(msgspec.Struct, frozen=True, kw_only=True):
    """What the system knows of a launch that runs, whether it says anything or not."""

    stopped: bool
    """Somebody has stopped its process, as Ctrl-Z does: it can do nothing."""
    cpu_seconds: float
    """What its own process has used."""
    tools: int
    """How many other processes bear its mark or descend from it."""
    tools_cpu_seconds: float
    """What they have used, with those that ended and were waited for, where the system counts them.

    It falls when one ends that nobody of the launch waited for.
    """
    moved_bytes: int = 0
    """Bytes that its own process has read and written; 0 if the system does not count them."""
    tools_moved_bytes: int = 0
    """The same of the other processes that run."""


class LaunchExit(msgspec.Struct, frozen=True):
    kind: ExitKind
    words: str = ""
    """What happened, in a line for people."""
    hint: str = ""
    """Of a limit: the CLI's own sentence, which says when it ends."""
    resets_at: int | None = None
    """Of a limit: when it ends, in seconds since 1970, where the CLI has said it so."""
