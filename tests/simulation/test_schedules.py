"""Two years of schedules: none is missed silently, and none is started twice.

`schedule_world.py` draws a schedule and a time zone from a seed. The host sleeps, the daemon is
killed at any step between the record and the start, starts fail, runs overlap, and the clock is set
back and forth by up to a year. `schedule_facts.py` calculates the due times independently.

To repeat one world: `REKINDLE_SEED=1234 pytest tests/simulation/test_schedules.py -k seed`.
CI plays a sample, `just torture tests/simulation/test_schedules.py` all of them.
"""

import os
from collections import Counter
from datetime import timedelta

import msgspec
import pytest
from schedule_world import BrokenPromiseError, ScheduleWorld

from rekindle.flows.schedules import start_due_run as flow
from rekindle.policy.schedules import decide_run as policy
from rekindle.policy.schedules.decide_run import RunFacts
from sampling import WHOLE

SEED = os.environ.get("REKINDLE_SEED")
WORLDS = 2_000 if WHOLE else 5
change = msgspec.structs.replace


def play(seed, **options):
    world = ScheduleWorld(seed, **options)
    try:
        world.play()
    except BrokenPromiseError as error:
        pytest.fail(f"REKINDLE_SEED={seed}: {error}\n{world.every}")
    return world


@pytest.mark.torture
@pytest.mark.timeout(7200 if WHOLE else 300)
def test_each_due_time_is_started_once_or_recorded():
    seen = Counter()
    for seed in range(WORLDS):
        world = play(seed)
        seen.update(world.counts)
        seen["due"] += len(world.oracle.between(world.since, world.true))
    print(f"\n{WORLDS:,} worlds of two years: {dict(sorted(seen.items()))}")
    faults = ("kills", "sleeps", "clock changes", "skipped", "missed", "restored", "failed starts")
    assert all(seen[fault] > WORLDS for fault in faults), seen
    assert seen["killed: after a write"] > 0
    assert seen["killed: after a start"] > 0


def test_a_calm_host_starts_every_run_that_does_not_overlap():
    for seed in range(100, 101):
        world = play(seed, is_calm=True)
        due = world.oracle.between(world.since, world.true)
        fates = Counter(world.fate[at] for at in due)
        assert fates["started"] + fates["skipped"] + fates["missed"] == len(due)
        assert fates["started"] > 0.7 * len(due)


@pytest.mark.skipif(SEED is None, reason="REKINDLE_SEED names a world to play again")
def test_the_seed_that_was_asked_for():
    world = play(int(SEED or 0))
    print(world.every, dict(world.counts))


def test_a_world_depends_on_its_seed_alone():
    length = timedelta(days=60)
    assert play(5, length=length).fate == play(5, length=length).fate
    assert play(5, length=length).fate != play(6, length=length).fate


# Each promise can be broken, and the world notices it.


def play_many(worlds):
    for seed in range(worlds):
        ScheduleWorld(seed).play()


def use(monkeypatch, decide):
    monkeypatch.setattr(flow, "decide_run", decide)


def forget_starts(rules, record, now, facts):
    return policy.decide_run(rules, record, now, change(facts, has_started=False))


def forget_pending(rules, record, now, facts):
    return policy.decide_run(rules, change(record, pending=None), now, facts)


def forget_missed(rules, record, now, facts):
    chosen = policy.decide_run(rules, record, now, facts)
    history = tuple(entry for entry in chosen.record.history if entry.kind != "missed")
    return change(chosen, record=change(chosen.record, history=history))


def ignore_obstacles(rules, record, now, facts):
    return policy.decide_run(rules, record, now, change(facts, obstacle=""))


def ignore_running(rules, record, now, facts):
    return policy.decide_run(rules, record, now, change(facts, is_running=False))


def follow_the_clock_back(rules, record, now, facts):
    return policy.decide_run(rules, change(record, handled=min(record.handled, now)), now, facts)


def never_start(rules, record, now, facts):
    return policy.decide_run(rules, record, now, RunFacts(obstacle="never"))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (forget_starts, "started twice|during another run|but it was|but not once"),
        (forget_pending, "silently|should have been started"),
        (forget_missed, "silently|restored, but there are"),
        (ignore_obstacles, "in spite of an obstacle"),
        (ignore_running, "during another run"),
        (follow_the_clock_back, "twice|, then |but it was|but there are 0"),
        (never_start, "should have been started"),
    ],
)
def test_the_world_notices_a_broken_promise(monkeypatch, broken, words):
    use(monkeypatch, broken)
    with pytest.raises(BrokenPromiseError, match=words):
        play_many(10)
