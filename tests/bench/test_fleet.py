"""Compare the cost of an agent's workflow with one that does nothing, and after many cycles.

Both ask the engine for the same: one activity per cycle, and as many updates of the same size. The
database is a file, in memory if the host has such a folder: the workflow cannot change what a disk
costs.
"""

import asyncio
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import pytest

from fleet.engine import Engine
from fleet.figures import hold
from fleet.pace import Pacing, Project, cpu_seconds, recorded
from rekindle.policy.settings.runtime_settings import FLEET_HISTORY_EVENTS

# By a thread: a signal would cancel the event loop, which then waits for its workers forever.
pytestmark = [pytest.mark.bench, pytest.mark.timeout(300, method="thread")]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
AGENTS, CYCLES, TURNS = 8, 5, 5
LONG: Final = 1_000 if WHOLE else 150
"""Cycles in a row of one agent; a tenth of a second each."""
UPDATE: Final = (
    "workflow_task_scheduled",
    "workflow_task_started",
    "workflow_task_completed",
    "workflow_execution_update_accepted",
    "workflow_execution_update_completed",
)
"""The events of one."""
CARRIED: Final = "workflow_execution_continued_as_new"
BEGUN: Final = "workflow_execution_started"


class Spent(msgspec.Struct):
    """The cost of some cycles: time, and the processor time of both sides."""

    cycles: int
    seconds: float
    server: float
    worker: float

    @property
    def rate(self) -> float:
        return self.cycles / self.seconds

    def __str__(self) -> str:
        server, worker = (1e3 * one / self.cycles for one in (self.server, self.worker))
        return (
            f"{self.rate:.1f} cycles/s, {server:.0f} ms of the server and {worker:.0f} of a worker"
        )


@pytest.fixture
def fast_engine(in_memory: Path) -> Iterator[Engine]:
    (in_memory / "engine").mkdir()
    with Engine(in_memory / "engine") as started:
        yield started


def test_an_agent_s_workflow_keeps_pace_with_one_that_does_nothing(fast_engine, in_memory):
    """It reaches at least 0.8 of the idle workflow's cycles per second, in turns on one server.

    The first cycle is left out: an agent starts once, and then runs for as long as there is work.
    """

    async def both() -> tuple[list[Spent], list[Spent], float]:
        words, definition = await recorded(fast_engine.address, in_memory)
        client = await Project(in_memory / "pace", fast_engine.address).connect()
        pacing = Pacing(client, words, definition)
        ours, bare = [], []
        async with pacing.working():
            for turn in range(TURNS):
                pair = [(pacing.ours, ours, "ours"), (pacing.bare, bare, "bare")]
                for run, turns, name in pair if turn % 2 else reversed(pair):
                    await run(f"{name}-{turn}", AGENTS, 1 + CYCLES)
                    began = now(fast_engine)
                    await pacing.on(AGENTS * CYCLES)
                    took = (b - a for a, b in zip(began, now(fast_engine), strict=True))
                    turns.append(Spent(AGENTS * CYCLES, *took))
            lengths = [
                sum(one.ByteSize() for run in await pacing.chain(f"{name}-0-0") for one in run)
                for name in ("ours", "bare")
            ]
        return ours, bare, lengths[0] / lengths[1]

    ours, bare, bytes_beside = asyncio.run(both())
    # A busy neighbour is in one turn, and not in the other: most pairs have none.
    ratios = sorted(one.rate / other.rate for one, other in zip(ours, bare, strict=True))
    ratio = statistics.median(ratios)
    print(
        f"\nours: {total(ours)}\nbare: {total(bare)}\nratio {ratio:.2f}"
        f" ({ratios[0]:.2f} to {ratios[-1]:.2f}), history bytes {bytes_beside:.2f} times"
    )
    whole = total(ours)
    hold(
        server_ms_per_cycle=1e3 * whole.server / whole.cycles,
        worker_ms_per_cycle=1e3 * whole.worker / whole.cycles,
    )
    assert 0.9 < bytes_beside < 1.2, "else they did not ask for the same"
    assert ratio >= 0.8


@pytest.mark.torture
def test_the_history_of_a_cycle_stays_as_long_as_it_was(fast_engine, in_memory):
    """This includes carried-over state; `just torture` has a thousand cycles."""

    async def whole() -> list[list]:
        words, definition = await recorded(fast_engine.address, in_memory)
        client = await Project(in_memory / "pace", fast_engine.address).connect()
        pacing = Pacing(client, words, definition)
        async with pacing.working():
            await pacing.ours("long", 1, LONG)
            await pacing.on(LONG - 1)
            return await pacing.chain("long-0")

    began = time.perf_counter()
    runs = asyncio.run(whole())
    seconds = time.perf_counter() - began
    # The first ones are shorter: as many launches are remembered as there have been.
    longest, carried = max(map(len, runs)), [run[0].ByteSize() for run in runs[3:]]
    everything = [one for run in runs for one in run]
    cycles = by_cycle(everything)
    tenth = LONG // 10
    # Each history is longer than the one before until the retention limit is reached.
    first, last = (sum(some) / tenth for some in (cycles[tenth : 2 * tenth], cycles[-tenth:]))
    kinds = Counter(kind(one) for one in everything)
    print(
        f"\n{LONG} cycles in {seconds:.0f} s, {len(runs)} runs of at most {longest} events;"
        f" {first:.0f} bytes of history a cycle at first, {last:.0f} at last;"
        f" {carried[0]} carried over at first, {carried[-1]} at last;"
        f" a cycle: {len(everything) / LONG:.1f} events,"
        f" {kinds['activity_task_scheduled'] / LONG:.2f} activities,"
        f" {kinds['workflow_execution_update_accepted'] / LONG:.2f} updates,"
        f" {kinds['timer_started'] / LONG:.2f} timers,"
        f" {kinds['upsert_workflow_search_attributes'] / LONG:.2f} upserts"
    )
    hold(
        events_per_cycle=len(everything) / LONG,
        updates_per_cycle=kinds["workflow_execution_update_accepted"] / LONG,
        history_bytes_per_cycle=sum(one.ByteSize() for one in everything) / LONG,
        history_bytes_per_update=sum(statistics.median(sizes(everything, one)) for one in UPDATE),
    )
    assert len(cycles) == LONG
    assert kinds[CARRIED] == len(runs) - 1 >= LONG * 30 // FLEET_HISTORY_EVENTS
    assert longest < FLEET_HISTORY_EVENTS + 100
    assert abs(last / first - 1) < 0.1
    assert abs(carried[-1] / carried[0] - 1) < 0.1


def now(engine: Engine) -> tuple[float, float, float]:
    return time.perf_counter(), cpu_seconds(engine.pid), time.process_time()


def total(turns: list[Spent]) -> Spent:
    return Spent(
        *(sum(of_one) for of_one in zip(*map(msgspec.structs.astuple, turns), strict=True))
    )


def kind(event) -> str:
    return event.WhichOneof("attributes").removesuffix("_event_attributes")


def sizes(history: list, of: str) -> list[int]:
    return [one.ByteSize() for one in history if kind(one) == of]


def by_cycle(history: list) -> list[int]:
    """The bytes from one cycle's activity to that of the next, but for what is carried over."""
    starts = [n for n, one in enumerate(history) if kind(one) == "activity_task_scheduled"]
    return [
        sum(one.ByteSize() for one in history[start:end] if kind(one) not in {CARRIED, BEGUN})
        for start, end in pairwise([*starts, len(history)])
    ]
