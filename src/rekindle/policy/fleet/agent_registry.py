"""The engine's record of a fleet agent: the end of its log, its projection and its documents.

The host that runs the agent holds its lease. Each lease has a number, the generation. Commits are
accepted one at a time and only under the current lease. Their events get their log positions here.
The operator's commands do not need a lease. All functions are pure, because the engine calls them
again when it replays its history.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.errors import DocumentError
from rekindle.formats import validation
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.team_permits import AgentPermit
from rekindle.policy.operator import answers
from rekindle.policy.projection import open_loops
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
from rekindle.policy.supervision.next_move import AgentLimits
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
    events.BudgetRaised,
    events.MessageSent,
)
"""Events that an operator may send without a lease. All other events need one."""
_ARCHIVED = re.compile(r"memories/archive/[A-Za-z0-9][A-Za-z0-9._-]*")
"""Permitted document paths, relative to the agent's folder.

Other paths are refused, because a host writes to every path that it receives.
"""


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of an agent, independent of the host that runs it."""

    manifest: str
    """Text of rekindle.yaml."""
    files: dict[str, str] = {}
    """Contents of the files that the manifest names, by path relative to the manifest."""
    limits: AgentLimits = AgentLimits()
    pool: str
    heartbeat_seconds: float
    remote: str = ""
    """Git remote to which the workspace is pushed; empty if it is not pushed."""
    notifies: bool = False
    """Whether a notification is sent when the agent needs a person."""
    within: str = ""
    """Folder in the repository where the agent works."""
    project: str = ""
    """Project folder name to show in notifications; empty if an older version set up the agent."""
    worker: PipelineWorker | None = None
    """Pipeline run that the agent works for; None if there is none."""
    team: str = ""
    """Team that the agent belongs to; empty if it belongs to none."""
    branch: str = ""
    """Branch of the remote from which a new agent starts; empty for the default branch."""


class SpentTotal(msgspec.Struct, frozen=True):
    """Spending of several runs."""

    usd: float = 0.0
    tokens: int = 0


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    definition: AgentDefinition
    projection: Projection
    documents: dict[str, str] = {}
    """Documents that a host may still need, by path relative to the agent's folder."""
    tail: tuple[str, ...] = ()
    """Last lines of the log."""
    generation: int = 0
    lease: "HeldLease | None" = None
    host: str = ""
    """Host that holds the lease or held it last; empty if any host may take it."""
    answered: dict[str, "CommitResult"] = {}
    """Results of the most recent commits, by commit id."""
    permit: AgentPermit = AgentPermit()
    """Permit of the agent's team, if that has caps."""
    most_events: int = FLEET_HISTORY_EVENTS
    """Maximum number of events in the engine's history before the engine starts a new one.

    It is stored with the agent, so versions with a different limit replay this history in the same
    way.
    """
    fleet_agents: int = 0
    """Number of agents on the fleet when a host last took up this one."""
    past: SpentTotal = SpentTotal()
    """Spending of the agent's earlier runs on this fleet."""


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that was granted to a host and has not ended."""

    id: str = ""
    """Random id from the host; empty until the host opens the lease.

    The generation alone does not identify a lease, because an engine that was restored from a
    backup may grant the same generation twice.
    """
    first: int
    """Log position when the lease was granted."""
    pool: str


class ReplicaState(msgspec.Struct, frozen=True):
    """The state that a host needs to continue an agent."""

    projection: Projection
    documents: dict[str, str]


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    generation: int
    lease: str = ""
    """Id of the sender's lease."""
    known: int
    """Log position of the last event that the sender has."""
    lines: tuple[str, ...] = ()
    documents: dict[str, str] = {}


