"""Orders that an agent's workflow sends to hosts, their results, and the task queues used."""

import msgspec

DECISION_QUEUE = "rekindle"
"""Task queue of the workflows, which every worker polls."""
FENCED = "Fenced"
"""Error type for a request whose lease is no longer valid."""
CUT = "Cut"
"""Error type for a cycle that a host ended because it could not reach the engine for too long."""
FULL = "Full"
"""Error type for a host without a free slot for an agent."""
UNFIT = "Unfit"
"""Error type for a commit or command that the workflow can never accept."""


class HostOrder(msgspec.Struct, frozen=True):
    """An order to a host: the agent, the generation of its lease, and the workflow to report to."""

    workflow: str
    agent: str
    generation: int


class HostResult(msgspec.Struct, frozen=True):
    """The result of an order, sent when the host returns the lease."""

    seq: int
    is_leaving: bool = False
    """Whether the host is shutting down, so that another host has to continue."""


def make_pool_queue(pool: str) -> str:
    return f"rekindle-pool-{pool}"


def make_host_queue(host: str) -> str:
    return f"rekindle-host-{host}"
