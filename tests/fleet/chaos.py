"""All faults of three hosts, one after the other, while thirty agents work there."""

import asyncio
import contextlib
import socket
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError

from fleet.audit import told
from fleet.crowd import NEW_BUILD, TIMEOUT, Crowd, Fault, Refusal
from fleet.engine import Engine
from fleet.hosts import Host
from rekindle import config
from rekindle.documents import events
from rekindle.errors import EngineError
from rekindle.fleet.agent.host_orders import make_host_queue
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands import deploy_build
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine import deployments
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.agent_registry import (
    CommitRequest,
    RegisteredAgent,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

QUERY_SECONDS = 60


class Chaos:
    """The run: one fault after the other, while all agents work."""

    def __init__(
        self, engine: Engine, hosts: dict[str, Host], project: Path, finish: Path, build: Path
    ) -> None:
        self._engine, self._hosts, self._project = engine, hosts, project
        self._finish, self._build = finish, build
        self._names = list(config.load_project(project).manifest.agents)
        roots = {name: host.root for name, host in hosts.items()}
        self.crowd = Crowd(project.parent / "remote.git", roots)
        self._began = time.monotonic()

    async def run(self) -> Crowd:
        fleet = config.load_project(self._project).settings.fleet
        assert fleet is not None
        self._client = await connect(fleet, self._project, {})
        self._agents = AgentClient(self._client)
        await asyncio.gather(*(asyncio.to_thread(one.start) for one in self._hosts.values()))
        self._say("hosts are up")
        await self._begin()
        x, y, z = self._hosts.values()
        await self._until_all(
            "all have a cycle behind them", lambda one: one.projection.cycle_ended >= 1, 180
        )
        await self._kill(x)
        await self._freeze(y)
        await self._cut(z)
        await self._kill_engine()
        await self._until(self._has_a_survivor_ended, 180)
        for host in (x, y, z):
            await self._roll(host)
            # Agents whose sessions end with the other hosts move to the new build by themselves.
            if host is not y:
                await deploy_build.deploy(self._client, NEW_BUILD, moves=host is z)
                self._say("the new build is current")
        given = await self._leases()
        # Only the new build is running by now, so every lease belongs to it.
        await self._until(lambda: self._are_leased_since(given), 180)
        self._finish.touch()
        self._say("finish")
        await self._until_all("all runs are over", lambda one: one.projection.run.is_over, 180)
        await self._gather()
        await self._try_as_zombies()
        self.crowd.seconds = time.monotonic() - self._began
        self._say("over")
        return self.crowd

    async def _begin(self) -> None:
        project = config.load_project(self._project)
        fleet = project.settings.fleet
        assert fleet is not None
        for name in self._names:
            await self._agents.begin(name, define_agent(project, fleet, name))
        running = runs.make_desired_event(runs.RunState(), "running", clock.read_clock())
        await asyncio.gather(*(self._command(name, running) for name in self._names))
        self._say("agents have begun")

    async def _command(self, name: str, record: events.Event) -> None:
        """Send a command again if the workers are too busy to answer in time, as an operator."""
        for _ in range(2):
            with contextlib.suppress(EngineError):
                await self._agents.say(name, record)
                return
        await self._agents.say(name, record)

    async def _kill(self, host: Host) -> None:
        fault = await self._fault("kill -9", host)
        fault.at = _now()
        host.kill()
        assert not host.is_up
        await self._until_taken_over(fault)
        await asyncio.to_thread(host.start)
        fault.over = _now()
        self._say(f"{host.name} is back")

    async def _freeze(self, host: Host) -> None:
        fault = await self._fault("freeze", host)
        fault.at = _now()
        frozen = await asyncio.to_thread(host.freeze)
        assert frozen
        assert {one["state"] for one in frozen} <= {"T", "D"}
        fault.sessions = {one["launch"]: one for one in frozen if one["launch"]}
        await self._until_taken_over(fault)
        assert {one["state"] for one in host.look()} <= {"T", "D"}
        await asyncio.to_thread(host.wake)
        await self._back(fault, host)

    async def _cut(self, host: Host) -> None:
        fault = await self._fault("network cut", host)
        assert await asyncio.to_thread(host.can_reach, self._engine.port)
        fault.at = _now()
        host.network.cut()
        assert not await asyncio.to_thread(host.can_reach, self._engine.port)
        await self._until_taken_over(fault)
        host.network.restore()
        assert await asyncio.to_thread(host.can_reach, self._engine.port)
        await self._back(fault, host)

    async def _back(self, fault: Fault, host: Host) -> None:
        """Bring a host back; nothing that ran there before is running."""
        fault.over = _now()
        self._say(f"{host.name} is back")

        def left() -> list[str]:
            return sorted({one["launch"] for one in host.look()} & set(fault.sessions))

        for _ in range(TIMEOUT * 4):
            if not (found := await asyncio.to_thread(left)):
                break
            await asyncio.sleep(0.25)
        self.crowd.leftovers[fault.what] = found
        self._say(f"zombies left on {host.name}: {len(found)}")

    async def _kill_engine(self) -> None:
        await self._until(self._is_all_busy, 30)
        before = await self._sessions()
        pid, began = self._engine.pid, time.monotonic()
        fault = Fault("engine kill -9", "", _now(), before)
        self.crowd.faults.append(fault)
        self._engine.kill()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self._engine.port))
        self._engine.start()
        assert self._engine.pid != pid
        self.crowd.engine_away = time.monotonic() - began
        after = await self._sessions()
        same = {
            launch: one
            for launch, one in before.items()
            if (found := after.get(launch))
            and (found["pid"], found["began"]) == (one["pid"], one["began"])
        }
        self.crowd.survivors = same
        self._say(f"engine was away {self.crowd.engine_away:.1f} s, {len(same)} sessions go on")
        fault.over = _now()

    async def _roll(self, host: Host) -> None:
        assert await asyncio.to_thread(host.stop) == 0, host.said
        self._say(f"{host.name} has ended")
        await asyncio.to_thread(host.start, self._build)
        self.crowd.rolled[host.name] = _now()
        await self._until(lambda: self._polls(host, NEW_BUILD), 120)
        self._say(f"{host.name} has the new build")

    async def _polls(self, host: Host, build: str) -> bool:
        """Return whether the engine has heard from a worker of this build on this host."""
        asked = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=make_host_queue(host.name)),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        found = await self._client.workflow_service.describe_task_queue(asked)
        if not any(one.identity.startswith(f"rekindle {build} ") for one in found.pollers):
            return False
        # The part of the worker that decides polls another queue, and can be heard later.
        known = (await deployments.read_builds(self._client)).find(build)
        return known is not None and known.workers > 0

    async def _fault(self, what: str, host: Host) -> Fault:
        def found() -> dict[str, dict[str, Any]]:
            return {k: v | {"host": host.name} for k, v in host.sessions().items()}

        deadline = time.monotonic() + 30
        while len(sessions := await asyncio.to_thread(found)) < 3:
            assert time.monotonic() < deadline, f"{host.name} has only {sessions}"
            await asyncio.sleep(0.1)
        fault = Fault(what, host.name, _now(), sessions)
        self.crowd.faults.append(fault)
        self._say(f"{what}: {host.name}, where {len(sessions)} sessions run")
        return fault

    async def _until_taken_over(self, fault: Fault) -> None:
        """Wait until another host has taken over each agent whose session ran there."""
        waiting = {one["agent"] for one in fault.sessions.values()}

        async def has_moved(name: str) -> bool:
            found = await told(self._client, name)
            lost = found.held_at(fault.at, fault.host)
            return lost is None or found.next_after(lost) is not None

        deadline = time.monotonic() + TIMEOUT + 20
        while waiting:
            assert time.monotonic() < deadline, f"{fault.what}: no host takes {waiting}"
            moved = await asyncio.gather(*(has_moved(name) for name in sorted(waiting)))
            waiting -= {name for name, has in zip(sorted(waiting), moved, strict=True) if has}
            await asyncio.sleep(0.5)
        self._say(f"{fault.what}: all were taken over")

    async def _sessions(self) -> dict[str, dict[str, Any]]:
        found = {}
        for host in self._hosts.values():
            for launch, one in (await asyncio.to_thread(host.sessions)).items():
                found[launch] = one | {"host": host.name}
        return found

    async def _is_all_busy(self) -> bool:
        return len(await self._sessions()) >= len(self._names) // 3

    async def _has_a_survivor_ended(self) -> bool:
        """Return whether a session ended by itself, before the next fault."""
        for name in self._names:
            tried = (await self._kept(name)).projection.attempts
            if any(tried[one].exit == "clean" for one in self.crowd.survivors if one in tried):
                return True
        return False

    async def _leases(self) -> dict[str, int]:
        return {name: (await self._kept(name)).generation for name in self._names}

    async def _are_leased_since(self, given: dict[str, int]) -> bool:
        """Return whether enough of them were leased to see their hosts."""
        now = await self._leases()
        return sum(now[name] > given[name] for name in self._names) >= len(self._hosts)

    async def _until_all(
        self, words: str, wanted: Callable[[RegisteredAgent], bool], seconds: float
    ) -> None:
        """Wait for each agent in turn: asking for all at once would slow the hosts down."""
        deadline = time.monotonic() + seconds
        for name in self._names:
            while not wanted(kept := await self._kept(name)):
                stands = f"{name} on {kept.host} after cycle {kept.projection.cycle_ended}"
                assert time.monotonic() < deadline, f"{stands}: {kept.projection.run}"
                await asyncio.sleep(0.3)
        self._say(words)

    async def _kept(self, name: str) -> RegisteredAgent:
        """Return what the engine knows of an agent.

        On a busy machine, the SDK may give up a workflow task that takes two seconds. Until the
        engine has repeated it, no query is answered.
        """
        deadline = time.monotonic() + QUERY_SECONDS
        while True:
            try:
                return await self._agents.kept(name)
            except EngineError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)

    async def _gather(self) -> None:
        for name in self._names:
            self.crowd.kept[name] = await self._kept(name)
            self.crowd.told[name] = await told(self._client, name)

    async def _try_as_zombies(self) -> None:
        """Repeat a commit with each lease that a fault has ended."""
        for fault in self.crowd.faults:
            for name, found in self.crowd.told.items():
                lost = found.held_at(fault.at, fault.host)
                if lost is None:
                    continue
                answer = await self._commit(self._client, name, lost.generation)
                self.crowd.refusals.append(Refusal(fault.what, name, answer))
        settings = self._client.config() | {"namespace": "temporal-system"}
        name, found = next(iter(self.crowd.told.items()))
        self.crowd.elsewhere = await self._commit(
            Client(**settings), name, found.leases[-1].generation
        )

    async def _commit(self, client: Client, name: str, generation: int) -> str:
        line = events.render(events.CycleEnded(ts=clock.read_clock(), cycle=99)).decode()
        late = CommitRequest(id=uuid.uuid4().hex, generation=generation, known=1, lines=(line,))
        handle = client.get_workflow_handle_for(AgentWorkflow.run, f"default/{name}")
        try:
            await handle.execute_update(AgentWorkflow.commit, late)
        except WorkflowUpdateFailedError as refused:
            return getattr(refused.cause, "type", "") or str(refused.cause)
        except RPCError as failed:
            return failed.status.name
        return "let in"

    async def _until(self, found: Callable[[], Any], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not await found():
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.5)

    def _say(self, words: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {words}", flush=True)


def _now() -> datetime:
    return datetime.now(UTC)
