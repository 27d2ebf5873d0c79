"""Events: the facts of an agent's life, each one line of JSON.

The union `AnyEvent` is closed: it lists every kind. Each kind has an explicit tag, which commands
print and programs read, and a summary for the reference; the import fails if either is missing. A
log written by a later Rekindle of the same schema may have kinds that this one does not know. They
are read as `UnknownEvent`, change nothing, and stay in the log.

The log assigns `seq`, `gen` and `at` when it accepts an event; in the inbox they have no value.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, Literal, get_args

import msgspec

from rekindle.documents.state import OpenLoop, Resolution
from rekindle.errors import DocumentError
from rekindle.formats import json_codec

SCHEMA = 1


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    ts: datetime
    v: int = SCHEMA
    seq: int = 0
    """Position in the log, from 1."""
    gen: int = 0
    """Generation of the writer. The log refuses late events of an older generation."""
    at: str = ""
    """`segment:offset` of the end of its inbox record, so that no record is folded twice."""

    more: dict[str, Any] = {}
    """Unknown fields of an inbox record; the log keeps them beside the known ones."""

    summary: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class WorkSigns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Signs of work since a launch or a cycle began; input to `policy.progress.work_progress`."""

    commits: int = 0
    artefacts: tuple[str, ...] = ()
    """Names of changed result files, with each number replaced by `#`."""
    resolved: int = 0
    """Number of resolved loops."""
    decisions: int = 0
    asks_else: bool = False
    """Whether the relay asks for something other than the previous one."""


class AgentCreated(Event, frozen=True, kw_only=True, tag="agent.created"):
    summary = "An agent's folder was created."
    agent: str


class AgentReceived(Event, frozen=True, kw_only=True, tag="agent.received"):
    summary = "The state of an agent from elsewhere; this log continues from it."
    known: dict[str, Any]
    """Projection of all events up to this one."""


class OwnerChanged(Event, frozen=True, kw_only=True, tag="owner.changed"):
    summary = "A host took the agent over; from here on older generations are refused."
    host: str
    previous: str
    left: str = ""
    """Reason why the latest work stays on the previous host unpushed; empty if it was pushed."""


class WorkspacePushed(Event, frozen=True, kw_only=True, tag="workspace.pushed"):
    summary = "The agent's workspace was pushed; another host can continue from it."
    revision: str
    """Commit that holds the work tree, including uncommitted changes."""
    head: str = ""
    """Commit that was checked out; empty if there was none yet."""
    branch: str = ""
    """Branch that was checked out; empty if none was."""
    claim: int = 0
    """Generation for which the host had claimed the work branch."""


class WorkspacePushFailed(Event, frozen=True, kw_only=True, tag="workspace.kept"):
    summary = "The agent's workspace could not be pushed; it exists only on its host."
    words: str


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    summary = "A session of a harness started or continued: by resume, clear, compact or fork."
    session: str
    harness: str
    source: str = ""
    launch: str = ""
    """Id of the launch that the session belongs to; empty for a person's own session."""
    process: str = ""
    """Identity of the session's process: pid, start time and boot id."""
    transcript: str = ""
    visitor: bool = False
    """Whether this is a person's own session beside a supervised one; Rekindle leaves it alone."""


class SessionLost(Event, frozen=True, kw_only=True, tag="session.lost"):
    summary = "A session ended without a report, with its process; a later session was told."
    session: str


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    summary = "A session reported its end; a killed one never does."
    session: str
    reason: str = ""
    visitor: bool = False


class PromptSubmitted(Event, frozen=True, kw_only=True, tag="prompt.submitted"):
    summary = "A prompt was submitted to the session."
    session: str
    text: str
    call: str = ""
    """Id of the prompt, which identifies duplicates from hooks that are installed twice."""
    visitor: bool = False


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    summary = "A harness is about to compact its context."
    session: str
    trigger: str = ""
    visitor: bool = False


class Heartbeat(Event, frozen=True, kw_only=True, tag="heartbeat"):
    summary = "A session showed a sign of life: a tool call ended."
    session: str = ""
    tool: str = ""
    call: str = ""
    """Id of the tool call, which identifies duplicates from hooks that are installed twice."""
    visitor: bool = False


