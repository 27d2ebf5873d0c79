"""The engine's record of an agent on a fleet: the end of its log, its projection, its documents.

The host that runs the agent holds its lease. Each lease has a number, the generation. Events are
accepted one commit after the other, only under the current lease, and get their log position here.
The operator's commands need no lease. All functions are pure, because the engine runs them again
when it replays its history.
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
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.hook_reports import keep_newest_reports
from rekindle.policy.projection.projection import Projection, prune_projection
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
"""Events that an operator may send; all others need a lease."""
_ARCHIVED = re.compile(r"memories/archive/[A-Za-z0-9][A-Za-z0-9._-]*")
"""Permitted paths of a document below an agent's folder: a host writes to the path that it gets."""


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """Definition of an agent, independent of its host."""

    manifest: str
    """Text of rekindle.yaml."""
    files: dict[str, str] = {}
    """Contents of the files that the manifest names, by their path relative to it."""
    limits: AgentLimits = AgentLimits()
    pool: str
    heartbeat_seconds: float
    remote: str = ""
    """Git remote to which the workspace is pushed; empty if it exists only on the host."""
    notifies: bool = False
    """Whether a notification is sent when the agent needs a person."""
    within: str = ""
    """Folder of that repository in which the agent works."""
    project: str = ""
    """Name of the project's folder, for notifications; empty if defined by an older version."""


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    definition: AgentDefinition
    projection: Projection
    documents: dict[str, str] = {}
    """Documents that a host may still need, by their path below the agent's folder."""
    tail: tuple[str, ...] = ()
    """Last lines of the log."""
    generation: int = 0
    is_leased: bool = False
    host: str = ""
    """Host that holds the lease or held it last; empty if any host may take it."""
    answered: dict[str, "CommitResult"] = {}
    """Results of the last commits, by commit id."""
    most_events: int = FLEET_HISTORY_EVENTS
    """Events in the engine's history before it starts a new one. Stored with the agent, so that a
    version with another limit still replays this history in the same way.
    """


class ReplicaState(msgspec.Struct, frozen=True):
    """State that a host needs to continue an agent."""

    projection: Projection
    documents: dict[str, str]


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a host to open the lease that it was granted."""

    generation: int
    host: str
    seq: int = 0
    held: str = ""
    """Hash of the projection that the host already has."""
    defined: str = ""
    """Hash of the definition that the host already has."""


class OpenLease(msgspec.Struct, frozen=True, kw_only=True):
    kept: ReplicaState | None
    """State to continue from; None if the host's own state is current."""
    definition: AgentDefinition | None
    """Definition of the agent; None if the host's own is current."""


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    generation: int
    known: int
    """Position of the last event that the sender has."""
    lines: tuple[str, ...] = ()
    documents: dict[str, str] = {}


