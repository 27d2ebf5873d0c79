"""Orders that an agent's workflow sends to hosts, with their results and task queues."""

import msgspec

DECISION_QUEUE = "rekindle"
"""Task queue for the workflows, which every worker polls."""
FENCED = "Fenced"
"""Error type for a request whose lease is no longer valid."""
CUT = "Cut"
"""Error type for a cycle that a host ended because it lost contact with the engine."""
FULL = "Full"
"""Error type for a host that has no free slot."""
UNFIT = "Unfit"
"""Error type for a commit or command that the workflow can never accept."""

REFUSED = "Refused"
"""Error type for a host that does not accept agents of this team."""


class HostOrder(msgspec.Struct, frozen=True):
    """Order for a host: the agent, its lease's generation, and the workflow to report to."""

    workflow: str
    agent: str
    generation: int
    team: str = ""
    """Team of the agent; empty if it has none."""


class HostResult(msgspec.Struct, frozen=True):
    """An order's result, sent when the host returns the lease."""

    seq: int
    is_leaving: bool = False
    """Whether the host is shutting down, in which case another host must continue."""


def make_pool_queue(pool: str) -> str:
    return f"rekindle-pool-{pool}"


def make_host_queue(host: str) -> str:
    return f"rekindle-host-{host}"
