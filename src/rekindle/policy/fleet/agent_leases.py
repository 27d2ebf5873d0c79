"""Leases of a fleet agent: grant, open, check and release them.

A lease gives one host the right to run one cycle. Its generation orders it among all leases of the
agent, and its random id distinguishes it from a lease that the engine has forgotten.
"""

from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    HeldLease,
    RegisteredAgent,
    ReplicaState,
    append_events,
    hash_definition,
    hash_projection,
)


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A host's request to open a lease that was granted to it."""

    generation: int
    lease: str
    """Random id that the host chose for the lease."""
    seen: int = 0
    """Highest generation in the host's replica and on the work branch."""
    host: str
    seq: int = 0
    held: str = ""
    """Hash of the projection that the host already has."""
    defined: str = ""
    """Hash of the definition that the host already has."""
    agents: int = 0
    """Number of agents on the fleet; 0 if the host does not know it."""


class OpenLease(msgspec.Struct, frozen=True, kw_only=True):
    generation: int
    kept: ReplicaState | None
    """State to continue from; None if the host's copy is current."""
    definition: AgentDefinition | None
    """Definition of the agent; None if the host's copy is current."""


def grant_lease(agent: RegisteredAgent) -> RegisteredAgent:
    """Return the agent with a new lease, which is not open yet and replaces the previous one."""
    lease = HeldLease(first=agent.projection.seq, pool=agent.definition.pool)
    return msgspec.structs.replace(
        agent,
        generation=agent.generation + 1,
        lease=lease,
    )


def release_lease(agent: RegisteredAgent, *, is_gone: bool) -> RegisteredAgent:
    """Return the agent without a lease. If `is_gone` is set, any host may take the next one."""
    return msgspec.structs.replace(agent, lease=None, host="" if is_gone else agent.host)


def explain_refused_lease(agent: RegisteredAgent, generation: int, lease: str) -> str:
    """Explain why a lease is void, or return "" if it is valid."""
    if generation != agent.generation:
        return f"generation {generation} was replaced by {agent.generation}"
    if agent.lease is None:
        return f"the lease of generation {generation} has ended"
    if agent.lease.id != lease:
        return f"another process holds the lease of generation {generation}"
    return ""


def explain_refused_request(agent: RegisteredAgent, request: LeaseRequest) -> str:
    """Explain why a host may not open a lease, or return "" if it may.

    A host may open its lease again, because the answer may have been lost, or because it has found
    a higher generation on the work branch.
    """
    held = agent.lease
    if held is not None and held.id and held.id == request.lease:
        return ""
    return explain_refused_lease(agent, request.generation, "")


def open_lease(
    agent: RegisteredAgent, request: LeaseRequest, now: datetime
) -> tuple[RegisteredAgent, OpenLease]:
    """Open the lease for a host. If the agent moved to another host, record that in the log.

    The generation rises above the highest one that the host has seen. Otherwise an engine that was
    restored from a backup would grant generations that a forgotten lease may still use.
    """
    if agent.lease is not None:
        agent = msgspec.structs.replace(
            agent, lease=msgspec.structs.replace(agent.lease, id=request.lease)
        )
    if request.seen >= agent.generation:
        agent = msgspec.structs.replace(agent, generation=request.seen + 1)
    previous = agent.host or agent.projection.moved.host
    if previous and previous != request.host:
        unpushed = agent.projection.unpushed
        unpushed_words = unpushed.words if unpushed else ""
        moved = events.OwnerChanged(
            ts=now, host=request.host, previous=previous, left=unpushed_words
        )
        agent = append_events(agent, moved)
    elif not agent.projection.moved.host:
        agent = append_events(agent, events.OwnerChanged(ts=now, host=request.host, previous=""))
    agent = msgspec.structs.replace(
        agent, host=request.host, fleet_agents=request.agents or agent.fleet_agents
    )
    is_same = request.seq == agent.projection.seq and request.held == hash_projection(
        agent.projection
    )
    is_defined = request.defined == hash_definition(agent.definition)
    return agent, OpenLease(
        generation=agent.generation,
        kept=None if is_same else ReplicaState(agent.projection, agent.documents),
        definition=None if is_defined else agent.definition,
    )
