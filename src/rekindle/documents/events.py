"""Events: the facts of an agent's life, one line of JSON each.

The union is closed: a fact that is not listed here does not exist. Each kind has an explicit tag,
which commands print and programs read, and a summary for the reference; without them the import
fails. A log that a later Rekindle of the same schema wrote may have kinds that this one does not
know: they are read as `UnknownEvent`, change nothing, and stay in the log.

`seq`, `gen` and `at` are given by the log when an event enters it; in the inbox they
are zero.
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
    """Its place in the log, from 1."""
    gen: int = 0
    """The generation of the writer: an older one's late event is refused."""
    at: str = ""
    """`segment:offset` behind the inbox record that it came from, so that none is folded twice."""

    more: dict[str, Any] = {}
    """Fields of an inbox record that we do not know: the log keeps them beside the others."""

    summary: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class WorkSigns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Signs of work since a launch or a cycle began; input to `policy.progress.work_progress`."""

    commits: int = 0
    artefacts: tuple[str, ...] = ()
    """Names of changed results, with `#` for every number in them."""
    resolved: int = 0
    """Loops that were resolved."""
    decisions: int = 0
    asks_else: bool = False
    """The relay asks for something else than the one before."""


class AgentCreated(Event, frozen=True, kw_only=True, tag="agent.created"):
    summary = "An agent's folder was made."
    agent: str


class AgentReceived(Event, frozen=True, kw_only=True, tag="agent.received"):
    summary = "What was known of the agent elsewhere: this log continues from there."
    known: dict[str, Any]
    """All that the events up to this one came to."""


class OwnerChanged(Event, frozen=True, kw_only=True, tag="owner.changed"):
    summary = "A host took the agent over; from here on older generations are refused."
    host: str
    previous: str
    left: str = ""
    """Why the last of the work stays there: it could not be pushed. Empty: it was."""


class WorkspacePushed(Event, frozen=True, kw_only=True, tag="workspace.pushed"):
    summary = "What the agent works on was pushed: from there it comes back on another host."
    revision: str
    """The commit that holds the work tree as it was, what is not committed in it too."""
    head: str = ""
    """The commit that was checked out; empty: there was none yet."""
    branch: str = ""
    """Its branch; empty: none."""
    claim: int = 0
    """The generation for which the host had claimed what it pushes to."""


class WorkspacePushFailed(Event, frozen=True, kw_only=True, tag="workspace.kept"):
    summary = "What the agent works on could not be pushed: it stays on its host alone."
    words: str


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    summary = "A session of a harness began, or went on: by resume, clear, compact or fork."
    session: str
    harness: str
    source: str = ""
    launch: str = ""
    """The launch that it belongs to; empty for a person's own session."""
    process: str = ""
    """Which process works on it, told from every other: pid, start and boot."""
    transcript: str = ""
    context_tokens: int = 0
    """Of a resumed session: how much its model has to read again."""
    cache_expired: bool = False
    """The CLI says that its model's cache has forgotten it: all of that is paid for once more."""
    visitor: bool = False
    """A person's own session beside a supervised one: it is left alone."""


class SessionLost(Event, frozen=True, kw_only=True, tag="session.lost"):
    summary = "A session had begun and never ended, and its process was gone; this has been told."
    session: str


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    summary = "A session ended and said so; a killed one never does."
    session: str
    reason: str = ""
    visitor: bool = False


class PromptSubmitted(Event, frozen=True, kw_only=True, tag="prompt.submitted"):
    summary = "A prompt was submitted to the session."
    session: str
    text: str
    call: str = ""
    """The prompt's own id: hooks installed twice report it twice."""
    visitor: bool = False


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    summary = "A harness is about to compact its own context."
    session: str
    trigger: str = ""
    visitor: bool = False


class Heartbeat(Event, frozen=True, kw_only=True, tag="heartbeat"):
    summary = "A session showed a sign of life: a tool call ended."
    session: str = ""
    tool: str = ""
    call: str = ""
    """The tool call's own id: hooks installed twice report it twice, and it counts once."""
    visitor: bool = False


class PrimerGiven(Event, frozen=True, kw_only=True, tag="primer.given"):
    summary = "A session was told where the work stands."
    session: str
    source: str
    characters: int
    recovery: bool = False


