"""List a fleet's agents from the engine, which needs no worker and no request for each agent."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from rekindle.documents.screens.agent_row import STATES, AgentState
from rekindle.documents.screens.fleet_row import FleetRow
from rekindle.errors import RekindleError, UsageError
from rekindle.fleet.agent.agent_listing import (
    ASKS_ATTRIBUTE,
    CHANGED_ATTRIBUTE,
    CYCLE_ATTRIBUTE,
    DEFINITION_ATTRIBUTE,
    EMPTY,
    HOST_ATTRIBUTE,
    POOL_ATTRIBUTE,
    REASON_MEMO,
    RUN_ATTRIBUTE,
    STATE_ATTRIBUTE,
    TEAM_ATTRIBUTE,
    TOKENS_ATTRIBUTE,
    USD_ATTRIBUTE,
)
from rekindle.fleet.engine.stuck_workflows import read_build, read_problem
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.policy.operator.build_row import LISTED_STATES, build_listed_row
from rekindle.thresholds.control_limits import FLEET_BULK_SECONDS

_AGENTS = 'WorkflowType="Agent"'
ALL_AGENTS = f'{_AGENTS} AND ExecutionStatus="Running"'
"""Query that selects all agents in the engine's list of workflows."""
_STUCK = "TemporalReportedProblems IS NOT NULL"
_QUOTES = frozenset("\"'`\\")
_MOST = timedelta(seconds=FLEET_BULK_SECONDS)


class ListedAgent(msgspec.Struct, frozen=True):
    """Entry for an agent in the engine's list. It is not encrypted and contains no agent text."""

    agent: str
    state: str
    host: str
    pool: str
    cycle: int
    why: str = ""
    """Why the run ended or is paused; empty if the list does not contain a reason."""
    build: str = ""
    """Build of Rekindle that decides for the agent; empty before its first decision."""
    problem: str = ""
    """Why no worker can decide for the agent; empty if one can."""
    team: str = EMPTY
    asks: bool = False
    """Whether the agent has an open question."""
    usd: float = 0.0
    tokens: int = 0
    changed: datetime | None = None
    """When the entry was last updated."""
    definition: str = ""
    """Hash of the agent's definition; empty if an older version listed the agent."""
    run: int = 0
    """Number of the event that asked for its run; 0 if an older version listed the agent."""
    is_removed: bool = False
    at: datetime = datetime.min.replace(tzinfo=UTC)
    """When the entry was last updated, or the agent was defined or removed."""


class AgentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which agents to list. Without a value, a field selects all agents."""

    names: Sequence[str] = ()
    team: str | None = None
    """Team of the agents; an empty text for agents without a team."""
    pool: str = ""
    host: str = ""
    state: AgentState | None = None
    asks: bool = False
    """Whether to list only agents with an open question."""


def render_filter(client: Client, only: AgentFilter) -> str:
    """Return the query for the engine. A state needs a second look, because reasons are a memo."""
    parts = [ALL_AGENTS]
    if only.names:
        ids = ", ".join(f'"{client.namespace}/{name}"' for name in only.names)
        parts.append(f"WorkflowId IN ({ids})")
    if only.team is not None:
        parts.append(_render_team(only.team))
    if only.pool:
        parts.append(f'{POOL_ATTRIBUTE.name}="{_require_name("pool", only.pool)}"')
    if only.host:
        parts.append(f'{HOST_ATTRIBUTE.name}="{_require_host(only.host)}"')
    if only.asks:
        parts.append(f"{ASKS_ATTRIBUTE.name}=true")
    if only.state == "broken":
        parts.append(_STUCK)
    elif only.state is not None:
        if only.state not in LISTED_STATES:
            hint = f"use one of: {', '.join(STATES)}"
            raise UsageError(f"{only.state!r} is not a state", hint=hint)
        states = ", ".join(f'"{state}"' for state in LISTED_STATES[only.state])
        parts.append(f"{STATE_ATTRIBUTE.name} IN ({states})")
    return " AND ".join(parts)


def render_changes(since: datetime, team: str | None) -> str:
    """Return the query for the agents that were changed, defined or removed since a time.

    A workflow that continues as a new run closes too, but the agent is not removed.
    """
    at = since.astimezone(UTC).isoformat().replace("+00:00", "Z")
    new = (CHANGED_ATTRIBUTE.name, "StartTime", "CloseTime")
    query = f'{_AGENTS} AND ExecutionStatus!="ContinuedAsNew" AND ('
    query += " OR ".join(f'{name} >= "{at}"' for name in new) + ")"
    return query if team is None else f"{query} AND {_render_team(team)}"


def _render_team(team: str) -> str:
    return f'{TEAM_ATTRIBUTE.name}="{_require_name("team", team) if team else EMPTY}"'


def _require_name(field: str, name: object) -> str:
    """Return a name that is safe in a query. Raise UsageError if it is not."""
    if isinstance(name, str) and AGENT_NAME.match(name):
        return name
    raise UsageError(
        f"{name!r} is not a valid {field} name",
        hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
    )


def _require_host(name: object) -> str:
    """Return a host's name, which its operator chooses freely, if it is safe in a query."""
    if isinstance(name, str) and name.isprintable() and not set(name) & _QUOTES:
        return name
    raise UsageError(
        f"{name!r} is not a valid host name",
        hint="use the name that `rekindle fleet hosts` shows, without quotes and backslashes",
    )


