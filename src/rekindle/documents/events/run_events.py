"""Events about runs, their cycles and their launches."""

from datetime import datetime

import msgspec

from rekindle.documents.events.event import Event


class WorkSigns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Signs of work since a launch or a cycle began; input to `policy.progress.work_progress`."""

    commits: int = 0
    artefacts: tuple[str, ...] = ()
    """Names of changed result files, with each number replaced by `#`."""
    resolved: int = 0
    """Number of loops that were resolved."""
    decisions: int = 0
    asks_else: bool = False
    """Whether the relay asks for something different from the previous relay."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    summary = "A run started: its spending and its crashes are counted from here."
    cycle: int = 0
    """Number of the last cycle before the run."""


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    summary = "A run is over: the agent starts again only at the operator's request."
    why: str
    """Reason for the end, such as `claimed` or `cycles`; `exit-codes.md` lists its outcome."""
    words: str = ""


class CycleStarted(Event, frozen=True, kw_only=True, tag="cycle.started"):
    summary = "A cycle started: the agent reads the relay, then works."
    cycle: int
    relay: str = ""
    """Archive path of the relay that the cycle started with; empty if there was none."""
    head: str = ""
    """Commit that was checked out in the agent's folder; empty if unknown."""


class CycleEnded(Event, frozen=True, kw_only=True, tag="cycle.ended"):
    summary = "A cycle ended: its results were committed and compared with the previous ones."
    cycle: int
    words: str = ""
    """Reason for the verdict."""
    how: str = ""
    """Origin of the cycle's relay: draft, edit, summary or carried; empty if there is no relay."""
    relay: str = ""
    """Archive path of the relay that the cycle ended with."""
    verdict: str = ""
    """Verdict: progress, stalled, treadmill, waiting or unusable; empty if there was nothing to
    compare.
    """
    about: str = ""
    """The request that was repeated, or what the agent is waiting for."""
    is_equal: bool = False
    """Whether the request was repeated word for word, not only in similar words."""
    did: str = ""
    """Work of the cycle, on one line."""
    evidence: str = ""
    """Evidence of work apart from the relay, as text."""
    topic: str = ""
    """Topic of the relay, without counts and dates; empty if it has none."""
    owed: str = ""
    """Result that the stage required and the cycle did not deliver; empty if nothing is missing."""
    redebated: str = ""
    """Earlier decisions that the relay reopens, one per line."""
    until: str = ""
    """Result of the `until` command, `passed` or `failed`; empty if there is no such command."""
    until_words: str = ""
    """Reason why the `until` command failed, with the end of its output."""
    claimed: bool = False
    """Whether the relay reports that the work is done."""
    review: str = ""
    """Verdict of the reviewer, `passed`, `failed` or `unavailable`; empty without a review."""
    review_words: str = ""
    """Work that is missing according to the reviewer, or the reason why there is no answer."""
    seconds: float = 0.0
    signs: WorkSigns | None = None
    """Signs of work since the cycle began."""


class LaunchStarted(Event, frozen=True, kw_only=True, tag="launch.started"):
    summary = "A process of a session is about to be started."
    launch: str
    """Id of the launch, which is in the environment of every process that it starts."""
    cycle: int
    session: str
    harness: str
    resumes: bool = False
    recovery: bool = False
    """Whether this is a fresh session that takes over from an interrupted one."""
    why: str = ""
    """Reason for a fresh session, although an earlier one could have been resumed."""
    boot: str = ""
    """Boot id of the host; together with `uptime`, it rules out older processes."""
    uptime: float = 0.0
    """Time from the boot of the host to the launch, in seconds."""
    head: str = ""
    """Commit that was checked out; empty if unknown."""


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch.ended"):
    summary = "A process of a session ended, along with the processes that it left behind."
    launch: str
    cycle: int
    session: str
    exit: str
    """Kind of exit: clean, crash, resume-failed, limit, …; lost if the supervisor died before the
    exit.
    """
    resumes: bool = False
    started: bool = True
    """Whether the program could be started."""
    opened: bool = False
    """Whether the program began to work on its session."""
    words: str = ""
    hint: str = ""
    """The CLI's own sentence about the end of a usage limit; empty for other exits."""
    resets_at: int | None = None
    """End of a usage limit in seconds since 1970; None if unknown."""
    code: int | None = None
    """Exit code; a negative number is a signal; None if unknown."""
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
    tokens: int | None = None
    """Number of tokens in the window at the end."""
    window: int | None = None
    known: str = ""
    """Source of the window's fill: reported, exact, estimated or unknown."""
    run_usd: float = 0.0
    run_tokens: int = 0
    """Number of tokens that the whole run has used so far."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""
    billed: bool | None = None
    """Whether the account is billed per token; None if the CLI does not show it."""
    signs: WorkSigns | None = None
    """Signs of work since the launch, or since the last progress if seen; None if unknown."""
    fruitless: float | None = None
    """Seconds from the launch's last progress to its end; None if there was no progress."""


class CallRefused(Event, frozen=True, kw_only=True, tag="call.refused"):
    summary = "The CLI refused a tool call because no rule permits it."
    launch: str
    cycle: int
    tool: str
    about: str = ""
    """Input of the tool, on one line."""
    permission: str = ""
    """Name under which a persona permits the tool; empty if the name is `tool`."""
    denied: bool = False
    """Whether the persona's `deny` or the protection of Rekindle's files refused the call."""
    of_run: int
    """Number of refused calls in the whole run so far."""


class SafeModeEntered(Event, frozen=True, kw_only=True, tag="safe_mode.entered"):
    summary = "The agent is paused, runs nothing, and waits for a person."
    why: str
    words: str = ""


class WaitStarted(Event, frozen=True, kw_only=True, tag="wait.started"):
    summary = "Nothing starts before a given time, because of a pause, an outage or a usage limit."
    why: str
    until: datetime
    """Time at which the wait ends."""


class HangDetected(Event, frozen=True, kw_only=True, tag="hang.detected"):
    summary = "A process has been silent for a long time."
    launch: str
    words: str
    ended: bool = False
    """Whether the supervisor ended the process; otherwise it only reported the hang."""


class ReviewMade(Event, frozen=True, kw_only=True, tag="review.made"):
    summary = "Another persona checked whether the work is done, before the run was allowed to end."
    cycle: int
    persona: str = ""
    """Name of the reviewing persona."""
    verdict: str = ""
    """`passed`, `failed`, or `unavailable` if there is no answer."""
    words: str = ""
    """Work that is missing according to the reviewer, or the reason why there is no answer."""
    usd: float | None = None
    """Cost of the review in dollars; None if unknown."""
    tokens: int = 0
    """Number of tokens that the review used."""
    seconds: float = 0.0
    run_usd: float = 0.0
    run_tokens: int = 0
    """Number of tokens that the run has used so far, including this review."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""


class SpendRecorded(Event, frozen=True, kw_only=True, tag="spend.recorded"):
    summary = "The run's spending so far was recorded, including the turns of the running process."
    launch: str
    tokens: int
    """Number of tokens that the run has used so far."""
    usd: float = 0.0
    """Amount that the run has spent so far, in dollars."""
    unpriced: int = 0