class CycleStarted(Event, frozen=True, kw_only=True, tag="cycle.started"):
    summary = "A cycle began: the relay is read, work follows."
    cycle: int
    relay: str = ""
    """Where the archive keeps the relay that it began with; empty: there was none."""
    head: str = ""
    """The commit that the agent's folder stood at; empty: unknown."""


class CycleEnded(Event, frozen=True, kw_only=True, tag="cycle.ended"):
    summary = "A cycle ended: what is known was committed, and held against what was before."
    cycle: int
    words: str = ""
    """Why the two relays were judged so."""
    how: str = ""
    """Where its relay is from: draft, edit, summary, carried; empty: there is none."""
    relay: str = ""
    """Where the archive keeps the relay that it ended with."""
    verdict: str = ""
    """progress, stalled, treadmill, waiting or unusable; empty: nothing to compare."""
    about: str = ""
    """What was repeated, or what is waited for."""
    is_equal: bool = False
    """Asked for in the same words, not merely in like ones."""
    did: str = ""
    """What was done in it, on one line."""
    evidence: str = ""
    """What work there was beside the relay, in words."""
    topic: str = ""
    owed: str = ""
    """What its stage asked for and it did not have; empty: nothing."""
    redebated: str = ""
    """What was decided before and is put up for choice again."""
    until: str = ""
    """`passed` or `failed`: the command that says whether all is done; empty: there is none."""
    until_words: str = ""
    """How that command failed, with the end of its output."""
    claimed: bool = False
    """The agent reports in its relay that the work is done."""
    review: str = ""
    """`passed`, `failed` or `unavailable`: the review of its end; empty: there was none."""
    review_words: str = ""
    """What the reviewer misses, or why there is no answer."""
    seconds: float = 0.0
    signs: WorkSigns | None = None
    """Work that could be seen since the cycle began."""


class LaunchStarted(Event, frozen=True, kw_only=True, tag="launch.started"):
    summary = "A process of a session is about to be started."
    launch: str
    """Stands in the environment of everything that the launch starts."""
    cycle: int
    session: str
    harness: str
    resumes: bool = False
    recovery: bool = False
    """A fresh session that takes over from one that was interrupted."""
    why: str = ""
    """Why it is a fresh one although there was a session to go on with."""
    boot: str = ""
    """The boot of the host, and how long after it: what is older cannot belong to the launch."""
    uptime: float = 0.0
    head: str = ""
    """The commit that was checked out; empty: unknown."""


class LaunchEnded(Event, frozen=True, kw_only=True, tag="launch.ended"):
    summary = "A process of a session ended; what it had left behind was ended too."
    launch: str
    cycle: int
    session: str
    exit: str
    """clean, crash, resume-failed, limit, …; lost: its supervisor had gone before it ended."""
    resumes: bool = False
    started: bool = True
    """False: its program could not be started."""
    opened: bool = False
    """The program got as far as to work on its session."""
    words: str = ""
    hint: str = ""
    resets_at: int | None = None
    code: int | None = None
    refused: int = 0
    """Tool calls that its CLI refused."""
    swept: int = 0
    """How many processes it had left behind."""
    ended: tuple[str, ...] = ()
    """The command lines of the first of them."""
    seconds: float = 0.0
    """How long it ran, by a monotonic clock."""
    usd: float | None = None
    """What the CLI says that it cost."""
    tokens: int | None = None
    window: int | None = None
    known: str = ""
    """How the fill of the window is known: reported, exact, estimated, unknown."""
    run_usd: float = 0.0
    run_tokens: int = 0
    """What the whole run has spent by then."""
    unpriced: int = 0
    """Launches of the run whose cost is unknown."""
    billed: bool | None = None
    """Whether the CLI shows that the account is billed per token; None: it shows nothing."""
    signs: WorkSigns | None = None
    """Work that could be seen since the launch began, or since `fruitless` began; None: unknown."""
    fruitless: float | None = None
    """Seconds at its end that followed progress which was seen while it ran; None: none was."""


class CallRefused(Event, frozen=True, kw_only=True, tag="call.refused"):
    summary = "The CLI refused a tool call because nothing permits it."
    launch: str
    cycle: int
    tool: str
    about: str = ""
    """What the tool was given, in a line."""
    permission: str = ""
    """The tool by which a persona permits it; empty: `tool` itself."""
    denied: bool = False
    """The persona's own `deny`, or the protection of Rekindle's files, refused it."""
    of_run: int
    """Refused calls of the whole run by then."""