class PrimerGiven(Event, frozen=True, kw_only=True, tag="primer.given"):
    summary = "A session received the state of the work."
    session: str
    source: str
    characters: int
    recovery: bool = False


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
    """progress, stalled, treadmill, waiting or unusable; empty if there was nothing to compare."""
    about: str = ""
    """The repeated request, or the thing that the agent waits for."""
    is_equal: bool = False
    """Whether the request was repeated in the same words, not only in similar ones."""
    did: str = ""
    """Work of the cycle, on one line."""
    evidence: str = ""
    """Evidence of work apart from the relay, as text."""
    topic: str = ""
    owed: str = ""
    """Result that the stage asked for and the cycle did not deliver; empty if complete."""
    redebated: str = ""
    """Earlier decisions that the relay opens for debate again, one per line."""
    until: str = ""
    """Result of the `until` command, `passed` or `failed`; empty if there is no such command."""
    until_words: str = ""
    """Reason why the `until` command failed, with the end of its output."""
    claimed: bool = False
    """Whether the relay reports that the work is done."""
    review: str = ""
    """Verdict of the reviewer, `passed`, `failed` or `unavailable`; empty without a review."""
    review_words: str = ""
    """Work that the reviewer misses, or the reason why there is no answer."""
    seconds: float = 0.0
    signs: WorkSigns | None = None
    """Signs of work since the cycle began."""


class LaunchStarted(Event, frozen=True, kw_only=True, tag="launch.started"):
    summary = "A process of a session is about to be started."
    launch: str
    """Id of the launch, found in the environment of every process that it starts."""
    cycle: int
    session: str
    harness: str
    resumes: bool = False
    recovery: bool = False
    """Whether this is a fresh session that takes over from an interrupted one."""
    why: str = ""
    """Reason for a fresh session although there was one to resume."""
    boot: str = ""
    """Boot id of the host. With `uptime`, in seconds, it rules out older processes."""
    uptime: float = 0.0
    head: str = ""
    """Commit that was checked out; empty if unknown."""


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch.ended"):
    summary = "A process of a session ended, along with the processes that it left behind."
    launch: str
    cycle: int
    session: str
    exit: str
    """clean, crash, resume-failed, limit, …; lost if the supervisor died before it."""
    resumes: bool = False
    started: bool = True
    """Whether the program could be started."""
    opened: bool = False
    """Whether the program began to work on its session."""
    words: str = ""
    hint: str = ""
    resets_at: int | None = None
    code: int | None = None
    refused: int = 0
    """Number of tool calls that the CLI refused."""
    swept: int = 0
    """Number of processes that the launch left behind."""
    ended: tuple[str, ...] = ()
    """Command lines of the first of those processes."""
    seconds: float = 0.0
    """Duration by a monotonic clock, in seconds."""
    usd: float | None = None
    """Cost in dollars as the CLI reports it."""
    tokens: int | None = None
    window: int | None = None
    known: str = ""
    """Source of the fill of the window: reported, exact, estimated or unknown."""
    run_usd: float = 0.0
    run_tokens: int = 0
    """Tokens that the whole run has used so far."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""
    billed: bool | None = None
    """Whether the account is billed per token; None if the CLI does not show it."""
    signs: WorkSigns | None = None
    """Signs of work since the launch began, or since the start of `fruitless`; None if unknown."""
    fruitless: float | None = None
    """Seconds from the last progress seen during the launch to its end; None if none was seen."""


class CallRefused(Event, frozen=True, kw_only=True, tag="call.refused"):
    summary = "The CLI refused a tool call because nothing permits it."
    launch: str
    cycle: int
    tool: str
    about: str = ""
    """Input of the tool, on one line."""
    permission: str = ""
    """Name under which a persona permits the tool; empty if it is `tool` itself."""
    denied: bool = False
    """Whether the persona's `deny` or the protection of Rekindle's files refused the call."""
    of_run: int
    """Number of refused calls of the whole run so far."""


class DesiredSet(Event, frozen=True, kw_only=True, tag="desired.said"):
    summary = "The operator decided whether the agent should run; this overrides every marker."
    desired: Literal["running", "stopped"]
    cycles: int | None = None
    """Maximum number of cycles of the run, 0 for no limit; None leaves it unchanged."""
    unbounded: bool | None = None
    """Whether the run continues without progress (`--budget none`); None leaves it unchanged."""


class RestartRequested(Event, frozen=True, kw_only=True, tag="restart.asked"):
    summary = "The operator asked for another start now, whatever prevented it."
    fresh: bool = False
    """Whether to start a fresh session instead of resuming the current one."""
    once: bool = False
    """Whether the restart is for one run only; earlier cycles still count against the agent."""


class PersonAnswered(Event, frozen=True, kw_only=True, tag="person.answered"):
    summary = "A person answered the agent; the next cycle receives the answer."
    text: str
    asked: str = ""
    """The thing that the agent waited for."""


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question.asked"):
    summary = "A person is asked for a decision; the first answer counts."
    question: str
    """Id of the question: the agent's name and `number`."""
    number: int
    """Number of the question within the agent, from 1; never used again."""
    about: str
    """Reason why the agent needs a person: permission, or the reason of safe mode or of a run's
    end.
    """
    text: str = ""
    """The question, in one sentence."""
    request: dict[str, Any] = {}
    """Exact request: the refused call with its arguments, or the cap that was reached."""
    choices: tuple[str, ...]
    """Possible answers; TEXT means any text, AMOUNT a number."""
    default: str
    """Choice that applies at the deadline."""
    deadline: datetime | None = None
    """Time at which the default applies; None for never."""
    launch: str = ""
    """Id of the launch that the question is about; empty if it is about none."""