async def list_agents(
    client: Client, query: str, patience: timedelta = _MOST
) -> AsyncIterator[ListedAgent]:
    """Yield the agents that a query selects. The list may be a second out of date."""
    async for listed in client.list_workflows(query, rpc_timeout=patience):
        yield await _read_listed(client, listed)


async def _read_listed(client: Client, listed: WorkflowExecution) -> ListedAgent:
    attributes = listed.typed_search_attributes
    state: str = attributes.get(STATE_ATTRIBUTE, "new")
    reason = ""
    with suppress(RekindleError):  # listing must not require every agent's key
        reason = await listed.memo_value(REASON_MEMO, "", type_hint=str)
    changed = attributes.get(CHANGED_ATTRIBUTE)
    times = (changed, listed.start_time, listed.close_time)
    return ListedAgent(
        agent=listed.id.removeprefix(f"{client.namespace}/"),
        state=state,
        host=attributes.get(HOST_ATTRIBUTE, EMPTY),
        pool=attributes.get(POOL_ATTRIBUTE, EMPTY),
        cycle=attributes.get(CYCLE_ATTRIBUTE, 0),
        why=reason.removeprefix(f"{state}:") if reason.startswith(f"{state}:") else "",
        build=read_build(listed),
        problem=read_problem(listed),
        team=attributes.get(TEAM_ATTRIBUTE, EMPTY),
        asks=attributes.get(ASKS_ATTRIBUTE, False),
        usd=attributes.get(USD_ATTRIBUTE, 0.0),
        tokens=attributes.get(TOKENS_ATTRIBUTE, 0),
        changed=changed,
        definition=attributes.get(DEFINITION_ATTRIBUTE, ""),
        run=int(attributes.get(RUN_ATTRIBUTE, "0")),
        is_removed=listed.status != WorkflowExecutionStatus.RUNNING,
        at=max(time for time in times if time is not None),
    )


def make_fleet_row(listed: ListedAgent) -> FleetRow:
    """Return an agent's row, in the words of all other screens."""
    row = build_listed_row(listed.agent, "", listed.state, listed.cycle, listed.why)
    state, reason = row.state, row.reason
    if listed.problem:
        state, reason = "broken", f"build {listed.build} fails to decide ({listed.problem})"
    return FleetRow(
        agent=listed.agent,
        state=state,
        reason=reason,
        team=_read_name(listed.team),
        pool=_read_name(listed.pool),
        host=_read_name(listed.host),
        asks=listed.asks,
        cycle=listed.cycle,
        usd=listed.usd or None,
        tokens=listed.tokens or None,
        changed=listed.changed,
        is_over=listed.state == "over",
        run=listed.run,
        is_removed=listed.is_removed,
    )


def _read_name(value: str) -> str:
    return "" if value == EMPTY else value
