"""The names of snapshots that a user types."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel
from rekindle.errors import NotFoundError
from rekindle.policy.snapshots import snapshot_names

AT = datetime(2026, 3, 1, tzinfo=UTC)


def make(agent, number, reason="start"):
    return Snapshot(SnapshotLabel(agent, reason, AT), number, "", "main")


LISTED = [make("trades", 1), make("trades", 2), make("trades", 3, "end"), make("docs", 1)]


@pytest.mark.parametrize(
    ("text", "found"), [("2", "trades/2"), ("docs/1", "docs/1"), ("trades/3", "trades/3")]
)
def test_a_number_is_one_of_the_agent(text, found):
    assert snapshot_names.find_snapshot(LISTED, text, "trades").name == found


@pytest.mark.parametrize("text", ["9", "docs/2", "0", "two", "../1", "trades/", ""])
def test_an_unknown_name_is_refused_with_the_command_that_lists_them(text):
    with pytest.raises(NotFoundError) as refused:
        snapshot_names.find_snapshot(LISTED, text, "trades")
    assert refused.value.hint == snapshot_names.LIST_HINT


def test_a_rewind_without_a_name_restores_the_last_start_of_a_cycle():
    assert snapshot_names.find_target(LISTED, "trades", "").name == "trades/2"
    with pytest.raises(NotFoundError):
        snapshot_names.find_target(LISTED, "trades", "linked")


def test_names_are_told_from_agents():
    assert snapshot_names.is_snapshot_name("12")
    assert snapshot_names.is_snapshot_name("trades/12")
    assert not snapshot_names.is_snapshot_name("trades")
    assert snapshot_names.find_agent("trades/12") == "trades"
    assert snapshot_names.find_agent("12") == ""