AnswerEffect = Literal["restart", "continue", "stop", "finish", "note"]
"""Effect of an answer: start again, continue a run that is over, stop, end the run as done, or only
inform the agent.
"""


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="question.answered"):
    summary = "A question was answered, by a person or by its deadline."
    question: str
    effect: AnswerEffect
    choice: str = ""
    """Selected choice; empty if the answer is `text`."""
    text: str = ""
    """Message for the next cycle; empty if there is none."""
    asked: str = ""
    """The question, repeated for the next cycle."""
    budget: dict[str, float] = {}
    """Caps that the answer sets for this run, by `usd`, `tokens` or `hours`."""
    by: str = ""
    """Name of the user who answered; empty if the deadline passed."""
    host: str = ""
    origin: str = ""
    """Origin of the answer: terminal, command or deadline."""
    refused: str = ""
    """Reason why the answer does not count; empty if it counts."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    summary = "A run started: its spending and its crashes are counted from here."
    cycle: int = 0
    """Number of the last cycle before the run."""


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    summary = "A run is over: the agent starts again only at the operator's request."
    outcome: str
    """done, budget, or the cause of a wait that the run does not make."""
    words: str = ""


class SafeModeEntered(Event, frozen=True, kw_only=True, tag="safe_mode.entered"):
    summary = "The agent is paused, runs nothing, and waits for a person."
    why: str
    words: str = ""


class WaitStarted(Event, frozen=True, kw_only=True, tag="wait.started"):
    summary = "Nothing starts before a given time: a pause, an outage, a usage limit."
    why: str
    until: datetime


class HangDetected(Event, frozen=True, kw_only=True, tag="hang.noticed"):
    summary = "A process has been silent for a long time."
    launch: str
    words: str
    ended: bool = False
    """Whether the supervisor ended the process; otherwise it only reported the hang."""


class WindowSizeReported(Event, frozen=True, kw_only=True, tag="window.learnt"):
    summary = "A CLI reported the size of its model's window."
    harness: str
    model: str
    window: int


class WindowMeasured(Event, frozen=True, kw_only=True, tag="window.measured"):
    summary = "The fill of a running session's window was measured."
    launch: str
    tokens: int
    window: int | None = None
    """Size of the window in tokens; None if unknown."""
    known: str = "unknown"
    """Source of the fill of the window: reported, exact, estimated or unknown."""


class HandoffRequested(Event, frozen=True, kw_only=True, tag="handoff.asked"):
    summary = "The operator asked for a handoff to a fresh session."


class HandoffTriggered(Event, frozen=True, kw_only=True, tag="handoff.triggered"):
    summary = "A session was stopped between two turns; a fresh one continues from a checkpoint."
    launch: str
    cycle: int
    session: str
    by: str
    """Cause: threshold for a full window, person for the operator's request."""
    tokens: int | None = None
    window: int | None = None
    known: str = "unknown"
    """Source of the fill of the window: reported, exact, estimated or unknown."""
    threshold: int | None = None
    """Percentage of the window at which a handoff is due."""
    first: int | None = None
    """Tokens in the window after the session's first turn."""
    work: str = ""
    """Fingerprint of the work in git and in the loops; empty if unknown."""


