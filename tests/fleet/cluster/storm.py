"""All faults of a cluster and of its three hosts, one after the other, while agents work."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.client import (
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

from fleet.cluster.cluster import Cluster
from fleet.cluster.fault_list import ClusterFault
from fleet.cluster.fault_table import Measured
from fleet.crowd import Fault
from fleet.host_faults import HostFaults, read_now
from fleet.hosts import Host
from fleet.invariants import Violation, find_lost_work, find_violations
from rekindle.documents import events
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

HEARTBEAT_SECONDS = 20
"""Longer than the failover of a service takes on a busy machine, as the default is."""
FEWEST = 3
"""The number of agents that must be running when a fault begins."""
HOST_KILLED = "host killed"
HOST_FROZEN = "host frozen"
HOST_CUT = "host cut off"
_TRY_SECONDS = 10.0
_RECOVERY_SECONDS = 300.0
_Sessions = dict[str, dict[str, Any]]


class Storm(HostFaults):
    timeout = HEARTBEAT_SECONDS
    patience = 150

    def __init__(
        self, cluster: Cluster, hosts: dict[str, Host], project: Path, finish: Path
    ) -> None:
        super().__init__(cluster.port, hosts, project, finish)
        self._cluster = cluster
        self._measured: list[tuple[Measured, Fault, _Sessions]] = []
        self.violations: list[Violation] = []
        self.lost_work: list[str] = []
        self.failure = ""
        """Why the run ended early, such as a fault that did not happen; empty if it did not."""

    async def run_storm(
        self, faults: Sequence[ClusterFault], host_faults: Sequence[str], repeats: int
    ) -> list[Measured]:
        """Cause all faults, `repeats` times; return what was measured before the first failure."""
        try:
            await self._cause_all(faults, host_faults, repeats)
            return self._judge()
        except (AssertionError, TimeoutError) as failed:
            self.failure = f"{type(failed).__name__}: {failed}"
            return [measured for measured, _, _ in self._measured]

    async def _cause_all(
        self, faults: Sequence[ClusterFault], host_faults: Sequence[str], repeats: int
    ) -> None:
        await self._connect()
        await self._begin()
        done = "all have a cycle behind them"
        await self._until_all(done, lambda one: one.projection.cycle_ended >= 1, 600)
        hosts = list(self._hosts.values())
        for number in range(repeats):
            for fault in faults:
                await self._play(fault)
            for place, what in enumerate(host_faults):
                await self._lose(what, hosts[(number + place) % len(hosts)])
        self._finish.touch()
        self._say("finish")
        await self._until_all("all runs are over", lambda one: one.projection.run.is_over, 600)
        await self._gather()
        await self._try_as_zombies()
        self.crowd.seconds = time.monotonic() - self._began

    async def _play(self, fault: ClusterFault) -> None:
        """Cause a fault of the cluster, and wait until every agent's workflow takes commands."""
        before = await self._enough_sessions()
        self._say(f"{fault.what}: {fault.target}, {len(before)} sessions run")
        agents = sorted({one["agent"] for one in before.values()})
        record = Fault(fault.what, "", read_now(), before)
        self.crowd.faults.append(record)
        began = time.monotonic()
        await asyncio.to_thread(fault.begin)
        self._say(f"{fault.what}: it has begun")
        if fault.is_outage:
            await asyncio.sleep(fault.seconds)
            began = await self._end(fault)
            settling = asyncio.create_task(asyncio.to_thread(fault.settle))
            recovered = await self._recover(agents, began)
            await settling
        else:
            recovered = await self._recover(agents, began)
            await asyncio.sleep(max(0.0, fault.seconds - (time.monotonic() - began)))
            await self._end(fault)
            await asyncio.to_thread(fault.settle)
        record.over = read_now()
        # The next fault must not meet a cluster that is still busy with this one.
        await self._recover(self._names, time.monotonic())
        since = "end" if fault.is_outage else "begin"
        measured = Measured(fault.what, fault.target, len(before), recovered, since)
        self._measured.append((measured, record, await self._sessions()))
        self._say(f"{fault.what}: all recovered after {max(recovered):.1f} s from its {since}")

    async def _end(self, fault: ClusterFault) -> float:
        """End a fault that still lasts; return the time just before."""
        assert await asyncio.to_thread(fault.lasts), f"{fault.what}: it ended by itself"
        ended = time.monotonic()
        await asyncio.to_thread(fault.end)
        self._say(f"{fault.what}: it is over")
        return ended

    async def _lose(self, what: str, host: Host) -> None:
        """Cause a fault of a host, as the suite on the development server does."""
        running = len(await self._enough_sessions())
        causes = {HOST_KILLED: self._kill, HOST_FROZEN: self._freeze, HOST_CUT: self._cut}
        await causes[what](host)
        measured = Measured(what, host.name, running, [], "begin")
        self._measured.append((measured, self.crowd.faults[-1], {}))

    async def _enough_sessions(self) -> _Sessions:
        deadline = time.monotonic() + _RECOVERY_SECONDS
        while len(found := await self._sessions()) < max(FEWEST, len(self._names) // 3):
            assert time.monotonic() < deadline, f"only {sorted(found)} run"
            await asyncio.sleep(0.3)
        return found

    async def _recover(self, names: Sequence[str], began: float) -> list[float]:
        """Return the seconds until the workflow of each agent has accepted a command."""
        return await asyncio.gather(*(self._accepts(name, began) for name in names))

    async def _accepts(self, name: str, began: float) -> float:
        """Repeat a command that changes nothing until the agent's workflow has recorded it."""
        handle = self._client.get_workflow_handle_for(AgentWorkflow.run, f"default/{name}")
        while True:
            record = runs.make_desired_event(runs.RunState(), "running", clock.read_clock())
            line = events.render(record).decode()
            with contextlib.suppress(
                RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
            ):
                most = timedelta(seconds=_TRY_SECONDS)
                await handle.execute_update(AgentWorkflow.say, [line], rpc_timeout=most)
                return time.monotonic() - began
            assert time.monotonic() - began < _RECOVERY_SECONDS, f"{name} takes no command"
            await asyncio.sleep(0.25)

    def _judge(self) -> list[Measured]:
        """Complete what was measured with the facts of the histories."""
        crowd = self.crowd
        self.violations = [one for told in crowd.told.values() for one in find_violations(told)]
        self.lost_work = [one for name in crowd.told for one in find_lost_work(crowd, name)]
        ended = (one for told in crowd.told.values() for one in told.of("launch.ended"))
        exits = {one["launch"]: one["exit"] for one in ended}
        starts = [fault.at for fault in crowd.faults]
        for number, (measured, fault, after) in enumerate(self._measured):
            until = starts[number + 1] if number + 1 < len(starts) else None
            measured.violations = _count_between(self.violations, fault.at, until)
            if fault.host:
                measured.seconds = list(crowd.takeovers(fault).values())
                assert len(measured.seconds) >= FEWEST, f"{fault.what}: {measured.seconds}"
                continue  # the sessions of a lost host end with it
            measured.sessions = len(fault.sessions)
            measured.interrupted = [
                f"{one['agent']}: {exits.get(launch, 'no end')}"
                for launch, one in fault.sessions.items()
                if exits.get(launch) != "clean" and not _is_same(one, after.get(launch))
            ]
            measured.continued = measured.sessions - len(measured.interrupted)
        return [measured for measured, _, _ in self._measured]


def _is_same(one: dict[str, Any], later: dict[str, Any] | None) -> bool:
    """Return whether a session is the same process as before."""
    return later is not None and (later["pid"], later["began"]) == (one["pid"], one["began"])


def _count_between(
    violations: Sequence[Violation], start: datetime, until: datetime | None
) -> dict[str, int]:
    counted: dict[str, int] = {}
    for one in violations:
        if start <= one.at and (until is None or one.at < until):
            counted[one.kind] = counted.get(one.kind, 0) + 1
    return counted
