"""Rows of a fleet: what has changed, and the sums of a team."""

import msgspec
import pytest

from rekindle.documents.screens.fleet_row import FleetRow, FleetUsage, find_change_kind, sum_usage

pytestmark = pytest.mark.pure
ROW = FleetRow(agent="a", state="running", team="blue", cycle=2, usd=1.5, tokens=10)


def change(**fields) -> FleetRow:
    return msgspec.structs.replace(ROW, **fields)


@pytest.mark.parametrize(
    ("row", "before", "kind"),
    [
        (ROW, None, "state"),
        (change(asks=True), None, "question"),
        (change(asks=True), ROW, "question"),
        (change(asks=True, cycle=3), change(asks=True), "state"),
        (change(is_over=True), ROW, "ended"),
        (change(is_over=True, pool="x"), change(is_over=True), "state"),
        (change(is_over=True, cycle=3), change(is_over=True), "ended"),
        (change(is_over=True, run=9), change(is_over=True, run=5), "ended"),
        (change(is_removed=True, is_over=True), ROW, "removed"),
    ],
)
def test_the_kind_of_a_change(row, before, kind):
    assert find_change_kind(row, before) == kind


def test_the_end_of_an_earlier_run_is_not_that_of_the_new_one():
    old, new = change(is_over=True, run=5), change(is_over=True, run=9)
    assert find_change_kind(old, None) == "ended"
    assert find_change_kind(old, None, 9) == "state"
    assert find_change_kind(new, old, 9) == "ended"
    assert find_change_kind(new, None, 9) == "ended"


def test_usage_is_added_up_by_team():
    rows = [
        ROW,
        change(agent="b", state="waiting", usd=None, tokens=None),
        change(agent="c", state="needs you", team=""),
    ]
    assert sum_usage(rows, "team") == [
        FleetUsage(name="", agents=1, needs_person=1, cycles=2, usd=1.5, tokens=10),
        FleetUsage(name="blue", agents=2, running=1, waiting=1, cycles=4, usd=1.5, tokens=10),
    ]
    assert [usage.agents for usage in sum_usage(rows, "pool")] == [3]
