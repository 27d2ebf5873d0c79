"""Measure the load of running agents on the engine, in its own metrics: `just fleet-load`.

The same number of agents runs twice on one engine at the same time, in two namespaces: with the
product (a real worker and real processes), and with a copy of the scheme of earlier versions. Time
is compressed: all intervals are shorter by the same factor. A write transaction is a write of the
engine to its database, and an action is what Temporal Cloud bills.
"""

import argparse
import asyncio
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from fleet import earlier
from fleet.engine import Engine, free_port
from fleet.pace import AGENT, Project, begun
from fleet.scraped import parse_page, read_page
from rekindle import config
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.brief_times import find_brief_delay
from rekindle.policy.settings.fleet_settings import FleetSettings
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

TIMES = 30.0
"""How much faster than real ones the measured agents are."""
CYCLE_SECONDS = 1_800.0
HOUR = 3_600
DAY = 24 * HOUR
BEFORE, AFTER = "before", "after"
_WRITES = re.compile(r"(Update|Create|Append|Complete|Delete|Add|Set)")
_HOUSEKEEPING = {"CreateTaskQueue", "UpdateTaskQueue", "CompleteTasksLessThan"}
"""Writes for each queue, by the clock: they would count too much in compressed time."""
PUBLISHED_SECONDS = 2.0
"""Time after which the engine's metrics contain all that it has done."""
PROGRAM = """\
import datetime, fcntl, json, os, pathlib, sys, time
sys.stdin.read()
folder = pathlib.Path(os.environ["REKINDLE_FOLDER"])
until, segment = time.monotonic() + float(os.environ["SECONDS"]), None
while time.monotonic() < until:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    report = {"v": 1, "kind": "heartbeat", "ts": now, "call": now, "tool": "Bash"}
    while True:
        if segment is None:
            segment = (folder / f"run/inbox/{time.time_ns():020d}-load.seg").open("ab")
        fcntl.flock(segment, fcntl.LOCK_SH)
        if os.fstat(segment.fileno()).st_nlink:
            break
        segment = None  # it was folded and removed
    os.write(segment.fileno(), f"\\n1 event {json.dumps(report)}\\n".encode())
    fcntl.flock(segment, fcntl.LOCK_UN)
    time.sleep(0.5)
step = len(os.listdir())
pathlib.Path(f"step-{step}").touch()
draft = pathlib.Path(str(folder).replace("/agents/", "/drafts/"), "relay.md")
draft.write_text(f"## Current Phase\\nWork\\n\\n## Next Action\\nDo step {step + 1} of the list\\n")
"""
"""An agent that reports tool calls all the time."""


class Cost(msgspec.Struct, frozen=True):
    """A load on the engine."""

    writes: float
    actions: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.writes - other.writes, self.actions - other.actions)

    def __truediv__(self, count: float) -> "Cost":
        return Cost(self.writes / count, self.actions / count)

    def __str__(self) -> str:
        return f"{self.writes:.1f} write transactions, {self.actions:.1f} actions"


Counts = tuple[Counter[str], Counter[str]]


def count_page(text: str, namespace: str) -> Counts:
    """Return the writes by operation, and the actions by type, of a namespace so far."""
    writes, actions = Counter[str](), Counter[str]()
    for (name, given), value in parse_page(text).items():
        labels = dict(given)
        if labels.get("namespace") != namespace:
            continue
        operation = labels.get("operation", "")
        if name == "action" and operation != "QueryWorkflow":  # our own questions
            actions[labels["action_type"]] += value
        elif name == "persistence_requests" and _WRITES.match(operation):
            writes[operation] += value
    for name in _HOUSEKEEPING:
        writes.pop(name, None)
    return writes, actions


class CountingEngine(Protocol):
    """An engine that counts what it does."""

    @property
    def address(self) -> str: ...

    def count(self, namespace: str) -> Counts:
        """Return the writes by operation, and the actions by type, of a namespace so far."""

    async def cost(self, namespace: str) -> Cost:
        """Return the sum of both when all that it has done is counted."""


