"""The verdict on two consecutive relays."""

from enum import StrEnum

import msgspec


class StallKind(StrEnum):
    PROGRESS = "progress"
    STALLED = "stalled"
    TREADMILL = "treadmill"
    WAITING = "waiting"
    UNUSABLE = "unusable"


STUCK_KINDS = frozenset({StallKind.STALLED, StallKind.TREADMILL, StallKind.WAITING})


class StallVerdict(msgspec.Struct, frozen=True):
    verdict: StallKind
    reasons: tuple[str, ...]
    about: str = ""
    """Request that is repeated or awaited, on one line."""
    is_equal: bool = False
    """Whether the normalized directives are equal, not merely similar."""

    @property
    def is_stuck(self) -> bool:
        return self.verdict in STUCK_KINDS

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)
