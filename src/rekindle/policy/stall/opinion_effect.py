"""What a second opinion on a stall changes.

Each command that reads a log needs this, so it lies apart from the request to the model.
"""

from enum import StrEnum

from rekindle.documents.events import CycleEnded
from rekindle.formats.counts import render_count


class OpinionVerdict(StrEnum):
    PROGRESS = "progress"
    STUCK = "stuck"
    UNUSABLE = "unusable"


def list_evidence(cycle: CycleEnded) -> tuple[str, ...]:
    """Return what the cycle changed, including files that every cycle changes."""
    signs = cycle.signs
    if signs is None:
        return ()
    counts = {
        "commit": signs.commits,
        "decision": signs.decisions,
        "resolved loop": signs.resolved,
    }
    return (
        *signs.artefacts,
        *(render_count(count, what) for what, count in counts.items() if count),
    )


def is_pause_softened(last: CycleEnded) -> bool:
    """Return whether the opinion turns a pause for a stall into a notice."""
    return last.opinion == OpinionVerdict.PROGRESS and bool(list_evidence(last))


def is_pause_added(last: CycleEnded) -> bool:
    """Return whether the opinion pauses a run whose relay reports progress without any work."""
    is_idle = not last.evidence and not list_evidence(last)
    return last.opinion == OpinionVerdict.STUCK and is_idle
