"""The verdict on two consecutive relays."""

from enum import StrEnum

import msgspec


class StallKind(StrEnum):
    PROGRESS = "progress"
    STALLED = "stalled"
    TREADMILL = "treadmill"
    WAITING = "waiting"
    FINISHED = "finished"
    UNUSABLE = "unusable"


STUCK_KINDS = frozenset(
    {StallKind.STALLED, StallKind.TREADMILL, StallKind.WAITING, StallKind.FINISHED}
)


class StallVerdict(msgspec.Struct, frozen=True):
    verdict: StallKind
    reasons: tuple[str, ...]
    about: str = ""
    """Request that is repeated or awaited, on one line."""
    is_equal: bool = False
    """Whether the normalized directives are equal, not merely similar."""

    has_own_work: bool = False
    """Whether the relay may also list work that the agent can do without anyone else."""

    @property
    def is_stuck(self) -> bool:
        return self.verdict in STUCK_KINDS

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)
