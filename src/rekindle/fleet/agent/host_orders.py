"""Between an agent's workflow and its hosts: what is ordered, what is answered, and where."""

import msgspec

DECISION_QUEUE = "rekindle"
"""Where every worker looks for what an agent's workflow is to decide."""
FENCED = "Fenced"
"""What a lease that counts no more is refused with."""
CUT = "Cut"
"""What a host ends a cycle with that could not reach the engine for so long that it has lost it."""
FULL = "Full"
"""What a host refuses an agent with, that has no slot left."""
UNFIT = "Unfit"
"""What cannot be counted at all is refused with."""


class HostOrder(msgspec.Struct, frozen=True):
    """What a host is to do for an agent: with which lease, and who is to be told of its facts."""

    workflow: str
    agent: str
    generation: int


class HostResult(msgspec.Struct, frozen=True):
    """What a host says when it gives the lease back."""

    seq: int
    is_leaving: bool = False
    """The host ends: somebody else goes on."""


def make_pool_queue(pool: str) -> str:
    return f"rekindle-pool-{pool}"


def make_host_queue(host: str) -> str:
    return f"rekindle-host-{host}"
