"""Snapshots in the messages of their commits."""

from datetime import UTC, datetime

import msgspec
import pytest

from rekindle.documents.commits import snapshot_commit
from rekindle.documents.commits.snapshot_commit import (
    LeftOutFile,
    SavedBranch,
    Snapshot,
    SnapshotLabel,
)

OID = "a" * 40
LABEL = SnapshotLabel("trades", "start", datetime(2026, 1, 2, 3, 4, tzinfo=UTC), 3, "f00")
SNAPSHOT = Snapshot(
    label=LABEL,
    number=12,
    head="b" * 40,
    branch="main",
    worktree="two",
    left_out=(LeftOutFile("日本\n.bin", "larger than 50 MB"),),
    more_left_out=4,
    other=SavedBranch("trunk", "c" * 40),
)
MESSAGE = snapshot_commit.render(SNAPSHOT)


def parse(message=MESSAGE, ref="refs/rekindle/trades/12"):
    return snapshot_commit.parse(ref, OID, "d" * 40, message)


def test_a_message_has_everything_that_a_rewind_needs():
    assert parse() == msgspec.structs.replace(SNAPSHOT, commit=OID, tree="d" * 40)
    assert MESSAGE.startswith("Snapshot 12 of trades: cycle 3, start\n\n")
    assert parse().name == "trades/12"


@pytest.mark.parametrize(
    "broken",
    [
        {"ref": "refs/rekindle/other/12"},
        {"ref": "refs/rekindle/trades/13"},
        {"ref": "refs/rekindle/trades/pushed"},
        {"message": "The workspace of trades\n\nRekindle-Agent: trades\n"},
        {"message": MESSAGE.replace('"v":1', '"v":2')},
        {"message": MESSAGE.replace("b" * 40, "--upload-pack=x")},
        {"message": MESSAGE.replace("c" * 40, "HEAD")},
        {"message": MESSAGE.replace('"start"', '"whim"')},
        {"message": MESSAGE.replace("04:00Z", "04:00")},
        {"message": f"{MESSAGE}\nmore\n"},
    ],
)
def test_a_foreign_or_newer_commit_is_not_a_snapshot(broken):
    assert parse(**broken) is None


def test_the_newest_snapshot_is_of_the_same_agent_and_work_tree():
    later = msgspec.structs.replace(SNAPSHOT, number=13, worktree="")
    end = msgspec.structs.replace(
        SNAPSHOT, number=14, label=msgspec.structs.replace(LABEL, reason="end")
    )
    listed = [end, SNAPSHOT, later]
    assert snapshot_commit.find_newest(listed, "trades", "two") == end
    assert snapshot_commit.find_newest(listed, "trades", "two", "start") == SNAPSHOT
    assert snapshot_commit.find_newest(listed, "trades", "") == later
    assert snapshot_commit.find_newest(listed, "other", "") is None


def test_an_occasion_without_a_cycle():
    label = SnapshotLabel("trades", "rewind", LABEL.at)
    assert snapshot_commit.describe_occasion(label) == "before a rewind"