class CommitResult(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    """All events after the position that the sender had."""


def hash_projection(projection: Projection) -> str:
    """Return a hash that is equal for equal projections.

    Positions in a host's inbox are excluded, because only that host uses them.
    """
    own = msgspec.structs.replace(prune_projection(projection), cursors={}, seen={})
    return _hash_value(own)


def hash_definition(definition: AgentDefinition) -> str:
    return _hash_value(definition)


def _hash_value(value: object) -> str:
    """Return a hash that does not depend on the order of keys, which may be numbers."""
    plain = msgspec.json.decode(validation.encode_json(value))
    return hash_bytes(msgspec.json.encode(plain, order="deterministic"))


def grant_lease(kept: RegisteredAgent) -> RegisteredAgent:
    """Return the agent with a new lease that no host has opened; the previous lease is void."""
    return msgspec.structs.replace(kept, generation=kept.generation + 1, is_leased=True)


def release_lease(kept: RegisteredAgent, *, is_gone: bool) -> RegisteredAgent:
    """Return the agent without a lease; with `is_gone`, any host may take the next one."""
    return msgspec.structs.replace(kept, is_leased=False, host="" if is_gone else kept.host)


def explain_refused_lease(kept: RegisteredAgent, generation: int) -> str:
    """Return why a lease of this generation is void; empty if it is valid."""
    if generation != kept.generation:
        return f"generation {generation} was followed by {kept.generation}"
    return "" if kept.is_leased else f"the lease of generation {generation} has ended"


def open_lease(
    kept: RegisteredAgent, asked: LeaseRequest, now: datetime
) -> tuple[RegisteredAgent, OpenLease]:
    """Open the lease for a host. A change of host is recorded in the log."""
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
    """Return why a commit is invalid, regardless of the lease; empty if it is valid."""
    missing = kept.projection.seq - asked.known
    if missing < 0:
        return f"has event {asked.known}, but the log ends at {kept.projection.seq}"
    if missing > len(kept.tail):
        return f"has only event {asked.known} of {kept.projection.seq}, which is too far behind"
    try:
        for path, text in asked.documents.items():
            _require_document(path, text)
        for line in asked.lines:
            _require_event(line)
        commit_events(kept, asked)
    except DocumentError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - what raises when it is counted stops the agent
        return f"cannot be applied ({type(error).__name__})"
    return ""


def _require_document(path: str, text: str) -> None:
    if not _ARCHIVED.fullmatch(path):
        raise DocumentError("document", f"{path!r} is not a path in the archive")
    if len(text.encode()) > FLEET_DOCUMENT_BYTES:
        raise DocumentError(path, "is too large")


def _require_event(line: str) -> None:
    if len(line.encode()) > FLEET_COMMIT_BYTES:
        raise DocumentError("event", "is too long")
    # This event replaces the whole projection. It belongs only into the log of a folder.
    if isinstance(events.parse(line.encode()), events.AgentReceived):
        raise DocumentError("event", "would replace the whole state of the agent")


def explain_refused_command(lines: Iterable[str]) -> str:
    """Return why an operator may not send these events; empty if all are permitted."""
    try:
        for line in lines:
            _parse_command(line)
    except DocumentError as error:
        return str(error)
    return ""


def commit_events(
    kept: RegisteredAgent, asked: CommitRequest
) -> tuple[RegisteredAgent, CommitResult]:
    """Accept the events of a commit; a repeated commit, as after a lost answer, counts once."""
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
    """Record the operator's commands; their position in the log is assigned here."""
    for line in lines:
        event = _parse_command(line)
        if isinstance(event, events.QuestionAnswered):
            event = questions.judge_answer(kept.projection, event, event.ts)
        kept = _number_events(kept, [events.render(event).decode()], kept.generation)[0]
    return kept


def append_events(kept: RegisteredAgent, *new: AnyEvent) -> RegisteredAgent:
    """Append events of the engine itself, such as a wait or the start of a run."""
    return _number_events(kept, [events.render(one).decode() for one in new], kept.generation)[0]


def drop_answers(kept: RegisteredAgent) -> RegisteredAgent:
    """Return the agent without the results of past commits, for a new history."""
    return msgspec.structs.replace(kept, answered={})


def compact_agent(kept: RegisteredAgent) -> RegisteredAgent:
    """Return the agent for a new history, without old entries."""
    small = prune_projection(kept.projection)
    cursors = dict([*small.cursors.items()][-FLEET_CURSORS_KEPT:])
    seen = keep_newest_reports(small.seen, FLEET_CURSORS_KEPT)
    small = msgspec.structs.replace(small, cursors=cursors, seen=seen)
    return msgspec.structs.replace(kept, projection=small, most_events=FLEET_HISTORY_EVENTS)


def _parse_command(line: str) -> events.Event:
    found = events.parse_untrusted(line.encode())
    if not isinstance(found, OPERATOR_EVENTS):
        raise DocumentError("command", f"{found.kind} is not an operator's event")
    return found


def _number_events(
    kept: RegisteredAgent, lines: Sequence[str], generation: int
) -> tuple[RegisteredAgent, tuple[str, ...]]:
    """Return the agent with the new events, and their lines with log positions."""
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
    """Return the last lines to keep; the state of an agent must fit into one message."""
    room, kept = FLEET_TAIL_BYTES, 0
    for line in reversed(lines[-FLEET_EVENTS_KEPT:]):
        room -= len(line)
        if room < 0:
            break
        kept += 1
    return lines[len(lines) - kept :]


def _stamp_event(line: str, seq: int, gen: int) -> tuple[str, AnyEvent | UnknownEvent]:
    """Return an event with its log position; events of unknown kinds keep all their fields."""
    fields = msgspec.json.decode(line) | {"seq": seq, "gen": gen}
    if fields["kind"] == _PROMPT:
        fields["text"] = fields.get("text", "")[:FLEET_PROMPT_CHARACTERS]
    text = msgspec.json.encode(fields)
    return text.decode(), events.parse(text)


def make_draft_name(cycle: int) -> str:
    """Return the path of the relay that an agent has written in a cycle that has not ended yet."""
    return f"memories/archive/draft-{cycle:08d}.md"


def list_needed_documents(known: Projection) -> set[str]:
    """Return the paths of documents that a host may need, to continue or to compare."""
    standing = [path for one in known.documents.values() for path in (one.path, one.trimmed)]
    if known.is_cycle_open:
        standing.append(make_draft_name(known.cycle))
    lately = [known.ended[number].relay for number in sorted(known.ended)[-STALL_TURNS:]]
    return {path for path in (*standing, *lately, known.began.relay) if path}