class HandoffResumed(Event, frozen=True, kw_only=True, tag="handoff.resumed"):
    summary = "A fresh session starts with the checkpoint of the previous one."
    launch: str
    cycle: int
    count: int
    """Number of the handoff within its cycle, from 1."""
    checkpoint: str
    """Archive path of the checkpoint."""


class HandoffFailed(Event, frozen=True, kw_only=True, tag="handoff.failed"):
    summary = "A handoff failed, or no model could be asked for it; the work continues."
    launch: str
    words: str


class HandoffHalted(Event, frozen=True, kw_only=True, tag="handoff.halted"):
    summary = "A handoff would not help: everything is saved, and a person is needed."
    cycle: int
    words: str


class SummaryMade(Event, frozen=True, kw_only=True, tag="summary.made"):
    summary = "Turns of a session were summarized, by a model or without one."
    document: str
    """Document that needed the summary: checkpoint, relay or brief."""
    how: str
    """headless if a model made it, mechanical otherwise."""
    words: str = ""
    """Reason why no model made it."""
    turns: int = 0
    usd: float = 0.0
    tokens: int = 0
    """Tokens that the request used."""
    seconds: float = 0.0
    """Seconds that an agent waited for the summary, including the time to collect its input."""
    run_usd: float | None = None
    run_tokens: int | None = None
    """Tokens that the run has used, including this summary; None if a person requested it."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""


class ReviewMade(Event, frozen=True, kw_only=True, tag="review.made"):
    summary = "Another persona reviewed whether the work is done, before the run may end."
    cycle: int
    persona: str = ""
    verdict: str = ""
    """`passed`, `failed`, or `unavailable` if there is no answer."""
    words: str = ""
    """Work that the reviewer misses, or the reason why there is no answer."""
    usd: float | None = None
    tokens: int = 0
    """Tokens that the review used."""
    seconds: float = 0.0
    run_usd: float = 0.0
    run_tokens: int = 0
    """Tokens that the run has used, including this review."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""


class SpendRecorded(Event, frozen=True, kw_only=True, tag="spend.noted"):
    summary = "The spend of the run so far, including the turns of the running process."
    launch: str
    tokens: int
    usd: float = 0.0
    unpriced: int = 0


class LoopAdded(Event, frozen=True, kw_only=True, tag="loop.added"):
    summary = "An open loop was added, reworded or reopened."
    id: str
    text: str
    added: str = ""
    """Day on which the loop was first seen, if that was before this event."""


class LoopResolved(Event, frozen=True, kw_only=True, tag="loop.resolved"):
    summary = "An open loop was explicitly resolved."
    id: str
    reason: str


class LoopCorrection(msgspec.Struct, frozen=True, omit_defaults=True):
    """New text for a loop that neither opens nor closes.

    Its time is just after the event that it corrects, so that a resolution which the editor did not
    see still counts.
    """

    ts: datetime
    id: str
    text: str
    closes: bool = False
    added: str = ""
    extra: dict[str, Any] | None = None


