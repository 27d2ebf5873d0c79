"""An agent as the engine of a fleet keeps it: the log's end, what it adds up to, its documents.

Whoever runs the agent holds its lease, which has a number, the generation. Facts are counted one
commit after the other, and only of the lease that is in force; every fact gets its place here. What
the operator says needs no lease. All of it is pure: the engine calls it again to see what it did.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.errors import DocumentError
from rekindle.formats import validation
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.operator import questions
from rekindle.policy.projection.fold import (
    Projection,
    fold_events,
    keep_newest_reports,
    prune_projection,
)
from rekindle.policy.settings.runtime_settings import (
    FLEET_COMMIT_BYTES,
    FLEET_CURSORS_KEPT,
    FLEET_DOCUMENT_BYTES,
    FLEET_EVENTS_KEPT,
    FLEET_HISTORY_EVENTS,
    FLEET_PROMPT_CHARACTERS,
    FLEET_TAIL_BYTES,
    STALL_TURNS,
)
from rekindle.policy.supervision.decide import AgentLimits
from rekindle.thresholds.fleet_limits import FLEET_COMMITS_KEPT

_PROMPT = str(events.PromptSubmitted.__struct_config__.tag)
OPERATOR_EVENTS = (
    events.LoopAdded,
    events.LoopResolved,
    events.DesiredSet,
    events.RestartRequested,
    events.PersonAnswered,
    events.QuestionAnswered,
    events.HandoffRequested,
)
"""What an operator may say; everything else is a fact that only a lease establishes."""
_ARCHIVED = re.compile(r"memories/archive/[A-Za-z0-9][A-Za-z0-9._-]*")
"""Where a document lies in an agent's folder: whoever receives it writes it there."""


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is set up with, wherever it runs."""

    manifest: str
    """The text of rekindle.yaml."""
    files: dict[str, str] = {}
    """The files that it names, by their path beside it."""
    limits: AgentLimits = AgentLimits()
    pool: str
    heartbeat_seconds: float
    remote: str = ""
    """Where its workspace is pushed to; empty: it has none but the host's own."""
    notifies: bool = False
    """Somebody is to be told when it needs a person."""
    within: str = ""
    """The folder in that repository that it works in."""
    project: str = ""
    """The name of the project's folder, for notifications; empty: an older Rekindle defined it."""


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    definition: AgentDefinition
    projection: Projection
    documents: dict[str, str] = {}
    """Those that anybody may still ask for, by their path in the agent's folder."""
    tail: tuple[str, ...] = ()
    """The last lines of the log."""
    generation: int = 0
    is_leased: bool = False
    host: str = ""
    """Who has the lease, or had it last; empty: whoever takes it."""
    answered: dict[str, "CommitResult"] = {}
    """The last commits, by their id."""
    most_events: int = FLEET_HISTORY_EVENTS
    """How long its history may be before it is carried over: kept with it, so that a later Rekindle
    may say another number, and still does again what this one did."""