class MeasuredEngine(Engine):
    """An engine that counts what it does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, BEFORE, AFTER)
        self._metrics = free_port()

    def _argv(self) -> list[str]:
        return [*super()._argv(), "--metrics-port", str(self._metrics)]

    def count(self, namespace: str) -> Counts:
        return count_page(read_page(f"127.0.0.1:{self._metrics}"), namespace)

    async def cost(self, namespace: str) -> Cost:
        await asyncio.sleep(PUBLISHED_SECONDS)
        writes, actions = self.count(namespace)
        return Cost(sum(writes.values()), sum(actions.values()))


class LoadProject(Project):
    """A project of agents with compressed intervals."""

    def __init__(self, folder: Path, address: str, cycle: float, namespace: str) -> None:
        super().__init__(folder, address, env={"SECONDS": str(cycle / TIMES)})
        self._namespace = namespace
        (folder / "agent.py").write_text(PROGRAM)
        self._write(at="never")

    def _write(self, **brief: Any) -> None:
        path, usual = self.path / "rekindle.yaml", FleetSettings()
        manifest = msgspec.yaml.decode(path.read_bytes())
        manifest["fleet"] |= {
            "namespace": self._namespace,
            "heartbeat_timeout": f"{usual.heartbeat_timeout / TIMES:g}s",
            "fold_seconds": f"{usual.fold_seconds / TIMES:g}s",
        }
        manifest["agents"][AGENT]["cycles"] = 0
        manifest["runtime"] = {"brief": brief}
        manifest["personas"] = {"summarizer": {"adapter": "command", "command": ["false"]}}
        path.write_bytes(msgspec.yaml.encode(manifest))
        self.loaded = config.load_project(self.path)

    def define(self, agent: str, **brief: Any) -> AgentDefinition:
        self._write(**brief)
        return self.definition_of(agent)


class LoadRun:
    """A number of agents on one engine, and as many with the earlier scheme if it has `before`."""

    def __init__(
        self,
        engine: CountingEngine,
        folder: Path,
        agents: int,
        cycle: float,
        *,
        before: str | None = BEFORE,
        after: str = AFTER,
    ) -> None:
        """Prepare the agents in the namespace `after`."""
        self._engine, self._agents, self._cycle = engine, agents, cycle
        self._before, self._after = before, after
        self._project = LoadProject(folder / "project", engine.address, cycle, after)
        self._names = [f"{AGENT}-{number}" for number in range(agents)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[AgentClient]:
        """Run all agents, and yield when each has a session."""
        worker = self._project.worker("load", self._agents)
        try:
            async with AsyncExitStack() as stack:
                agents = AgentClient(await self._project.connect())
                async with asyncio.timeout(240):
                    for name in self._names:
                        await begun(agents, name, self._project.define(name, at="never"))
                    if self._before is not None:
                        await stack.enter_async_context(self._running_before(self._before))
                    for name in self._names:
                        while not (await agents.kept(name)).projection.attempts:
                            assert worker.poll() is None
                            await asyncio.sleep(0.1)
                yield agents
        finally:
            worker.terminate()
            worker.wait(60)

    @asynccontextmanager
    async def _running_before(self, namespace: str) -> AsyncIterator[None]:
        """Run as many agents with the earlier scheme, and yield when each has a session."""
        client = await Client.connect(
            self._engine.address, namespace=namespace, data_converter=make_data_converter(())
        )
        host = earlier.EarlierHost(client)
        running = Worker(
            client,
            task_queue=earlier.QUEUE,
            workflows=[earlier.EarlierWorkflow],
            activities=[host.cycle],
            max_concurrent_activities=self._agents,
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_heartbeat_throttle_interval=timedelta(seconds=0.1),
            default_heartbeat_throttle_interval=timedelta(seconds=0.1),
        )
        async with running:
            for name in self._names:
                await client.start_workflow(
                    earlier.EarlierWorkflow.run,
                    args=[self._cycle, TIMES],
                    id=name,
                    task_queue=earlier.QUEUE,
                )
            while host.running < self._agents:  # noqa: ASYNC110 - of another program
                await asyncio.sleep(0.1)
            yield
            for name in self._names:
                await client.get_workflow_handle(name).terminate()

    async def measure(self, hours: float) -> list[Cost]:
        """Return the load of an agent-hour in each namespace, measured for this many hours."""
        names = [name for name in (self._before, self._after) if name is not None]
        await asyncio.sleep(PUBLISHED_SECONDS)
        start = [self._engine.count(name) for name in names]
        await asyncio.sleep(hours * HOUR / TIMES)  # the measured time
        costs = []
        for name, (writes, actions) in zip(names, start, strict=True):
            now_writes, now_actions = self._engine.count(name)
            shares = hours * self._agents
            for kind, counted in (
                ("writes", now_writes - writes),
                ("actions", now_actions - actions),
            ):
                each = ", ".join(
                    f"{key} {value / shares:.1f}" for key, value in counted.most_common(6)
                )
                print(f"  {name}, {kind} per agent-hour: {each}")
            costs.append(
                Cost((now_writes - writes).total(), (now_actions - actions).total()) / shares
            )
        return costs

    async def measure_brief(self, agents: AgentClient) -> Cost:
        """Return the load of a brief that an agent's own timer asks for. No agent runs."""
        for name in self._names:
            known = (await agents.kept(name)).projection.run
            await agents.say(name, runs.make_desired_event(known, "stopped", clock.read_clock()))
        await self._until(agents, lambda kept: kept.lease is None)
        # The hour must be a full minute after the first launch and before now.
        began = [min(await self._read_starts(agents, name)) for name in self._names]
        hour = max(began).replace(second=0, microsecond=0) + timedelta(minutes=1)
        await asyncio.sleep(max(0.0, (hour - datetime.now(UTC)).total_seconds()))
        start = await self._engine.cost(self._after)
        for name in self._names:
            await agents.define(name, self._project.define(name, at="never", max_tokens=500))
        defined = await self._engine.cost(self._after)
        for name in self._names:
            await agents.define(name, self._project.define(name, at=f"{hour:%H:%M}", zone="UTC"))
        await self._until(
            agents, lambda kept: kept.projection.briefed.closed.morning and kept.lease is None
        )
        return (await self._engine.cost(self._after) - defined - (defined - start)) / self._agents

    async def _until(self, agents: AgentClient, holds: Any) -> None:
        async with asyncio.timeout(240):
            for name in self._names:
                while not holds(await agents.kept(name)):  # noqa: ASYNC110 - of another program
                    await asyncio.sleep(0.5)

    async def _read_starts(self, agents: AgentClient, name: str) -> list[datetime]:
        launches = (await agents.kept(name)).projection.attempts.values()
        return [launch.began for launch in launches if launch.began]