class StateAdopted(Event, frozen=True, kw_only=True, tag="state.adopted"):
    summary = "state.json was edited by hand; additions were adopted, and nothing was dropped."
    open_loops: tuple[OpenLoop, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    corrections: tuple[LoopCorrection, ...] = ()
    numbers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    last_active: datetime | None = None


class SourceAdopted(Event, frozen=True, kw_only=True, tag="source.adopted"):
    summary = "The files of another loop were adopted; the same files are not adopted twice."
    source: str
    sha256: str
    """Hash of everything found at the source."""


class RelayProposed(Event, frozen=True, kw_only=True, tag="relay.proposed"):
    summary = "A relay was submitted; it stays in the inbox until the fold commits it."
    text: str
    by: str


class DocumentCommitted(Event, frozen=True, kw_only=True):
    """New content of a document, current from this event on."""

    document: ClassVar[str]
    sha256: str
    previous: str = ""
    """Hash of the previous content, for rolling forward after a crash."""
    path: str
    """Archive path of the content, relative to the agent's folder."""
    by: str
    """Author: person, agent, agent-edit (an edit of a relay file that the agent can write, so
    possibly by a person), summarizer or machine.
    """
    tokens: int = 0
    headline: str = ""
    """First line of substance, so that `status` need not read the document."""


class RelayCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="relay.committed"):
    summary = "A relay became the current one."
    document = "relay"
    trimmed: str = ""
    """Archive path of the part that was trimmed away."""
    over_cap: bool = False


class CheckpointCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="checkpoint.committed"):
    summary = "A checkpoint became the current one."
    document = "checkpoint"
    session: str = ""
    """Person's own session that continues with the checkpoint; empty if the next session does."""


class BriefCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="brief.committed"):
    summary = "A brief became the current one."
    document = "brief"


class BriefedPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Position in an archived transcript up to which a brief has covered it."""

    at: int = 0
    """Byte offset of the first part that is not covered yet."""
    turn: int = 0
    """Number of the last turn before that offset."""
    rest: str = ""
    """Fingerprint of the turns that were not finished yet."""


class BriefMade(Event, frozen=True, kw_only=True, tag="brief.made"):
    summary = "A brief covers everything up to here, and the state has its results."
    morning: str
    """Date of the morning that the brief is for."""
    closes: bool = False
    """Whether the brief was written when due and is the last one for that morning."""
    told: dict[str, BriefedPosition] = {}
    """Covered position of each transcript that has grown since the previous brief."""
    turns: int = 0
    left_out: int = 0
    """Number of oldest turns that the summarizer had no room for."""
    failed: int = 0
    """Consecutive briefs without an available model; the next one covers their turns again."""
    unusable: int = 0
    """Consecutive briefs for which the model's answer was unusable."""
    claimed: dict[str, str] = {}
    """Loops reported as resolved, with the reason, that stay open because no turn confirms it."""
    numbers: dict[str, str] = {}
    last_active: datetime | None = None
    """Time of the latest activity that the brief covers."""
    resolved: int = 0
    """Position in the log up to which resolved.jsonl was archived."""


class DocumentRejected(Event, frozen=True, kw_only=True, tag="document.rejected"):
    summary = "An edit made a document unusable; the edit was set aside."
    document: str
    path: str
    reason: str


class InboxRejected(Event, frozen=True, kw_only=True, tag="inbox.rejected"):
    summary = "A record of the inbox was torn or unreadable, and was skipped."
    bytes: int
    reason: str


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a kind that only a later Rekindle knows."""

    kind: str
    ts: datetime
    seq: int = 0
    gen: int = 0
    at: str = ""


OPERATOR_COMMANDS = (
    DesiredSet,
    RestartRequested,
    PersonAnswered,
    QuestionAnswered,
    HandoffRequested,
)
"""Commands of the operator; records of these kinds count only from outside the workspace."""

HOOK_REPORTS = (SessionStarted, SessionEnded, PromptSubmitted, SessionCompacted, Heartbeat)
"""Events of a session that a CLI's hooks report."""

