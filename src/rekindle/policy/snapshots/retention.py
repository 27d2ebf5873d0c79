"""Choose the snapshots to remove: all except the newest, and the last one of each recent day."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rekindle.documents.commits.snapshot_commit import Snapshot
from rekindle.thresholds.storage import SNAPSHOT_DAYS, SNAPSHOTS_KEPT


def choose_expired(snapshots: Sequence[Snapshot], now: datetime) -> list[Snapshot]:
    """Return the snapshots of one agent that can be removed, oldest first.

    A snapshot with a future time, for example after a clock change, counts as new.
    """
    ordered = sorted(snapshots, key=lambda one: one.number)
    older = ordered[:-SNAPSHOTS_KEPT]
    oldest = now - timedelta(days=SNAPSHOT_DAYS)
    # Later snapshots from the same day replace earlier ones.
    last_of_day = {
        one.label.at.astimezone(UTC).date(): one.number for one in older if one.label.at >= oldest
    }
    kept = set(last_of_day.values())
    return [one for one in older if one.number not in kept]
