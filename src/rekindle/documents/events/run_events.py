"""Events about runs, their cycles and their launches."""

from datetime import datetime

import msgspec

from rekindle.documents.events.event import Event


class WorkSigns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Signs of progress since the start of a launch or cycle."""

    commits: int = 0
    artefacts: tuple[str, ...] = ()
    """Names of changed result files, with each number replaced by `#`."""
    resolved: int = 0
    """Number of loops that were resolved."""
    decisions: int = 0
    asks_else: bool = False
    """Whether the relay's request differs from the previous relay's."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    summary = "A run started. Its spending and crashes are counted from this event on."
    cycle: int = 0
    """Number of the last cycle before the run."""


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    summary = "A run is over. The agent starts again only if the operator requests it."
    why: str
    """Why the run ended, such as `claimed` or `cycles`. `exit-codes.md` lists the outcomes."""
    words: str = ""


class CycleStarted(Event, frozen=True, kw_only=True, tag="cycle.started"):
    summary = "A cycle started. The agent first reads the relay and then works."
    cycle: int
    relay: str = ""
    """Archive path of the relay that the cycle started with, or empty if there was none."""
    head: str = ""
    """Commit that was checked out in the agent's folder, or empty if unknown."""


class CycleEnded(Event, frozen=True, kw_only=True, tag="cycle.ended"):
    summary = "A cycle ended. Its results were committed and compared with the previous ones."
    cycle: int
    words: str = ""
    """Reason for the verdict."""
    how: str = ""
    """Where the cycle's relay came from: draft, edit, summary or carried. Empty if there is no
    relay.
    """
    relay: str = ""
    """Archive path of the relay that the cycle ended with."""
    verdict: str = ""
    """Verdict: progress, stalled, treadmill, waiting, finished or unusable. Empty without an
    earlier cycle to compare with.
    """
    about: str = ""
    """Request that was repeated, or the event that the agent is waiting for."""
    is_equal: bool = False
    """Whether the request was repeated word for word instead of in similar words."""
    has_own_work: bool = False
    """Whether a relay that waits also lists work that the agent can do alone."""
    did: str = ""
    """One-line description of what the cycle did."""
    evidence: str = ""
    """Evidence of work other than the relay, as text."""
    topic: str = ""
    """The relay's topic without counts and dates, or empty if it has none."""
    owed: str = ""
    """Required result that the cycle did not deliver, or empty if nothing is missing."""
    redebated: str = ""
    """Earlier decisions that the relay reopens, one per line."""
    until: str = ""
    """Result of the `until` command, `passed` or `failed`, or empty if there is no such command."""
    until_words: str = ""
    """Why the `until` command failed, with the end of its output."""
    claimed: bool = False
    """Whether the relay reports that the work is done."""
    review: str = ""
    """The reviewer's verdict: `passed`, `failed` or `unavailable`; empty if there was no review."""
    review_words: str = ""
    """What is missing according to the reviewer, or why there is no answer."""
    opinion: str = ""
    """Second opinion on a stall: `progress`, `stuck`, or `unusable` without a usable answer.
    Empty if none was needed.
    """
    opinion_words: str = ""
    """Evidence and quotation in the second opinion, or why it is unusable."""
    seconds: float = 0.0
    signs: WorkSigns | None = None
    """Signs of work since the cycle began."""


class LaunchStarted(Event, frozen=True, kw_only=True, tag="launch.started"):
    summary = "Rekindle is about to start a process for a session."
    launch: str
    """Launch id. Every process in the launch has it in its environment."""
    cycle: int
    session: str
    harness: str
    account: str = ""
    """Name of the CLI's account in the manifest; empty for the CLI's own configuration."""
    resumes: bool = False
    recovery: bool = False
    """Whether this is a fresh session that replaces an interrupted one."""
    why: str = ""
    """Why Rekindle started a fresh session even though it could have resumed an earlier one."""
    boot: str = ""
    """The host's boot id. With `uptime`, it shows which processes are older than the launch."""
    uptime: float = 0.0
    """Time from the host's boot to the launch, in seconds."""
    head: str = ""
    """Commit that was checked out, or empty if unknown."""
    messages: tuple[str, ...] = ()
    """Ids of the persons' messages in its prompt."""
    origin: str = ""
    """Origin of a session that Rekindle did not launch here: `person` if a person started it, or
    `import` if it was moved here. Empty for a launch by Rekindle.
    """


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch.ended"):
    summary = "A session's process ended, along with the processes that it left behind."
    launch: str
    cycle: int
    session: str
    exit: str
    """Kind of exit, such as clean, crash, resume-failed or limit. It is `lost` if the supervisor
    died first.
    """
    resumes: bool = False
    started: bool = True
    """Whether the program could be started."""
    opened: bool = False
    """Whether the program started working on its session."""
    words: str = ""
    hint: str = ""
    """The CLI's message about when a usage limit resets; empty for other exits."""
    resets_at: int | None = None
    """When a usage limit resets, in seconds since 1970; None if unknown."""
    is_held: bool = False
    """Whether Rekindle ended the process because the rest of the quota is not for it."""
    code: int | None = None
    """Exit code, or None if unknown. A negative number is a signal."""
    refused: int = 0
    """Number of tool calls that the CLI refused."""
    swept: int = 0
    """Number of processes that the launch left behind."""
    ended: tuple[str, ...] = ()
    """Command lines of the first processes that the launch left behind."""
    seconds: float = 0.0
    """Duration in seconds, measured with a monotonic clock."""
    usd: float | None = None
    """Cost that the CLI reported, in dollars."""
    session_usd: float = 0.0
    """Cost that the CLI reported for the session so far, in dollars."""
    tokens: int | None = None
    """Number of tokens in the context window at the end."""
    window: int | None = None
    known: str = ""
    """Where the context-window usage comes from: reported, exact, estimated or unknown."""
    run_usd: float = 0.0
    run_tokens: int = 0
    """Number of tokens that the whole run has used so far."""
    unpriced: int = 0
    """Number of launches in this run whose cost is unknown."""
    is_estimated: bool | None = None
    """Whether a part of run_usd was computed from tokens, or None in older logs."""
    billed: bool | None = None
    """Whether the account is billed per token, or None if the CLI does not show it."""
    signs: WorkSigns | None = None
    """Signs of work since the launch or the last observed progress, or None if unknown."""
    fruitless: float | None = None
    """Seconds between the last progress and the end of the launch, or None without progress."""