class CommitResult(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    """All events after the sender's last known position, including the committed ones."""


def hash_projection(projection: Projection) -> str:
    """Return the same hash for equal projections.

    Inbox offsets and recent hook reports are excluded, because only the host that recorded them
    uses them.
    """
    own = msgspec.structs.replace(prune_projection(projection), cursors={}, seen={})
    return _hash_value(own)


def hash_definition(definition: AgentDefinition) -> str:
    return _hash_value(definition)


def _hash_value(value: object) -> str:
    """Hash a value, regardless of the order of its keys. Keys may be numbers."""
    plain = msgspec.json.decode(validation.encode_json(value))
    return hash_bytes(msgspec.json.encode(plain, order="deterministic"))


def explain_unfit_commit(agent: RegisteredAgent, commit: CommitRequest) -> str:
    """Explain what is wrong with a commit, apart from its lease, or return "" if it is valid."""
    missing = agent.projection.seq - commit.known
    if missing < 0:
        return f"is based on event {commit.known}, but the log ends at {agent.projection.seq}"
    if missing > len(agent.tail):
        return (
            f"is based on event {commit.known} of {agent.projection.seq}, which is too far behind"
        )
    try:
        for path, text in commit.documents.items():
            _require_document(path, text)
        for line in commit.lines:
            _require_event(line)
        commit_events(agent, commit)
    except DocumentError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - an event that cannot be folded would stop the agent
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
    # This event replaces the whole projection, so it is valid only in the log in an agent's folder.
    if isinstance(events.parse(line.encode()), events.AgentReceived):
        raise DocumentError("event", "would replace the whole state of the agent")


def explain_refused_command(lines: Iterable[str]) -> str:
    """Explain why an operator may not send these events, or return "" if all are allowed."""
    try:
        for line in lines:
            _parse_command(line)
    except DocumentError as error:
        return str(error)
    return ""


def commit_events(
    agent: RegisteredAgent, commit: CommitRequest
) -> tuple[RegisteredAgent, CommitResult]:
    """Accept a commit's events. A commit that is resent after a lost reply counts only once."""
    earlier = agent.answered.get(commit.id)
    if earlier is not None:
        return agent, earlier
    missed = agent.tail[len(agent.tail) - (agent.projection.seq - commit.known) :]
    before = msgspec.structs.replace(agent, documents=agent.documents | commit.documents)
    after, lines = _number_events(before, commit.lines, commit.generation)
    answer = CommitResult((*missed, *lines))
    answered = dict([*after.answered.items()][1 - FLEET_COMMITS_KEPT :]) | {commit.id: answer}
    return msgspec.structs.replace(after, answered=answered), answer


def record_commands(agent: RegisteredAgent, lines: Sequence[str]) -> RegisteredAgent:
    """Record the operator's commands at the next positions in the agent's log."""
    for line in lines:
        event = _parse_command(line)
        if _is_late_start(agent.projection, event):
            continue
        if isinstance(event, events.QuestionAnswered):
            event = answers.judge_answer(agent.projection, event, event.ts)
        elif isinstance(event, events.DesiredSet):
            event = _stamp_desired(agent.projection, event)
        agent = _number_events(agent, [events.render(event).decode()], agent.generation)[0]
    return agent


def _stamp_desired(projection: Projection, event: events.DesiredSet) -> events.DesiredSet:
    """Return the command with a later time than the last one, if the sender's clock is behind."""
    command = projection.run.command
    before = [command.ts] if command else []
    return msgspec.structs.replace(event, ts=open_loops.stamp_after(event.ts, *before))


def _is_late_start(projection: Projection, event: events.Event) -> bool:
    """Return whether a schedule has started this run or a later one. A host may repeat a task."""
    if not isinstance(event, events.DesiredSet) or event.due is None:
        return False
    scheduled = projection.run.scheduled
    return scheduled is not None and event.due <= scheduled.due


def append_events(agent: RegisteredAgent, *new: AnyEvent) -> RegisteredAgent:
    """Append events that the engine itself produced, such as a wait or the start of a run."""
    return _number_events(
        agent, [events.render(event).decode() for event in new], agent.generation
    )[0]


def drop_answers(agent: RegisteredAgent) -> RegisteredAgent:
    """Drop the results of past commits before the engine starts a new history."""
    return msgspec.structs.replace(agent, answered={})


def compact_agent(agent: RegisteredAgent) -> RegisteredAgent:
    """Drop old entries before the engine starts a new history."""
    small = prune_projection(agent.projection)
    cursors = dict([*small.cursors.items()][-FLEET_CURSORS_KEPT:])
    reports = keep_newest_reports(small.seen, FLEET_CURSORS_KEPT)
    small = msgspec.structs.replace(small, cursors=cursors, seen=reports)
    return msgspec.structs.replace(agent, projection=small, most_events=FLEET_HISTORY_EVENTS)


def _parse_command(line: str) -> events.Event:
    event = events.parse_untrusted(line.encode())
    if not isinstance(event, OPERATOR_EVENTS):
        raise DocumentError("command", f"{event.kind} is not an event that operators may send")
    return event


def _number_events(
    agent: RegisteredAgent, lines: Sequence[str], generation: int
) -> tuple[RegisteredAgent, tuple[str, ...]]:
    """Apply new events to the agent, and return it with the events as numbered log lines."""
    first = agent.projection.seq + 1
    stamped = [_stamp_event(line, first + place, generation) for place, line in enumerate(lines)]
    agent = _fold_events(agent, [event for _, event in stamped])
    needed_paths = list_needed_documents(agent.projection)
    numbered = tuple(line for line, _ in stamped)
    after = msgspec.structs.replace(
        agent,
        documents={path: text for path, text in agent.documents.items() if path in needed_paths},
        tail=_select_newest_lines((*agent.tail, *numbered)),
    )
    return after, numbered


def _fold_events(agent: RegisteredAgent, new: Sequence[AnyEvent | UnknownEvent]) -> RegisteredAgent:
    """Apply events. When a run begins, remember what the run before it has spent."""
    for place, event in enumerate(new):
        if isinstance(event, events.RunStarted):
            before = _fold_events(agent, new[:place])
            projection = fold_events(before.projection, [event])
            past = sum_spending(before)
            after = msgspec.structs.replace(before, projection=projection, past=past)
            return _fold_events(after, new[place + 1 :])
    return msgspec.structs.replace(agent, projection=fold_events(agent.projection, new))


def sum_spending(agent: RegisteredAgent) -> SpentTotal:
    """Return the spending of all runs of an agent since it is on the fleet."""
    spent = agent.projection.run.run_spending()
    return SpentTotal(agent.past.usd + spent.usd, agent.past.tokens + spent.tokens)


def _select_newest_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the newest lines that fit, so that an agent's state fits into one message."""
    room, count = FLEET_TAIL_BYTES, 0
    for line in reversed(lines[-FLEET_EVENTS_KEPT:]):
        room -= len(line)
        if room < 0:
            break
        count += 1
    return lines[len(lines) - count :]


def _stamp_event(line: str, seq: int, gen: int) -> tuple[str, AnyEvent | UnknownEvent]:
    """Add the log position to an event. An event of unknown kind keeps all its fields."""
    fields = msgspec.json.decode(line) | {"seq": seq, "gen": gen}
    if fields["kind"] == _PROMPT:
        fields["text"] = fields.get("text", "")[:FLEET_PROMPT_CHARACTERS]
    text = msgspec.json.encode(fields)
    return text.decode(), events.parse(text)


def make_draft_name(cycle: int) -> str:
    """Return the archive path of the relay draft for a cycle that has not ended yet."""
    return f"memories/archive/draft-{cycle:08d}.md"


def list_needed_documents(projection: Projection) -> set[str]:
    """Return the paths of documents that a host may need to continue, or to compare relays."""
    current = [
        path
        for document in projection.documents.values()
        for path in (document.path, document.trimmed)
    ]
    if projection.is_cycle_open:
        current.append(make_draft_name(projection.cycle))
    compared = [
        projection.ended[number].relay for number in sorted(projection.ended)[-STALL_TURNS:]
    ]
    return {path for path in (*current, *compared, projection.began.relay) if path}
