"""The verdict on two consecutive relays."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    PROGRESS = "progress"
    STALLED = "stalled"
    TREADMILL = "treadmill"
    WAITING = "waiting"
    UNUSABLE = "unusable"


STUCK = frozenset({Kind.STALLED, Kind.TREADMILL, Kind.WAITING})


class Verdict(msgspec.Struct, frozen=True):
    verdict: Kind
    reasons: tuple[str, ...]
    about: str = ""
    """What is asked for, on one line: what was repeated, or what is waited for."""
    is_equal: bool = False
    """The directives are equal after normalising, not merely alike."""

    @property
    def is_stuck(self) -> bool:
        return self.verdict in STUCK

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)
