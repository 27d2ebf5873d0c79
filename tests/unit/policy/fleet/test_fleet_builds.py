"""The builds of a fleet: the previous one, those without workers, and what to do about them."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.policy.fleet.fleet_builds import (
    Build,
    FleetBuilds,
    explain_abandoned,
    explain_stuck,
    parse_cause,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def build(name, role="former", **more):
    hours = int(name.rpartition(".")[2])
    was_current = {} if role == "new" else {"last_current": NOW + timedelta(hours=hours)}
    return Build(build=name, role=role, **was_current | more)


def builds(*known):
    return FleetBuilds(builds=known)


def test_the_previous_build_is_the_one_that_was_current_last():
    fleet = builds(build("0.1"), build("0.3", "current"), build("0.2"), build("0.4", "new"))
    assert (fleet.current, fleet.ramping, fleet.find_previous()) == ("0.3", "", "0.2")
    assert builds(build("0.1", "current"), build("0.2", "new")).find_previous() == ""


def test_builds_with_workers_are_listed_in_the_order_of_their_use():
    fleet = builds(
        build("0.1", workers=1),
        build("0.4", "new", workers=2),
        build("0.2", "current", workers=1),
        build("0.3", "ramping"),
    )
    assert fleet.find_with_workers() == ["0.2", "0.4", "0.1"]
    assert fleet.find("0.3").role == "ramping"
    assert fleet.find("0.9") is None


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (build("0.1", agents=2), "2 agents need build 0.1, but no worker runs it"),
        (build("0.1", pipelines=1), "1 pipeline needs build 0.1, but no worker runs it"),
        (build("0.1", agents=1, pipelines=3), "1 agent and 3 pipelines need build 0.1, but"),
        (build("0.1", "current"), "no worker runs the fleet's current build 0.1, so its agents"),
        (build("0.1", "ramping"), "no worker runs the fleet's ramping build 0.1, so its agents"),
    ],
)
def test_a_build_that_is_needed_must_have_a_worker(known, words):
    (alone,) = explain_abandoned(builds(known))
    assert alone.what.startswith(words)
    assert alone.fix == "start a worker of build 0.1"
    (beside,) = explain_abandoned(builds(known, build("0.2", "new", workers=1)))
    assert beside.fix.endswith("or continue on another: `rekindle fleet deploy 0.2 --move`")


def test_a_build_that_is_not_needed_may_be_without_workers():
    fleet = builds(build("0.1"), build("0.2", "new"), build("0.3", "current", workers=1, agents=4))
    assert explain_abandoned(fleet) == []


def test_one_build_can_be_asked_for():
    fleet = builds(build("0.1", agents=1), build("0.2", agents=1))
    assert len(explain_abandoned(fleet)) == 2
    (only,) = explain_abandoned(fleet, only="0.2")
    assert "build 0.2" in only.what


def test_stuck_agents_are_named_with_their_build():
    problem = explain_stuck(["b", "a"], "0.1", "NonDeterministicError")
    assert problem.what == "a, b are stuck: build 0.1 fails to decide (NonDeterministicError)"
    assert "`rekindle fleet deploy BUILD --move`" in problem.fix
    assert explain_stuck(["a"], "", "x").what.startswith("a is stuck: its worker fails")


@pytest.mark.parametrize(
    ("reported", "cause"),
    [
        (
            [
                "category=WorkflowTaskFailed",
                "cause=WorkflowTaskFailedCauseNonDeterministicError",
            ],
            "NonDeterministicError",
        ),
        (["category=WorkflowTaskTimedOut"], "WorkflowTaskTimedOut"),
        ([], "unknown cause"),
    ],
)
def test_a_cause_is_read_from_the_engine(reported, cause):
    assert parse_cause(reported) == cause
