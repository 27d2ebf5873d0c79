"""The needs of an agent, from all known facts."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.exits.restart import EnterSafeMode
from rekindle.policy.exits.session_choice import StartFresh
from rekindle.policy.progress.idle import IdleWork
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.supervision.next_move import (
    AgentLimits,
    decide_move,
    is_quota_lifted,
    measure_idle_work,
    select_open_launches,
)
from rekindle.policy.supervision.run_moves import RunState

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
RUN = (
    events.DesiredSet(ts=NOW, seq=1, desired="running"),
    events.RunStarted(ts=NOW, seq=2),
)


def known(*attempts, **fields):
    projection = fold_events(Projection(agent="a"), RUN)
    named = {f"l{place}": attempt for place, attempt in enumerate(attempts)}
    return msgspec.structs.replace(projection, attempts=named, **fields)


def attempt(cycle, **fields):
    given = {"resumes": False, "seq": 10, "began": NOW, "exit": "crash", "ended": NOW}
    return LaunchRecord(cycle, "s", **given | fields)


def test_an_agent_that_is_wanted_gets_a_session():
    assert isinstance(decide_move(known(), AgentLimits(), NOW), StartFresh)


def test_limits_are_the_loosest_unless_set():
    assert (
        AgentLimits().budget,
        AgentLimits().threshold,
        AgentLimits().stays,
        AgentLimits().checkpoints,
    ) == (
        None,
        None,
        False,
        True,
    )


def test_a_spent_budget_ends_the_run():
    spent = fold_events(
        Projection(agent="a"),
        (*RUN, events.SpendRecorded(ts=NOW, seq=3, launch="l", tokens=1, usd=9.0)),
    )
    assert isinstance(decide_move(spent, AgentLimits(), NOW), StartFresh)
    assert not isinstance(decide_move(spent, AgentLimits(budget=Budget(usd=5.0)), NOW), StartFresh)


def test_only_launches_of_this_cycle_were_tried():
    cycle = known().current_cycle
    now, before = attempt(cycle), attempt(cycle - 1)
    assert select_open_launches(known(before, now)) == [now]


def test_idle_launches_are_counted_since_the_run_began():
    assert measure_idle_work(known()) == IdleWork()
    cycle = known().current_cycle
    assert measure_idle_work(known(attempt(cycle), attempt(cycle, seq=1))).launches == 1


def test_many_launches_without_progress_pause_the_run():
    cycle = known().current_cycle
    late = NOW + timedelta(days=9)
    many = [attempt(cycle, seq=10 + place, exit="handoff") for place in range(50)]
    assert isinstance(decide_move(known(*many), AgentLimits(), late), EnterSafeMode)


@pytest.mark.parametrize(("lifted", "at_next", "at_last"), [(0, False, False), (4, False, True)])
def test_a_restart_lifts_the_quota_for_one_launch(lifted, at_next, at_last):
    attempts = {str(seq): SimpleNamespace(seq=seq) for seq in (3, 7)}
    projection = SimpleNamespace(run=RunState(lifted=lifted), attempts=attempts)
    assert is_quota_lifted(projection) is at_next
    assert is_quota_lifted(projection, 7) is at_last
    assert is_quota_lifted(SimpleNamespace(run=RunState(lifted=9), attempts=attempts))
