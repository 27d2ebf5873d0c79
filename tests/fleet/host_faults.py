"""The faults of hosts, one after the other, while many agents work there."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError

from fleet.audit import told
from fleet.crowd import TIMEOUT, Crowd, Fault, Refusal
from fleet.hosts import Host
from rekindle import config
from rekindle.documents import events
from rekindle.errors import EngineError
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.agent_registry import (
    CommitRequest,
    RegisteredAgent,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

QUERY_SECONDS = 180


class HostFaults:
    """Agents on three hosts behind one address of the engine, and the faults of the hosts."""

    timeout: float = TIMEOUT
    """Seconds without a heartbeat after which a host has lost its agents."""
    patience: float = 20
    """Seconds that a busy machine may need beyond that."""

    def __init__(self, port: int, hosts: dict[str, Host], project: Path, finish: Path) -> None:
        self._port, self._hosts, self._project, self._finish = port, hosts, project, finish
        self._names = list(config.load_project(project).manifest.agents)
        roots = {name: host.root for name, host in hosts.items()}
        self.crowd = Crowd(project.parent / "remote.git", roots)
        self._began = time.monotonic()

    async def _connect(self) -> None:
        """Connect to the engine, and start all hosts."""
        fleet = config.load_project(self._project).settings.fleet
        assert fleet is not None
        self._client = await connect(fleet, self._project, {})
        self._agents = AgentClient(self._client)
        await asyncio.gather(*(asyncio.to_thread(one.start) for one in self._hosts.values()))
        self._say("hosts are up")

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
        fault.at = read_now()
        host.kill()
        assert not host.is_up
        await self._until_taken_over(fault)
        await asyncio.to_thread(host.start)
        fault.over = read_now()
        self._say(f"{host.name} is back")

    async def _freeze(self, host: Host) -> None:
        fault = await self._fault("freeze", host)
        fault.at = read_now()
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
        assert await asyncio.to_thread(host.can_reach, self._port)
        fault.at = read_now()
        host.network.cut()
        assert not await asyncio.to_thread(host.can_reach, self._port)
        await self._until_taken_over(fault)
        host.network.restore()
        assert await asyncio.to_thread(host.can_reach, self._port)
        await self._back(fault, host)

    async def _back(self, fault: Fault, host: Host) -> None:
        """Bring a host back; nothing that ran there before is running."""
        fault.over = read_now()
        self._say(f"{host.name} is back")

        def left() -> list[str]:
            return sorted({one["launch"] for one in host.look()} & set(fault.sessions))

        for _ in range(round(self.timeout * 4)):
            if not (found := await asyncio.to_thread(left)):
                break
            await asyncio.sleep(0.25)
        self.crowd.leftovers.setdefault(fault.what, []).extend(found)
        self._say(f"zombies left on {host.name}: {len(found)}")

    async def _fault(self, what: str, host: Host) -> Fault:
        def found() -> dict[str, dict[str, Any]]:
            return {k: v | {"host": host.name} for k, v in host.sessions().items()}

        deadline = time.monotonic() + 10 + self.patience
        while len(sessions := await asyncio.to_thread(found)) < 3:
            assert time.monotonic() < deadline, f"{host.name} has only {sessions}"
            await asyncio.sleep(0.1)
        fault = Fault(what, host.name, read_now(), sessions)
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

        deadline = time.monotonic() + self.timeout + self.patience
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


def read_now() -> datetime:
    return datetime.now(UTC)