AnyEvent = (
    AgentCreated
    | AgentReceived
    | OwnerChanged
    | WorkspacePushed
    | WorkspacePushFailed
    | SessionStarted
    | SessionLost
    | SessionEnded
    | PromptSubmitted
    | SessionCompacted
    | Heartbeat
    | PrimerGiven
    | CycleStarted
    | CycleEnded
    | LaunchStarted
    | LaunchEnded
    | CallRefused
    | DesiredSet
    | RestartRequested
    | PersonAnswered
    | QuestionAsked
    | QuestionAnswered
    | RunStarted
    | RunEnded
    | SafeModeEntered
    | WaitStarted
    | HangDetected
    | WindowSizeReported
    | WindowMeasured
    | HandoffRequested
    | HandoffTriggered
    | HandoffResumed
    | HandoffFailed
    | HandoffHalted
    | SpendRecorded
    | SummaryMade
    | ReviewMade
    | LoopAdded
    | LoopResolved
    | StateAdopted
    | SourceAdopted
    | RelayProposed
    | RelayCommitted
    | CheckpointCommitted
    | BriefCommitted
    | BriefMade
    | DocumentRejected
    | InboxRejected
)

EVENT_KINDS: tuple[type[Event], ...] = get_args(AnyEvent)
_TAG = re.compile(r"[a-z_]+(\.[a-z_]+)*")


def _require_rows(kinds: tuple[type[Event], ...]) -> None:
    """Raise TypeError for a kind without its own tag or summary, or one missing from AnyEvent."""
    for kind in kinds:
        if not _TAG.fullmatch(str(kind.__struct_config__.tag)) or not vars(kind).get("summary"):
            raise TypeError(f"event {kind.__name__}: needs a `tag=` and a `summary` of its own")
    if unlisted := [one.__name__ for one in _find_innermost(Event) if one not in kinds]:
        raise TypeError(f"events {', '.join(unlisted)}: not in AnyEvent")


def _find_innermost(kind: type[Event]) -> Iterator[type[Event]]:
    below = kind.__subclasses__()
    for one in below:
        yield from _find_innermost(one)
    if not below:
        yield kind


_require_rows(EVENT_KINDS)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_EARLIEST, _LATEST = 1970, 9000
_ORDER = ("v", "seq", "gen", "ts", "kind")


def parse(line: bytes) -> AnyEvent | UnknownEvent:
    """Return the event in a line of the log or of the inbox.

    An unknown kind of the current schema is not an error.
    """
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _parse_unknown(line, error)
    json_codec.refuse_newer_schema(event.v, "event", SCHEMA)
    _require_time(event.ts)
    return event


def parse_untrusted(line: bytes) -> AnyEvent | UnknownEvent:
    """Return the event in an inbox record, with its unknown fields.

    A record cannot claim a position in the log: `seq`, `gen` and `at` are reset.
    """
    event = parse(line)
    if isinstance(event, UnknownEvent):
        return msgspec.structs.replace(event, seq=0, gen=0, at="")
    raw = json_codec.decode_object(line, "event", schema=SCHEMA)
    return msgspec.structs.replace(event, seq=0, gen=0, at="", more=_select_unknown(event, raw))


def render(event: Event) -> bytes:
    """Return the event as a line without its newline, the fields common to all events first."""
    fields = msgspec.to_builtins(event)
    fields["v"] = event.v
    head = {key: fields.pop(key) for key in _ORDER if key in fields}
    more = _select_unknown(event, fields.pop("more", {}))
    return json_codec.encode(head | fields | more, "event")


def _select_unknown(event: Event, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the event's kind does not have; they must never override its own."""
    known = {field.encode_name for field in msgspec.structs.fields(event)} | {"kind"}
    return {key: value for key, value in fields.items() if key not in known}


def _parse_unknown(line: bytes, error: Exception) -> UnknownEvent:
    raw = json_codec.decode_object(line, "event", schema=SCHEMA)
    kind = raw.get("kind")
    known = {str(cls.__struct_config__.tag) for cls in EVENT_KINDS}
    if not isinstance(kind, str) or kind in known:
        raise DocumentError("event", f"does not fit its kind ({error})") from error
    try:
        found = msgspec.convert(raw, UnknownEvent)
    except msgspec.ValidationError as unfit:
        raise DocumentError("event", f"does not fit its kind ({unfit})") from unfit
    _require_time(found.ts)
    return found


def _require_time(ts: datetime) -> None:
    """Require a time zone, and a year with room on both sides so that later times can follow."""
    if ts.tzinfo is None:
        raise DocumentError("event", "its time has no zone")
    if not _EARLIEST <= ts.year <= _LATEST:
        raise DocumentError("event", f"its time is out of range ({ts.year})")
