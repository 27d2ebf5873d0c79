"""The cost of idle agents, and of agents that only send heartbeats.

CI measures a share of them; `just torture tests/fleet/test_cost.py` has 200 running and 1,000
waiting agents.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest
from temporalio.client import Client

from fleet.apart import children
from fleet.beating import Beating
from fleet.deciding import deciding
from fleet.figures import hold
from fleet.pace import AGENT, HOST, Project, begun, cpu_seconds, megabytes
from rekindle.documents import events
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.policy.fleet.agent_registry import (
    RegisteredAgent,
    append_events,
)
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock

pytestmark = [pytest.mark.torture, pytest.mark.bench, pytest.mark.timeout(300, method="thread")]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
BEATING: Final = 200 if WHOLE else 60
IDLE: Final = 1_000 if WHOLE else 100
SECONDS: Final = 20.0 if WHOLE else 3.0
TOGETHER: Final = 4
WAITING_SHARE: Final = 0.1
"""The largest share of a start's processor time that a second of waiting may cost."""
WAITS: Final = "import time; time.sleep(600)\n"


def kept_by(project: Project, *said: events.AnyEvent) -> RegisteredAgent:
    empty = RegisteredAgent(
        agent=AGENT,
        definition=project.definition,
        projection=Projection(agent=AGENT),
        host=HOST,
    )
    return append_events(empty, events.AgentCreated(ts=clock.read_clock(), agent=AGENT), *said)


async def start(
    client: Client, project: Project, names: Iterable[str], *said: events.AnyEvent
) -> None:
    for name in names:
        kept = kept_by(project, *said)
        await client.start_workflow(AgentWorkflow.run, kept, id=name, task_queue=DECISION_QUEUE)


async def spent(engine, seconds: float) -> float:
    """Return the seconds of processor time that the server used in this many seconds."""
    before = cpu_seconds(engine.pid)
    await asyncio.sleep(seconds)  # measured time, not a wait
    return cpu_seconds(engine.pid) - before


async def spent_settled(engine, seconds: float, windows: int = 2) -> float:
    """Return the least that the server used in several windows.

    After a burst of starts the server still works off its queues for a few seconds. That ends; what
    agents cost for as long as they wait is in every window.
    """
    return min([await spent(engine, seconds) for _ in range(windows)])


def test_the_cost_of_a_heartbeat(own_engine, tmp_path):
    """Hosts beat and do nothing else; the engine's client counts what it sends."""
    project = Project(tmp_path / "project", own_engine.address)

    async def measure() -> tuple[Beating, float, float, float, int]:
        beating = Beating(BEATING, project.definition.heartbeat_seconds)
        # Agents that start together send together: only whole intervals have as many beats.
        window = max(2 * beating.interval, SECONDS)
        async with beating.working(own_engine.address):
            quiet = await spent(own_engine, window)
            await beating.start()
            beating.take_sent()
            busy = await spent(own_engine, window)
            sent = beating.take_sent()
        return beating, window, quiet, busy, sent

    beating, window, quiet, busy, sent = asyncio.run(measure())
    print(
        f"\n{BEATING} running agents, heartbeat timeout {beating.timeout:g} s: {sent / window:.1f}"
        f" heartbeats/s, {busy / window:.2f} of a core of the server ({quiet / window:.2f} with"
        " none)"
    )
    assert beating.begun == BEATING, "none timed out, none was begun again"
    assert sent == pytest.approx(BEATING * window / beating.interval, rel=0.3)
    # In five seconds the server does as much by itself: with a busy neighbour the figure is chance.
    hold(is_sample=not WHOLE, server_ms_per_beat=1e3 * (busy - quiet) / sent)


def test_the_cost_of_a_waiting_agent(own_engine, tmp_path):
    """It is a row, and memory of a worker until the worker needs it for others."""
    project = Project(tmp_path / "project", own_engine.address)

    async def measure() -> tuple[float, float, float, list[float]]:
        client = await project.connect()
        agents = AgentClient(client)
        async with deciding(client, AgentWorkflow):
            await start(client, project, [f"{client.namespace}/first"])
            quiet = await spent(own_engine, SECONDS)
            sizes: tuple[Callable[[], float], ...] = (
                lambda: own_engine.size,
                lambda: megabytes(own_engine.pid) * 1024,
                lambda: megabytes(os.getpid()) * 1024,
            )
            before = [size() for size in sizes]
            names = [f"{client.namespace}/idle-{number}" for number in range(IDLE)]
            processor = cpu_seconds(own_engine.pid)
            await start(client, project, names)
            shown = 0
            while shown < IDLE:
                shown = len([one async for one in agents.listed() if one.state == "new"]) - 1
            starting = cpu_seconds(own_engine.pid) - processor
            grown = [(size() - was) / IDLE for size, was in zip(sizes, before, strict=True)]
            idle = await spent_settled(own_engine, SECONDS)
        return quiet, idle, starting, grown

    quiet, idle, starting, (database, server, worker) = asyncio.run(measure())
    more = (idle - quiet) / SECONDS
    print(
        f"\n{IDLE} agents that wait: {more:.1%} of a core of the server more than with one;"
        f" their start took {starting:.2f} s of it"
    )
    assert more < WAITING_SHARE * starting
    hold(database_bytes_per_idle_agent=database)
    if WHOLE:  # with a few agents, most of it is the cost of a process
        hold(server_kb_per_idle_agent=server, worker_kb_per_idle_agent=worker)


def test_the_cost_of_a_running_agent_on_its_host(own_engine, tmp_path):
    """It is the memory of a cycle's process and of its worker, without the agent's own."""
    project = Project(tmp_path / "project", own_engine.address)
    (project.path / "agent.py").write_text(WAITS)
    idle_server = megabytes(own_engine.pid)
    worker = project.worker("a", TOGETHER)

    async def running() -> None:
        agents = AgentClient(await project.connect())
        for number in range(TOGETHER):
            name = f"{AGENT}-{number}"
            await begun(agents, name, project.definition_of(name))
            while not (await agents.kept(name)).projection.attempts:
                assert worker.poll() is None
                await asyncio.sleep(0.2)

    try:
        asyncio.run(asyncio.wait_for(running(), 120))
        (nursery,) = [pid for pid in children(worker.pid) if len(children(pid)) >= TOGETHER]
        cycles = [proportional(pid) for pid in children(nursery)]
        own = proportional(worker.pid) + proportional(nursery)
    finally:
        worker.terminate()
        worker.wait(60)
    print(f"\n{len(cycles)} cycles: {[round(one, 1) for one in cycles]} MB")
    hold(mb_per_running_agent=sum(cycles) / TOGETHER, worker_mb=own, server_mb=idle_server)


def proportional(pid: int) -> float:
    """Return its proportional memory in megabytes."""
    found = re.search(r"\nPss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    assert found
    return int(found[1]) / 1024
