"""The parts of the soak that decide what it shows, without a CLI."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from loopback.log import Part
from survival import player, task
from survival.player import Look, Relay, Say, Write
from survival.soak import flatness, schedule, verdict, work
from survival.soak.cycles import Cycle, Cycles, adjust_processor
from survival.soak.flatness import Bar, Trend
from survival.soak.measure import Seen
from survival.soak.run import Result
from survival.soak.strikes import KINDS
from survival.task import Count

pytestmark = pytest.mark.pure

TOTAL = 12
PROMPT = Part(
    "user",
    "text",
    "write the relay for the next one to this file, then stop:\n/x/relay.md\nIt is markdown",
)


# The count


@pytest.fixture
def project(tmp_path):
    work.prepare(tmp_path, TOTAL)
    (tmp_path / "items").mkdir()
    for item in range(1, TOTAL + 1):
        write(tmp_path, item)
    return tmp_path


def write(project, item):
    (project / f"items/{work.name(item)}.txt").write_text(f"{work.line(item)}\n")
    with (project / task.LEDGER).open("a") as ledger:
        ledger.write(f"{work.line(item)}\n")


def test_complete_work(project):
    assert work.count(project, TOTAL) == Count(done=TOTAL, lost=0, twice=0)
    assert work.begun(project, TOTAL) == TOTAL


def test_a_lost_item_is_found(project):
    (project / f"items/{work.name(5)}.txt").unlink()
    assert work.count(project, TOTAL) == Count(done=TOTAL - 1, lost=1, twice=0)


def test_a_repeated_item_is_found(project):
    write(project, 7)
    assert work.count(project, TOTAL) == Count(done=TOTAL, lost=0, twice=1)


def test_each_item_has_a_file_of_its_own():
    items = range(1, schedule.CYCLES * work.EACH * 4)
    assert len({work.name(item) for item in items}) == len(items)


# The model


def called(line, result):
    return [Part("assistant", "call", line, line), Part("user", "result", result, line)]


def listed(last):
    lines = "".join(f"done {item:03}\n" for item in range(max(1, last - 7), last + 1))
    return called(work.command(Look()), f"{lines}{task.LISTED}\n")


def wrote(item):
    return called(work.command(Write(item)), f"written {item:03}\n")


def decide(*parts):
    return work.decide(player.look(parts), parts, TOTAL)


def test_a_cycle_ends_after_its_last_item():
    assert decide(PROMPT) == Look()
    assert decide(PROMPT, *listed(0)) == Write(1)
    assert decide(PROMPT, *listed(3)) == Write(4)
    relay = decide(PROMPT, *listed(3), *wrote(4), *wrote(5), *wrote(6))
    assert isinstance(relay, Relay)
    assert work.name(7) in relay.directive
    whole = [PROMPT, *listed(4), *wrote(5), *wrote(6), *called(work.command(relay), "")]
    assert isinstance(decide(*whole), Say)


def test_the_work_ends_after_the_last_item():
    assert decide(PROMPT, *listed(11), *wrote(12)) == Relay("/x/relay.md", player.DONE)


# The schedule


def test_a_seed_always_plans_the_same_faults():
    plans = [schedule.plan(seed, schedule.CYCLES) for seed in range(20)]
    assert plans == [schedule.plan(seed, schedule.CYCLES) for seed in range(20)]
    assert len({tuple(plan.items()) for plan in plans}) == 20


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_has_every_kind_and_a_supervisor_that_lives_for_half_of_the_run(seed):
    cycles = schedule.CYCLES
    plan = schedule.plan(seed, cycles)
    counts = Counter(plan.values())
    assert counts.keys() == KINDS.keys()
    assert counts["limit"] == 1
    struck = {(item - 1) // work.EACH: kind for item, kind in plan.items()}
    assert len(struck) == len(plan) == cycles // 2
    assert max(plan) <= cycles * work.EACH
    ending = [cycle for cycle, kind in struck.items() if KINDS[kind].ends_supervisor]
    assert ending
    assert not [cycle for cycle in ending if cycles // 4 <= cycle < cycles * 3 // 4]


def test_a_fault_at_the_last_item_of_a_cycle_reaches_the_next_one():
    struck = schedule.plan(1, 48)
    last = {item // work.EACH for item in struck if item % work.EACH == 0}
    assert last
    others = {(item - 1) // work.EACH for item in struck}
    assert schedule.find_struck(1, 48) == last | others


# The measures


def cycles(number=96, **grows):
    """Return cycles with the noise of a real run, in which some measures grow by a share each."""
    chance = random.Random(7)
    flat = {"supervisor_memory": 41_000, "daemon_memory": 42_000, "processor": 0.5, "disk": 9_000}
    return [
        Cycle(
            **{
                name: value * chance.uniform(0.98, 1.02) * (1 + grows.get(name, 0.0) * place)
                for name, value in flat.items()
            },
            supervisor_descriptors=15 + round(grows.get("descriptors", 0) * place),
            life=place // 40,
        )
        for place in range(number)
    ]


def growing(**grows):
    trends = flatness.find_trends(cycles(**grows), ())
    return [name for name, one in trends.items() if not one.is_flat]


def test_a_steady_run_is_flat():
    assert growing() == []
    assert set(flatness.find_trends(cycles(), ())) == {*flatness.BARS, "one_supervisor"}


@pytest.mark.parametrize(
    ("grows", "names"),
    [
        ({"supervisor_memory": 0.002}, ["supervisor_memory"]),
        ({"supervisor_memory": 0.004}, ["supervisor_memory", "one_supervisor"]),
        ({"daemon_memory": 0.002}, ["daemon_memory"]),
        ({"descriptors": 0.1}, ["supervisor_descriptors"]),
        ({"processor": 0.01}, ["processor"]),
        ({"disk": 0.01}, ["disk"]),
    ],
)
def test_growth_is_not_flat(grows, names):
    assert growing(**grows) == names


def test_a_leak_of_one_supervisor_is_found_although_restarts_hide_it():
    leaking = [
        replace(one, supervisor_memory=40_000 + 150 * (place % 40))
        for place, one in enumerate(cycles(120))
    ]
    trends = flatness.find_trends(leaking, ())
    assert not trends["one_supervisor"].is_flat


def test_the_costs_are_those_of_cycles_without_a_fault():
    """Here the last quarter has most of the faults, and each of them costs a second."""
    struck = {5, 30, *range(60, 96, 2), *range(75, 96, 4)}
    costly = [
        replace(one, processor=one.processor + (place in struck))
        for place, one in enumerate(cycles())
    ]
    assert not flatness.find_trends(costly, ())["processor"].is_flat
    assert flatness.find_trends(costly, struck)["processor"].is_flat
    grown = [
        replace(one, processor=one.processor * (1 + place / 96)) for place, one in enumerate(costly)
    ]
    assert not flatness.find_trends(grown, struck)["processor"].is_flat


def test_the_bar_is_compared_with_the_last_quarter():
    assert flatness.find_trend([9, 9, 1, 1, 5, 5, 2, 2], Bar(1.5, 0.5)) == Trend(1, 2, 2)
    assert Trend(1, 2, 2).is_flat
    assert not Trend(1, 2.1, 2).is_flat


def test_a_short_run_has_no_trend():
    assert flatness.find_trends(cycles(flatness.LEAST_CYCLES - 1), ()) == {}


def test_a_cycle_has_its_share_of_the_processor_and_of_the_disk():
    disk = iter([(100, 10), (150, 11), (170, 13)])
    noted = Cycles(lambda: next(disk))
    noted.begin(at=0)
    old, new = (Seen("supervisor", (1, at), 40, 9, seconds) for at, seconds in ((1, 2.0), (2, 0.5)))
    noted.note([old, Seen("daemon", (3, 3), 50, 4, 1.0)], 0.004)
    noted.finish(at=5)
    noted.note([replace(old, seconds=3.0, memory=30)], 0.006)
    noted.note([new], 0.01)  # the other one was killed
    noted.finish(at=9)
    first, second = noted.finished
    assert (first.processor, first.disk, first.elsewhere, first.life) == (3.0, 50, 1, 0)
    assert (second.processor, second.disk, second.elsewhere, second.life) == (1.5, 20, 2, 1)
    assert (second.supervisor_memory, second.daemon_memory, second.seconds) == (40, 0, 4)
    assert [first.reference, second.reference] == pytest.approx([0.004, 0.008])


def test_a_slow_machine_is_not_growth_but_more_work_is():
    slow = [
        replace(one, processor=one.processor * speed, reference=0.004 * speed)
        for place, one in enumerate(cycles())
        for speed in [1.6 if place > 60 else 1.0]
    ]
    assert not flatness.find_trends(slow, ())["processor"].is_flat
    grown = [
        replace(one, processor=one.processor * (1 + place / 96)) for place, one in enumerate(slow)
    ]
    adjust_processor(slow)
    assert flatness.find_trends(slow, ())["processor"].is_flat
    adjust_processor(grown)
    assert not flatness.find_trends(grown, ())["processor"].is_flat


# The verdict


def test_a_run_without_trouble():
    result = Result("codex", "1", 1, "1", total=12, done=12, cycles=cycles())
    assert verdict.find_troubles(result) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"done": 11}, "1 items not done"),
        ({"lost": 1}, "1 items lost"),
        ({"twice": 2}, "2 items done twice"),
        ({"left": ["sleep 9"]}, "1 processes left over"),
        ({"interventions": 1}, "1 interventions of a person"),
        ({"missing": ["reboot"]}, "1 faults did not happen"),
        ({"cycles": cycles(disk=0.02)}, "disk is not flat"),
    ],
)
def test_each_trouble_is_found(wrong, words):
    result = Result("codex", "1", 1, "1", total=12, done=12, cycles=cycles())
    (trouble,) = verdict.find_troubles(replace(result, **wrong))
    assert words in trouble
