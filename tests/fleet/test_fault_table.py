"""The table of a run with faults, and what counts as a broken invariant."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from fleet.audit import Accepted, Lease, Told, Who
from fleet.cluster.fault_table import Measured, find_percentile, render_markdown, summarize
from fleet.cluster.faults import UnknownFaultError, require_known
from fleet.cluster.guide_table import GUIDE, RECORDED, render_part
from fleet.invariants import GAP, KINDS, OWNED_TWICE, RELAY_LOST, REPEAT, ZOMBIE, find_violations
from rekindle.policy.fleet.agent_registry import CommitRequest

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HERE, THERE = Who("1", 10, "x"), Who("1", 20, "y")


def measured(what: str, seconds: list[float], **more) -> Measured:
    return Measured(what, "", len(seconds), seconds, "begin", **more)


def test_faults_of_one_kind_share_a_row():
    rows = summarize(
        [
            measured("history killed", [1.0, 2.0], sessions=2, continued=2),
            measured("freeze", [9.0]),
            measured("history killed", [3.0], sessions=1, continued=0, violations={GAP: 1}),
        ]
    )
    assert [(row.what, row.times, row.running) for row in rows] == [
        ("history killed", 2, "1 to 2"),
        ("freeze", 1, "1"),
    ]
    first = rows[0]
    assert (first.median, first.p90, first.continued, first.violations) == (2.0, 3.0, "2 of 3", 1)


@pytest.mark.parametrize(("count", "found"), [(1, 1), (10, 9), (11, 10), (20, 18)])
def test_percentile_is_a_measured_value(count, found):
    assert find_percentile([float(one) for one in range(count, 0, -1)], 0.9) == found


def test_table_is_markdown():
    """The facts of the whole run follow the table."""
    rows = summarize([measured("freeze", [9.04], sessions=1, continued=1)])
    lines = render_markdown(rows, {"agents": 30}).splitlines()
    assert [line.count("|") for line in lines[:3]] == [9, 9, 9]
    assert lines[2] == "| freeze | 1 | 1 | 9.0 s | 9.0 s | begin | 1 of 1 | 0 |"
    assert lines[-1] == "- agents: 30"


def test_a_fault_that_does_not_exist_is_refused():
    """A typing error must not select nothing, because nothing has no broken invariant."""
    names = ["history killed", "host cut off"]
    require_known(["history-killed", "cut", "host"], names)
    with pytest.raises(
        UnknownFaultError, match="histroy: use words of history-killed, host-cut-of"
    ):
        require_known(["host", "histroy"], names)


class Life:
    """The history of an agent, written by hand."""

    def __init__(self) -> None:
        self.told, self._relay = Told("a"), None

    def lease(self, generation: int, who: Who = HERE) -> "Life":
        at = BEGAN + timedelta(minutes=generation)
        self.told.leases.append(Lease(generation, "q", at, at, who))
        return self

    def cycle(self, number: int, *, previous: str | None = None) -> "Life":
        """End a cycle with a relay that follows the last one, or `previous`."""
        sha = f"sha-{len(self.told.commits)}"
        relay = {"kind": "relay.committed", "sha256": sha, "previous": previous or self._relay}
        self._relay = sha
        return self.commit(relay, {"kind": "cycle.ended", "cycle": number})

    def commit(self, *lines: dict, generation: int = 0, who: Who = HERE) -> "Life":
        at = BEGAN + timedelta(hours=1, seconds=len(self.told.commits))
        leased = self.told.leases[-1].generation
        stamped = tuple(json.dumps({"ts": at.isoformat(), **line}) for line in lines)
        asked = CommitRequest(
            id=f"c{len(self.told.commits)}",
            generation=generation or leased,
            known=1,
            lines=stamped,
        )
        self.told.commits.append(Accepted(at, who, asked, leased, is_late=False))
        return self


def test_a_whole_life_has_no_violation():
    """A cycle that was repeated on another host under a new lease is one of them."""
    launch = {"kind": "launch.started", "launch": "l1"}
    life = Life().lease(1).cycle(1).commit(launch).lease(2, THERE)
    life.commit({"kind": "launch.started", "launch": "l2"}, who=THERE)
    assert find_violations(life.told) == []


LAUNCH = {"kind": "launch.started", "launch": "l1"}
BROKEN = {
    OWNED_TWICE: lambda: Life().lease(2).lease(2),
    RELAY_LOST: lambda: Life().lease(1).cycle(1).cycle(2, previous="sha-of-another"),
    GAP: lambda: Life().lease(1).cycle(1).cycle(3),
    REPEAT: lambda: Life().lease(1).cycle(1).commit(LAUNCH).commit(LAUNCH),
    ZOMBIE: lambda: Life().lease(1).lease(2, THERE).commit(who=HERE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_broken_invariant_is_found(kind):
    found = find_violations(BROKEN[kind]().told)
    assert [(one.kind, one.agent) for one in found] == [(kind, "a")]
    assert found[0].words


def test_a_cycle_that_ends_twice_is_a_repeat():
    found = find_violations(Life().lease(1).cycle(1).cycle(1).told)
    assert [one.kind for one in found] == [REPEAT]


def test_a_lease_that_was_given_beside_another_is_found():
    life = Life().lease(1)
    life.told.overlaps.append((BEGAN, "2 was handed out beside 1"))
    assert [one.kind for one in find_violations(life.told)] == [OWNED_TWICE]


def test_the_guide_has_the_faults_of_a_run_in_which_everything_held():
    """The table and the facts in the guide are those of the recorded run."""
    recorded = json.loads(RECORDED.read_text())
    assert render_part(recorded) in GUIDE.read_text()
    facts = recorded["totals"]
    assert [facts[kind] for kind in (*KINDS, "work lost or pushed late")] == [0] * 6
    refused, _, asked = facts["late commits of lost hosts refused"].partition(" of ")
    assert refused == asked > "0"
    assert facts["sessions left on lost hosts"] == 0
