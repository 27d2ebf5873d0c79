"""The measurements of `just cluster costs`, each on any engine with counters."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Final

from temporalio.client import Client

from fleet.beating import Beating
from fleet.cluster.counters import (
    REQUEST,
    Counted,
    add_up,
    divide,
    subtract,
    subtract_background,
)
from fleet.cluster.growth import Step
from fleet.cluster.meters import ClusterMeter, Meter
from fleet.cluster.paced import CYCLE_SECONDS, FOLDS, Paced
from fleet.deciding import deciding
from fleet.load import PUBLISHED_SECONDS
from fleet.pace import AGENT, HOST, Project, RecordedCycle
from rekindle.documents import events
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.fleet.agent_registry import RegisteredAgent, append_events
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock

AGENTS: Final = 6
CYCLES: Final = 4
TURNS: Final = 2
MORE_FOLDS: Final = 10
QUIET_SECONDS: Final = 12.0
BEATING: Final = 20
BEAT_TIMEOUT: Final = 8.0
TOGETHER: Final = 16
"""Idle agents that are started at once."""
WORK_SECONDS: Final = 1_800.0
"""Time after which a measurement fails, because an agent has failed."""
SETTLING_SECONDS: Final = 5.0
SAMPLE_SECONDS: Final = 1.0
DECIDED: Final = "RekindleState IS NOT NULL"
"""Query for the agents whose workflow has made its first decision."""


async def measure_during(meter: Meter, work: Awaitable[object]) -> Counted:
    """Return what the engine counted while this happened."""
    await asyncio.sleep(PUBLISHED_SECONDS)
    before = await asyncio.to_thread(meter.read)
    async with asyncio.timeout(WORK_SECONDS):
        await work
    await asyncio.sleep(PUBLISHED_SECONDS)
    return subtract(await asyncio.to_thread(meter.read), before)


async def measure_cycles(meter: Meter, recorded: RecordedCycle) -> dict[str, Counted]:
    """Return the cost of a cycle, of one more fold, and of the quiet engine per second."""
    words, definition = recorded
    client = await _connect(meter)
    found: dict[str, Counted] = {}
    for folds in (0, MORE_FOLDS):
        pacing = Paced(client, words, definition, folds=folds)
        turns = []
        async with pacing.working():
            quiet = await measure_during(meter, asyncio.sleep(QUIET_SECONDS))
            for turn in range(TURNS):
                await pacing.ours(f"folds-{folds}-{turn}", AGENTS, 1 + CYCLES)
                turns.append(await measure_during(meter, pacing.on(AGENTS * CYCLES)))
                print(f"  {folds} folds, turn {turn}: {turns[-1]['seconds']:.0f} s", flush=True)
        whole = _add(subtract_background(one, quiet) for one in turns)
        found[f"{folds} folds"] = divide(whole, AGENTS * CYCLES * TURNS)
        found.setdefault("second", divide(quiet, quiet["seconds"]))
    cycle = found.pop("0 folds")
    more = subtract(found.pop(f"{MORE_FOLDS} folds"), cycle)
    return found | {"cycle": cycle, "fold": divide(more, MORE_FOLDS)}


async def measure_beats(meter: Meter) -> Counted:
    """Return the cost of a heartbeat of a host."""
    beating = Beating(BEATING, BEAT_TIMEOUT)
    async with beating.working(meter.address):
        quiet = await measure_during(meter, asyncio.sleep(QUIET_SECONDS))
        await beating.start()
        beating.take_sent()
        counted = await measure_during(meter, asyncio.sleep(QUIET_SECONDS))
        sent = beating.take_sent() * counted["seconds"] / (counted["seconds"] + PUBLISHED_SECONDS)
    assert beating.begun == BEATING, "none timed out, none was begun again"
    return divide(subtract_background(counted, quiet), sent)


async def measure_idle(meter: Meter, folder: Path, number: int) -> dict[str, Counted]:
    """Return the cost of an engine without agents and with idle ones, and of their start."""
    project = Project(folder / "idle", meter.address)
    client = await project.connect()
    async with deciding(client, AgentWorkflow):
        await _start_idle(client, project, [f"{client.namespace}/first"])
        await settle(meter)
        none = await measure_during(meter, asyncio.sleep(3 * QUIET_SECONDS))
        names = [f"{client.namespace}/idle-{one}" for one in range(number)]

        async def start() -> None:
            await _start_idle(client, project, names)
            while (await client.count_workflows(DECIDED)).count <= number:  # noqa: ASYNC110
                await asyncio.sleep(SAMPLE_SECONDS)

        started = await measure_during(meter, start())
        await settle(meter)
        waiting = await measure_during(meter, asyncio.sleep(3 * QUIET_SECONDS))
    return {"none": none, "start": divide(started, number), "idle": waiting}


async def settle(meter: Meter, windows: int = 60) -> None:
    """Wait until the engine writes nothing for any workflow, twice in a row."""
    quiet, before = 0, await asyncio.to_thread(meter.read)
    for _ in range(windows):
        await asyncio.sleep(SETTLING_SECONDS)
        now = await asyncio.to_thread(meter.read)
        quiet = 0 if add_up(subtract(now, before), REQUEST) else quiet + 1
        before = now
        if quiet == 2:
            return
    raise AssertionError("the engine does not become quiet")


async def measure_steps(
    meter: ClusterMeter, recorded: RecordedCycle, numbers: Iterable[int], repeat: int
) -> list[Step]:
    """Return the load of more and more running agents, in compressed time."""
    words, definition = recorded
    client = await _connect(meter)
    pacing = Paced(client, words, definition, seconds=CYCLE_SECONDS, folds=FOLDS)
    steps, names, running = [], list[str](), 0
    async with pacing.working():
        for number in numbers:
            prefix = f"step-{repeat}-{number}"
            await pacing.add(prefix, number - running, CYCLE_SECONDS)
            names += [f"{prefix}-{one}" for one in range(number - running)]
            running = number
            await asyncio.sleep(SETTLING_SECONDS)
            steps.append(await _measure_step(meter, pacing, number))
            print(f"  {steps[-1]}", flush=True)
        await pacing.close()
        await asyncio.gather(*(pacing.handle(name).terminate() for name in names))
    return steps


async def _measure_step(meter: ClusterMeter, pacing: Paced, number: int) -> Step:
    waits, ends = list[Counted](), time.monotonic() + CYCLE_SECONDS
    before = await asyncio.to_thread(meter.read)
    pacing.latencies.clear()
    while time.monotonic() < ends:
        waits.append(await asyncio.to_thread(meter.read_waits))
        await asyncio.sleep(min(SAMPLE_SECONDS, max(0.0, ends - time.monotonic())))
    latencies = sorted(pacing.latencies)
    counted = divide(now := subtract(await asyncio.to_thread(meter.read), before), now["seconds"])
    assert latencies, "no agent has committed anything"
    parts = [counted[f"cpu {name}"] for name in ("servers", "database", "worker")]
    updates = len(latencies) / CYCLE_SECONDS
    return Step(
        agents=number,
        failed=pacing.failed,
        updates=updates,
        p50_ms=1e3 * statistics.median(latencies),
        p95_ms=1e3 * latencies[int(0.95 * len(latencies))],
        transactions=counted["transactions"],
        syncs=counted["syncs"],
        sync_share=counted["sync seconds"],
        lock_ms=1e3 * counted["shard lock seconds"] / updates,
        servers=parts[0],
        database=parts[1],
        worker=parts[2],
        others=counted["cpu all"] - counted["cpu idle"] - sum(parts),
        idle=counted["cpu idle"],
        waits=dict(divide(_add(waits), len(waits))),
    )


async def _connect(meter: Meter) -> Client:
    return await Client.connect(meter.address, data_converter=make_data_converter(()))


async def _start_idle(client: Client, project: Project, names: list[str]) -> None:
    """Start agents that wait for a person to run them."""
    empty = RegisteredAgent(
        agent=AGENT, definition=project.definition, projection=Projection(agent=AGENT), host=HOST
    )
    kept = append_events(empty, events.AgentCreated(ts=clock.read_clock(), agent=AGENT))
    gate = asyncio.Semaphore(TOGETHER)

    async def start(name: str) -> None:
        async with gate:
            await client.start_workflow(AgentWorkflow.run, kept, id=name, task_queue=DECISION_QUEUE)

    await asyncio.gather(*map(start, names))


def _add(some: Iterable[Counted]) -> Counted:
    whole = Counter[str]()
    for one in some:
        for name, value in one.items():
            whole[name] += value
    return dict(whole)
