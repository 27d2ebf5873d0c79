"""Orders that an agent's workflow sends to hosts, with their results and task queues."""

import msgspec

DECISION_QUEUE = "rekindle"
"""Task queue for the workflows, which every worker polls."""
LOST = "Lost"
"""Error type for a lease whose host is gone."""
FAILED = "Failed"
"""Error type for a lease on which a host could not do any work."""
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
    lease: str = ""
    """Id of the lease; empty if no host has opened it yet."""


class HostResult(msgspec.Struct, frozen=True):
    """An order's result, sent when the host returns the lease."""

    seq: int
    is_leaving: bool = False
    """Whether the host is shutting down, in which case another host must continue."""


class LeaseEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a lease ended."""

    generation: int = 0
    lease: str = ""
    kind: str = ""
    """Error type; empty if the cycle ended normally."""
    words: str = ""
    is_leaving: bool = False
    """Whether the host is shutting down, in which case another host must continue."""


class VouchedLease(msgspec.Struct, frozen=True):
    workflow: str
    lease: str


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host's report with each heartbeat: what the host is, and the leases it vouches for."""

    beat: int
    """Number of this heartbeat. If the engine has a lower one, it was restored from a backup."""
    host: str
    place: str
    """Id of the machine and of the worker's folder."""
    pool: str
    slots: int
    build: str
    heartbeat_seconds: float
    is_draining: bool = False
    sandbox: str = ""
    """How the host contains its agents; empty if an older worker did not report it."""
    leases: tuple[VouchedLease, ...] = ()


class HostLoss(msgspec.Struct, frozen=True):
    """Message to an agent's workflow: the host that vouched for this lease is gone."""

    host: str
    lease: str


def make_pool_queue(pool: str) -> str:
    return f"rekindle-pool-{pool}"


def make_host_workflow(namespace: str, host: str) -> str:
    """Return the id of a host's workflow. No agent has such a name."""
    return f"{namespace}/~host/{host}"


def make_host_queue(host: str) -> str:
    return f"rekindle-host-{host}"