def simulate_day(agents: int, share: float, running: float, brief: float) -> tuple[float, float]:
    """Return the mean and the peak of a day's write transactions per second, by minute.

    All agents have worked and have the same brief hour. `share` of them run all day, and cost
    `running` transactions per hour; each brief costs `brief`. Only the moments of the briefs are
    simulated, with the function that the product uses.
    """
    minutes = [0] * (DAY // 60)
    for number in range(agents):
        delay = find_brief_delay(f"default/agent-{number}", agents)
        minutes[int(delay.total_seconds()) // 60] += 1
    background = agents * share * running / HOUR
    loads = [background + count * brief / 60 for count in minutes]
    return math.fsum(loads) / len(loads), max(loads)


async def measure(folder: Path, agents: int, hours: float) -> None:
    with MeasuredEngine(folder) as engine:
        run = LoadRun(engine, folder, agents, CYCLE_SECONDS)
        async with run.running() as client:
            before, after = await run.measure(hours)
            brief = await run.measure_brief(client)
    print(f"{agents} running agents on one host, cycles of {CYCLE_SECONDS / 60:g} minutes")
    print(f"before, per agent-hour: {before}")
    print(f"after, per agent-hour:  {after}")
    writes, actions = after.writes / before.writes, after.actions / before.actions
    print(f"ratio: {writes:.3f} of the write transactions, {actions:.3f} of the actions")
    print(f"a brief: {brief}")
    for count in (1_000, 10_000):
        mean, peak = simulate_day(count, 0.2, after.writes, brief.writes)
        print(f"{count:,} agents, simulated day: mean {mean:.2f}/s, peak {peak:.2f}/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--hours", type=float, default=1.0, help="simulated hours per agent")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), given.agents, given.hours))


if __name__ == "__main__":
    sys.exit(main())