class ReplicaState(msgspec.Struct, frozen=True):
    """What a host needs of an agent, to go on with it."""

    projection: Projection
    documents: dict[str, str]


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A host takes up the lease that it was given."""

    generation: int
    host: str
    seq: int = 0
    held: str = ""
    """The fingerprint of what it has from before."""
    defined: str = ""
    """The fingerprint of the definition that it has."""


class OpenLease(msgspec.Struct, frozen=True, kw_only=True):
    kept: ReplicaState | None
    """What it is to go on from; None: from what it has."""
    definition: AgentDefinition | None
    """What the agent is set up with; None: as before."""


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    generation: int
    known: int
    """The last event that whoever commits has."""
    lines: tuple[str, ...] = ()
    documents: dict[str, str] = {}


class CommitResult(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    """Everything after what was known."""


def hash_projection(projection: Projection) -> str:
    """A fingerprint of what is known: two that are the same go on from the same.

    How far a host has read its own inbox is nobody else's concern.
    """
    own = msgspec.structs.replace(prune_projection(projection), cursors={}, seen={})
    return _hash_value(own)


def hash_definition(definition: AgentDefinition) -> str:
    return _hash_value(definition)


def _hash_value(value: object) -> str:
    """The same however its dictionaries came about; their keys may be numbers."""
    plain = msgspec.json.decode(validation.encode_json(value))
    return hash_bytes(msgspec.json.encode(plain, order="deterministic"))


def grant_lease(kept: RegisteredAgent) -> RegisteredAgent:
    """The next lease, which nobody has taken up yet; the one before it counts no more."""
    return msgspec.structs.replace(kept, generation=kept.generation + 1, is_leased=True)


def release_lease(kept: RegisteredAgent, *, is_gone: bool) -> RegisteredAgent:
    """Nobody has it now; where its host `is_gone`, any other may."""
    return msgspec.structs.replace(kept, is_leased=False, host="" if is_gone else kept.host)


def explain_refused_lease(kept: RegisteredAgent, generation: int) -> str:
    """Why a lease of this generation counts no more; empty: it counts."""
    if generation != kept.generation:
        return f"generation {generation} was followed by {kept.generation}"
    return "" if kept.is_leased else f"the lease of generation {generation} has ended"


def open_lease(
    kept: RegisteredAgent, asked: LeaseRequest, now: datetime
) -> tuple[RegisteredAgent, OpenLease]:
    """The host has the lease; where another had the agent before, the log says so."""
    previous = kept.host or kept.projection.moved.host
    if previous and previous != asked.host:
        unpushed = kept.projection.unpushed
        left = unpushed.words if unpushed else ""
        moved = events.OwnerChanged(ts=now, host=asked.host, previous=previous, left=left)
        kept = append_events(kept, moved)
    elif not kept.projection.moved.host:
        kept = append_events(kept, events.OwnerChanged(ts=now, host=asked.host, previous=""))
    kept = msgspec.structs.replace(kept, host=asked.host)
    is_same = asked.seq == kept.projection.seq and asked.held == hash_projection(kept.projection)
    is_defined = asked.defined == hash_definition(kept.definition)
    return kept, OpenLease(
        kept=None if is_same else ReplicaState(kept.projection, kept.documents),
        definition=None if is_defined else kept.definition,
    )


def explain_unfit_commit(kept: RegisteredAgent, asked: CommitRequest) -> str:
    """Why facts cannot be counted, whoever has the lease; empty: they can."""
    missing = kept.projection.seq - asked.known
    if missing < 0:
        return f"knows event {asked.known}, and there are {kept.projection.seq}"
    if missing > len(kept.tail):
        return f"knows event {asked.known} of {kept.projection.seq}, and that is too long ago"
    try:
        for path, text in asked.documents.items():
            _require_document(path, text)
        for line in asked.lines:
            _require_event(line)
        commit_events(kept, asked)
    except DocumentError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - what raises when it is counted stops the agent
        return f"cannot be counted ({type(error).__name__})"
    return ""


def _require_document(path: str, text: str) -> None:
    if not _ARCHIVED.fullmatch(path):
        raise DocumentError("document", f"{path!r} is no place for one")
    if len(text.encode()) > FLEET_DOCUMENT_BYTES:
        raise DocumentError(path, "is too large")


def _require_event(line: str) -> None:
    if len(line.encode()) > FLEET_COMMIT_BYTES:
        raise DocumentError("event", "is too long")
    # That one says all that is known anew: it is for a folder's log, and for no other.
    if isinstance(events.parse(line.encode()), events.AgentReceived):
        raise DocumentError("event", "would replace what is known")


def explain_refused_command(lines: Iterable[str]) -> str:
    """Why an operator may not say this; empty: she may."""
    try:
        for line in lines:
            _parse_command(line)
    except DocumentError as error:
        return str(error)
    return ""


def commit_events(
    kept: RegisteredAgent, asked: CommitRequest
) -> tuple[RegisteredAgent, CommitResult]:
    """Count facts of the lease; asked for twice, as after a lost answer, they count once."""
    known = kept.answered.get(asked.id)
    if known is not None:
        return kept, known
    missed = kept.tail[len(kept.tail) - (kept.projection.seq - asked.known) :]
    before = msgspec.structs.replace(kept, documents=kept.documents | asked.documents)
    after, lines = _number_events(before, asked.lines, asked.generation)
    answer = CommitResult((*missed, *lines))
    answered = dict([*after.answered.items()][1 - FLEET_COMMITS_KEPT :]) | {asked.id: answer}
    return msgspec.structs.replace(after, answered=answered), answer


def record_commands(kept: RegisteredAgent, lines: Sequence[str]) -> RegisteredAgent:
    """Count what the operator says; where it stands in the log is not hers to say."""
    for line in lines:
        event = _parse_command(line)
        if isinstance(event, events.QuestionAnswered):
            event = questions.judge_answer(kept.projection, event, event.ts)
        kept = _number_events(kept, [events.render(event).decode()], kept.generation)[0]
    return kept


def append_events(kept: RegisteredAgent, *new: AnyEvent) -> RegisteredAgent:
    """What the engine itself establishes: that it waits, that a run began."""
    return _number_events(kept, [events.render(one).decode() for one in new], kept.generation)[0]


def drop_answers(kept: RegisteredAgent) -> RegisteredAgent:
    """What whoever goes on from here needs of it."""
    return msgspec.structs.replace(kept, answered={})


def compact_agent(kept: RegisteredAgent) -> RegisteredAgent:
    """As it is carried over: without what is long past."""
    small = prune_projection(kept.projection)
    cursors = dict([*small.cursors.items()][-FLEET_CURSORS_KEPT:])
    seen = keep_newest_reports(small.seen, FLEET_CURSORS_KEPT)
    small = msgspec.structs.replace(small, cursors=cursors, seen=seen)
    return msgspec.structs.replace(kept, projection=small, most_events=FLEET_HISTORY_EVENTS)


def _parse_command(line: str) -> events.Event:
    found = events.parse_untrusted(line.encode())
    if not isinstance(found, OPERATOR_EVENTS):
        raise DocumentError("word", f"{found.kind} cannot be said")
    return found


def _number_events(
    kept: RegisteredAgent, lines: Sequence[str], generation: int
) -> tuple[RegisteredAgent, tuple[str, ...]]:
    """With more events, and these with their places."""
    first = kept.projection.seq + 1
    stamped = [_stamp_event(line, first + place, generation) for place, line in enumerate(lines)]
    projection = fold_events(kept.projection, [event for _, event in stamped])
    wanted, numbered = list_needed_documents(projection), tuple(line for line, _ in stamped)
    after = msgspec.structs.replace(
        kept,
        projection=projection,
        documents={path: text for path, text in kept.documents.items() if path in wanted},
        tail=_select_newest_lines((*kept.tail, *numbered)),
    )
    return after, numbered


def _select_newest_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """As many of the last lines as are kept: all that is carried over has to fit a message."""
    room, kept = FLEET_TAIL_BYTES, 0
    for line in reversed(lines[-FLEET_EVENTS_KEPT:]):
        room -= len(line)
        if room < 0:
            break
        kept += 1
    return lines[len(lines) - kept :]


def _stamp_event(line: str, seq: int, gen: int) -> tuple[str, AnyEvent | UnknownEvent]:
    """An event with its place; one of a kind that only a later Rekindle knows keeps its words."""
    fields = msgspec.json.decode(line) | {"seq": seq, "gen": gen}
    if fields["kind"] == _PROMPT:
        fields["text"] = fields.get("text", "")[:FLEET_PROMPT_CHARACTERS]
    text = msgspec.json.encode(fields)
    return text.decode(), events.parse(text)


def make_draft_name(cycle: int) -> str:
    """Where the relay lies that an agent has written in a cycle which has not ended yet."""
    return f"memories/archive/draft-{cycle:08d}.md"


def list_needed_documents(known: Projection) -> set[str]:
    """The documents that a host may still ask for: those in force, and those to compare with."""
    standing = [path for one in known.documents.values() for path in (one.path, one.trimmed)]
    if known.is_cycle_open:
        standing.append(make_draft_name(known.cycle))
    lately = [known.ended[number].relay for number in sorted(known.ended)[-STALL_TURNS:]]
    return {path for path in (*standing, *lately, known.began.relay) if path}