class DesiredSet(Event, frozen=True, kw_only=True, tag="desired.said"):
    summary = "The operator said whether the agent is to run; this outranks every marker."
    desired: Literal["running", "stopped"]
    cycles: int | None = None
    """How many cycles its run may have, 0: any number; None: as before."""
    unbounded: bool | None = None
    """Whether the run continues without progress (`--budget none`); None: as before."""


class RestartRequested(Event, frozen=True, kw_only=True, tag="restart.asked"):
    summary = "The operator asked for another start now, whatever stood in the way."
    fresh: bool = False
    """In a fresh session, not in the one that there is."""
    once: bool = False
    """Only for this run: what is known of the cycles before it still counts."""


class PersonAnswered(Event, frozen=True, kw_only=True, tag="person.answered"):
    summary = "A person answered what the agent was waiting for; the next cycle is told."
    text: str
    asked: str = ""
    """What was waited for."""


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question.asked"):
    summary = "A person is asked for a decision; the first answer counts."
    question: str
    """The question's id: the agent's name and `number`."""
    number: int
    """The questions of the agent are numbered from 1; no number is given again."""
    about: str
    """Why the agent needs a person: permission, or a reason of safe mode or of a run's end."""
    text: str = ""
    """What is asked, in a sentence."""
    request: dict[str, Any] = {}
    """The exact request: the refused call with its arguments, or the cap that was reached."""
    choices: tuple[str, ...]
    """The possible answers; TEXT stands for any text, AMOUNT for a number."""
    default: str
    """The choice that applies at the deadline."""
    deadline: datetime | None = None
    """When the default applies; None: never."""
    launch: str = ""
    """The launch that it is about, if it is about one."""


AnswerEffect = Literal["restart", "continue", "stop", "finish", "note"]
"""What an answer does: start again, continue a run that is over, stop, end the run as done, or only
inform the agent."""


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="question.answered"):
    summary = "A question was answered, by a person or by its deadline; its effect follows from it."
    question: str
    effect: AnswerEffect
    choice: str = ""
    """The choice that was taken; empty: the answer is `text`."""
    text: str = ""
    """What the next cycle is told; empty: nothing."""
    asked: str = ""
    """What was asked, for the next cycle."""
    budget: dict[str, float] = {}
    """The caps that the answer sets for this run, by `usd`, `tokens` or `hours`."""
    by: str = ""
    """The user who answered; empty: the deadline did."""
    host: str = ""
    origin: str = ""
    """How the answer came: terminal, command or deadline."""
    refused: str = ""
    """Why the answer does not count; empty: it does."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started"):
    summary = "A run began: what it spends and how often it crashes is counted from here."
    cycle: int = 0
    """The last cycle before it."""


class RunEnded(Event, frozen=True, kw_only=True, tag="run.ended"):
    summary = "A run is over: the agent is not started again unless the operator says so."
    outcome: str
    """done; budget; or what was not to be waited for."""
    words: str = ""


class SafeModeEntered(Event, frozen=True, kw_only=True, tag="safe_mode.entered"):
    summary = "The agent is kept, runs nothing, and waits for a person."
    why: str
    words: str = ""


class WaitStarted(Event, frozen=True, kw_only=True, tag="wait.started"):
    summary = "Nothing is started before an instant: a pause, an outage, a usage limit."
    why: str
    until: datetime


class HangDetected(Event, frozen=True, kw_only=True, tag="hang.noticed"):
    summary = "A process has shown nothing for a long time."
    launch: str
    words: str
    ended: bool = False
    """It was ended for it; else it is only said."""


class WindowSizeReported(Event, frozen=True, kw_only=True, tag="window.learnt"):
    summary = "A CLI has said how large its model's window is."
    harness: str
    model: str
    window: int


class WindowMeasured(Event, frozen=True, kw_only=True, tag="window.measured"):
    summary = "How full the window of a running session is."
    launch: str
    tokens: int
    window: int | None = None
    """Its size in tokens; None: unknown."""
    known: str = "unknown"
    """How that is known: reported, exact, estimated, unknown."""


class HandoffRequested(Event, frozen=True, kw_only=True, tag="handoff.asked"):
    summary = "The operator asked for a handoff to a fresh session."


class HandoffTriggered(Event, frozen=True, kw_only=True, tag="handoff.triggered"):
    summary = "A session was stopped between two turns: a fresh one is to go on with a checkpoint."
    launch: str
    cycle: int
    session: str
    by: str
    """threshold: its window is so full; person: the operator asked for it."""
    tokens: int | None = None
    window: int | None = None
    known: str = "unknown"
    """How that is known: reported, exact, estimated, unknown."""
    threshold: int | None = None
    """In percent of the window."""
    first: int | None = None
    """What the session's first turn had used already."""
    work: str = ""
    """A fingerprint of what git and the loops know of the work; empty: unknown."""


