"""All faults of three hosts, one after the other, while thirty agents work there."""

import asyncio
import socket
import time
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

from fleet.crowd import NEW_BUILD, Crowd, Fault
from fleet.engine import Engine
from fleet.host_faults import HostFaults, read_now
from fleet.hosts import Host
from rekindle.fleet.agent.host_orders import make_host_queue
from rekindle.fleet.commands import deploy_build
from rekindle.fleet.engine import deployments


class Chaos(HostFaults):
    """The run: one fault after the other, while all agents work."""

    def __init__(
        self, engine: Engine, hosts: dict[str, Host], project: Path, finish: Path, build: Path
    ) -> None:
        super().__init__(engine.port, hosts, project, finish)
        self._engine, self._build = engine, build

    async def run(self) -> Crowd:
        await self._connect()
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

    async def _kill_engine(self) -> None:
        await self._until(self._is_all_busy, 30)
        before = await self._sessions()
        pid, began = self._engine.pid, time.monotonic()
        fault = Fault("engine kill -9", "", read_now(), before)
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
        fault.over = read_now()

    async def _roll(self, host: Host) -> None:
        assert await asyncio.to_thread(host.stop) == 0, host.said
        self._say(f"{host.name} has ended")
        await asyncio.to_thread(host.start, self._build)
        self.crowd.rolled[host.name] = read_now()
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
