"""The snapshots that are kept."""

from datetime import UTC, datetime, timedelta

from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel
from rekindle.policy.snapshots.retention import choose_expired
from rekindle.thresholds.storage import SNAPSHOT_DAYS, SNAPSHOTS_KEPT

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def make(number, age):
    return Snapshot(SnapshotLabel("trades", "start", NOW - age), number, "", "main")


def test_the_newest_are_kept_however_old():
    old = [make(number, timedelta(days=900)) for number in range(SNAPSHOTS_KEPT)]
    assert choose_expired(old, NOW) == []


def test_of_older_ones_the_last_of_each_day_is_kept():
    hours = [
        make(number, timedelta(hours=3 * (400 - number)) + timedelta(hours=1))
        for number in range(400)
    ]
    expired = {one.number for one in choose_expired(hours, NOW)}
    kept = [one for one in hours if one.number not in expired]
    assert kept[-SNAPSHOTS_KEPT:] == hours[-SNAPSHOTS_KEPT:]
    older = kept[:-SNAPSHOTS_KEPT]
    days = [one.label.at.date() for one in older]
    assert len(set(days)) == len(days) > 20
    assert min(days) == (NOW - timedelta(days=SNAPSHOT_DAYS)).date()
    for one in older:
        same_day = [
            other.number
            for other in hours[:-SNAPSHOTS_KEPT]
            if other.label.at.date() == one.label.at.date()
        ]
        assert one.number == max(same_day)


def test_a_time_in_the_future_does_not_expire_a_snapshot():
    ahead = [make(1, -timedelta(days=400))]
    newest = [make(2 + number, timedelta()) for number in range(SNAPSHOTS_KEPT)]
    assert choose_expired([*ahead, *newest], NOW) == []