class HandoffResumed(Event, frozen=True, kw_only=True, tag="handoff.resumed"):
    summary = "A fresh session begins with the checkpoint of the one before it."
    launch: str
    cycle: int
    count: int
    """Which handoff of its cycle it was, from 1."""
    checkpoint: str
    """Where the archive keeps it."""


class HandoffFailed(Event, frozen=True, kw_only=True, tag="handoff.failed"):
    summary = "A handoff failed, or no model could be asked for it; the work continues."
    launch: str
    words: str


class HandoffHalted(Event, frozen=True, kw_only=True, tag="handoff.halted"):
    summary = "A handoff would lead nowhere: everything is kept, and a person is needed."
    cycle: int
    words: str


class SummaryMade(Event, frozen=True, kw_only=True, tag="summary.made"):
    summary = "Turns of a session were summarized, by a model or without one."
    document: str
    """What it was made for: checkpoint, relay or brief."""
    how: str
    """headless: by a model; mechanical: without one."""
    words: str = ""
    """Why no model has made it."""
    turns: int = 0
    usd: float = 0.0
    tokens: int = 0
    """What asking has cost."""
    seconds: float = 0.0
    """What it took, with what was gathered for it, where an agent waited for it."""
    run_usd: float | None = None
    run_tokens: int | None = None
    """What the run has spent with it; nothing if a person asked for it by hand."""
    unpriced: int = 0
    """Launches of the run whose cost is not known."""


class ReviewMade(Event, frozen=True, kw_only=True, tag="review.made"):
    summary = "Another persona verified that the work is done, before the end of the run counts."
    cycle: int
    persona: str = ""
    verdict: str = ""
    """`passed`, `failed`, or `unavailable` if there is no answer."""
    words: str = ""
    """What the reviewer misses, or why there is no answer."""
    usd: float | None = None
    tokens: int = 0
    """What the review has cost."""
    seconds: float = 0.0
    run_usd: float = 0.0
    run_tokens: int = 0
    """What the run has spent with it."""
    unpriced: int = 0
    """Launches of the run whose cost is not known."""


class SpendRecorded(Event, frozen=True, kw_only=True, tag="spend.noted"):
    summary = "What the run has spent so far, with the turns of the process that runs."
    launch: str
    tokens: int
    usd: float = 0.0
    unpriced: int = 0


class LoopAdded(Event, frozen=True, kw_only=True, tag="loop.added"):
    summary = "An open loop was added, reworded or reopened."
    id: str
    text: str
    added: str = ""
    """The day it was first seen, where that was earlier than this event."""


class LoopResolved(Event, frozen=True, kw_only=True, tag="loop.resolved"):
    summary = "An open loop was explicitly resolved."
    id: str
    reason: str


class LoopCorrection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Other words for a loop that stays as it is: it neither opens nor closes anything.

    Its own time is just after what it corrects, so that a resolution which the editor did not see
    still counts.
    """

    ts: datetime
    id: str
    text: str
    closes: bool = False
    added: str = ""
    extra: dict[str, Any] | None = None


class StateAdopted(Event, frozen=True, kw_only=True, tag="state.adopted"):
    summary = "state.json was edited by hand; what was added is taken over, nothing is dropped."
    open_loops: tuple[OpenLoop, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    corrections: tuple[LoopCorrection, ...] = ()
    numbers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    last_active: datetime | None = None


class SourceAdopted(Event, frozen=True, kw_only=True, tag="source.adopted"):
    summary = "What another loop had left behind was taken over; the same is not taken twice."
    source: str
    sha256: str
    """Of all that was found there."""


class RelayProposed(Event, frozen=True, kw_only=True, tag="relay.proposed"):
    summary = "A relay was handed in; only ever in the inbox, the fold commits it."
    text: str
    by: str


class DocumentCommitted(Event, frozen=True, kw_only=True):
    """A document's new content: this event is the moment from which it counts."""

    document: ClassVar[str]
    sha256: str
    previous: str = ""
    """The hash of the content before it, for rolling forward after a crash."""
    path: str
    """Where the archive keeps these bytes, relative to the agent's folder."""
    by: str
    """Who wrote it: person, agent, agent-edit (in a file of the relay that the agent can write, so
    it may be a person's edit), summarizer, machine."""
    tokens: int = 0
    headline: str = ""
    """Its first line of substance, so that a status needs no document."""


class RelayCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="relay.committed"):
    summary = "A relay became the current one."
    document = "relay"
    trimmed: str = ""
    """Where the archive keeps what was trimmed away."""
    over_cap: bool = False


class CheckpointCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="checkpoint.committed"):
    summary = "A checkpoint became the current one."
    document = "checkpoint"
    session: str = ""
    """A person's own session, which continues with it; empty: the next session does."""


class BriefCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="brief.committed"):
    summary = "A brief became the current one."
    document = "brief"


class BriefedPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a kept transcript has gone into a brief."""

    at: int = 0
    """Behind so many bytes of it comes what is new."""
    turn: int = 0
    """The last turn before that place."""
    rest: str = ""
    """What the turns are known by that were not over yet."""


class BriefMade(Event, frozen=True, kw_only=True, tag="brief.made"):
    summary = (
        "What was said and done up to here has gone into a brief, and from there into the state."
    )
    morning: str
    """The day on whose morning it is to be read."""
    closes: bool = False
    """It was written when it was due, and is the last one for that morning."""
    told: dict[str, BriefedPosition] = {}
    """How far each transcript was told that has grown since the brief before."""
    turns: int = 0
    left_out: int = 0
    """How many turns were too many for the summarizer, the oldest."""
    failed: int = 0
    """How often in a row no model could be had: what it was to read is read again."""
    unusable: int = 0
    """How often in a row it had answered, and the answer could not be used."""
    claimed: dict[str, str] = {}
    """Loops that were called resolved, with the reason, and stay open: no turn bears it out."""
    numbers: dict[str, str] = {}
    last_active: datetime | None = None
    """When the last thing was that it tells of."""
    resolved: int = 0
    """The place in the log up to which resolved.jsonl was put away."""


class DocumentRejected(Event, frozen=True, kw_only=True, tag="document.rejected"):
    summary = "A document was edited into something unusable; it was set aside."
    document: str
    path: str
    reason: str


class InboxRejected(Event, frozen=True, kw_only=True, tag="inbox.rejected"):
    summary = "A record of the inbox was torn or unreadable and was skipped."
    bytes: int
    reason: str


class UnknownEvent(msgspec.Struct, frozen=True):
    """A kind that a later Rekindle writes."""

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
"""What only the operator decides: records of these kinds count only from outside the workspace."""

HOOK_REPORTS = (SessionStarted, SessionEnded, PromptSubmitted, SessionCompacted, Heartbeat)
"""What a CLI's hooks report of its sessions."""

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
    """Refuse a kind that readers would not find in the reference, or only by its class's name."""
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
    """One line of the log or of the inbox. An unknown kind of our schema is not an error."""
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _parse_unknown(line, error)
    json_codec.refuse_newer_schema(event.v, "event", SCHEMA)
    _require_time(event.ts)
    return event


def parse_untrusted(line: bytes) -> AnyEvent | UnknownEvent:
    """A record of the inbox: its place in the log is not its own to claim, unknown fields stay."""
    event = parse(line)
    if isinstance(event, UnknownEvent):
        return msgspec.structs.replace(event, seq=0, gen=0, at="")
    raw = json_codec.decode_object(line, "event", schema=SCHEMA)
    return msgspec.structs.replace(event, seq=0, gen=0, at="", more=_select_unknown(event, raw))


def render(event: Event) -> bytes:
    """The event's line, without the newline; the fields that every line has stand first."""
    fields = msgspec.to_builtins(event)
    fields["v"] = event.v
    head = {key: fields.pop(key) for key in _ORDER if key in fields}
    more = _select_unknown(event, fields.pop("more", {}))
    return json_codec.encode(head | fields | more, "event")


def _select_unknown(event: Event, fields: dict[str, Any]) -> dict[str, Any]:
    """What is no field of the event's own: it must never speak in the place of one."""
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
    """A time with a zone, and with room on both sides: the next mark must be able to follow it."""
    if ts.tzinfo is None:
        raise DocumentError("event", "its time has no zone")
    if not _EARLIEST <= ts.year <= _LATEST:
        raise DocumentError("event", f"its time is out of range ({ts.year})")