class WorkspaceCreated(Event, frozen=True, kw_only=True, tag="workspace.created"):
    summary = "Rekindle created the agent's own clone or work tree."
    folder: str
    """Folder in which the agent works."""
    branch: str
    """Branch that is checked out there."""
    base: str
    """Commit that the work starts from."""


class SnapshotTaken(Event, frozen=True, kw_only=True, tag="snapshot.taken"):
    summary = "Rekindle took a snapshot of the work tree. `rekindle rewind` can return to it."
    snapshot: str
    """Name of the snapshot, such as `trades/12`."""
    commit: str
    """Commit that holds the snapshot."""
    reason: str
    """When the snapshot was taken: at the start or end of a cycle, at a resume or at a handoff."""
    cycle: int
    launch: str = ""
    """Id of the last launch in the cycle before the snapshot, or empty if there was none."""
    left_out: int = 0
    """Number of files left out of the snapshot because they are too large."""


class CallRefused(Event, frozen=True, kw_only=True, tag="call.refused"):
    summary = "The CLI refused a tool call because no rule permits it."
    launch: str
    cycle: int
    tool: str
    about: str = ""
    """The tool's input, on one line."""
    permission: str = ""
    """The tool's name in a persona's permissions, or empty if it is the same as `tool`."""
    denied: bool = False
    """Whether the call was refused by the persona's `deny` rules or to protect Rekindle's files."""
    of_run: int
    """Number of calls refused so far in the whole run."""


class SafeModeEntered(Event, frozen=True, kw_only=True, tag="safe_mode.entered"):
    summary = "The agent is paused, runs nothing, and waits for a person."
    why: str
    words: str = ""


class WaitStarted(Event, frozen=True, kw_only=True, tag="wait.started"):
    summary = "Nothing starts before a given time, because of a pause, an outage or a usage limit."
    why: str
    until: datetime
    """Time at which the wait ends."""
    words: str = ""
    """What the agent waits for, if `why` does not say it."""


class HangDetected(Event, frozen=True, kw_only=True, tag="hang.detected"):
    summary = "A process has been silent for a long time."
    launch: str
    words: str
    ended: bool = False
    """Whether the supervisor stopped the process instead of only reporting the hang."""


class HostRefused(Event, frozen=True, kw_only=True, tag="host.refused"):
    summary = "A sandbox refused a connection to a host that the manifest does not allow."
    launch: str
    host: str
    """Name and port of the host."""


class ReviewMade(Event, frozen=True, kw_only=True, tag="review.made"):
    summary = "Another persona checked whether the work is done before the run was allowed to end."
    cycle: int
    persona: str = ""
    """Name of the reviewing persona."""
    verdict: str = ""
    """`passed`, `failed`, or `unavailable` if there is no answer."""
    words: str = ""
    """What is missing according to the reviewer, or why there is no answer."""
    usd: float | None = None
    """The review's cost in dollars, or None if unknown."""
    tokens: int = 0
    """Number of tokens that the review used."""
    seconds: float = 0.0
    run_usd: float = 0.0
    run_tokens: int = 0
    """Number of tokens that the run has used so far, including this review."""
    unpriced: int = 0
    """Number of launches in this run whose cost is unknown."""
    is_estimated: bool | None = None
    """Whether a part of run_usd was computed from tokens, or None in older logs."""


class SpendRecorded(Event, frozen=True, kw_only=True, tag="spend.recorded"):
    summary = "The run's spending so far was recorded, including the current process's turns."
    launch: str
    tokens: int
    """Number of tokens that the run has used so far."""
    usd: float = 0.0
    """Amount that the run has spent so far, in dollars."""
    unpriced: int = 0
    session: str = ""
    """Session of the launch, if the CLI has reported a cost for it."""
    session_usd: float = 0.0
    """Cost that the CLI reported for the session so far, in dollars."""
