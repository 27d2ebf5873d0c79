"""What is said about two consecutive relays, and what is known beside them."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    PROGRESS = "progress"
    STALLED = "stalled"
    TREADMILL = "treadmill"
    WAITING = "waiting"
    UNUSABLE = "unusable"


STUCK = frozenset({Kind.STALLED, Kind.TREADMILL, Kind.WAITING})


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in the workspace between two relays; nothing at all: nobody knows."""

    commits: int = 0
    changed_files: int = 0
    """Outside of `.rekindle`."""
    decisions: int = 0
    resolved_loops: int = 0

    @property
    def work(self) -> str:
        """In words; empty where there is none."""
        counts = {
            "commit": self.commits,
            "changed file": self.changed_files,
            "decision": self.decisions,
            "resolved loop": self.resolved_loops,
        }
        return ", ".join(
            f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count
        )


NO_EVIDENCE = Evidence()


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
