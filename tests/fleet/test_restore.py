"""The engine loses its memory, or refuses to answer: sessions end in time, and agents run again.

The drill of docs/guides/fleet.md: the engine's database is replaced by an older copy of it, while
an agent works under a lease that the copy does not know.
"""

import asyncio
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError

from fleet.apart import Apart
from fleet.crowd import git, snapshots
from fleet.engine import Engine
from fleet.pace import begun
from fleet.working import Place, worker
from rekindle import config
from rekindle.errors import EngineError
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.agent_registry import CommitRequest, RegisteredAgent

AGENT = "trades"
TIMEOUT = 5
RUNS_AGAIN_SECONDS = 30
"""Bar for the time from the engine's return until a new session runs."""
SLACK = 4
"""How much longer a busy machine may take. The figures are printed."""


class Drill:
    def __init__(self, engine: Engine, place: Place) -> None:
        self.engine, self.place = engine, place
        self.agents: AgentClient

    async def begin(self) -> None:
        project = config.load_project(self.place.project)
        fleet = project.settings.fleet
        assert fleet is not None
        self.agents = AgentClient(await connect(fleet, self.place.project, {}))
        await begun(self.agents, AGENT, define_agent(project, fleet, AGENT))

    async def count_events(self) -> int:
        """Return the length of the history that the engine has; a worker may remember more."""
        handle = self.agents.client.get_workflow_handle(f"default/{AGENT}")
        return (await handle.describe()).history_length

    async def use_namespace(self) -> None:
        """Use up the requests that a throttled namespace may make, as other clients would."""
        while True:
            with suppress(RPCError):
                await self.count_events()
            await asyncio.sleep(0.02)

    async def until(self, holds, seconds: float = 120) -> RegisteredAgent:
        async with asyncio.timeout(seconds):
            while True:
                with suppress(EngineError):  # no worker polls again yet
                    kept = await self.agents.kept(AGENT)
                    if holds(kept):
                        return kept
                await asyncio.sleep(0.1)

    async def until_running(self, *, cycle: int, besides: Collection[str] = ()) -> RegisteredAgent:
        """Wait for a session of this cycle or a later one, which is none of the given launches."""

        def runs(kept: RegisteredAgent) -> bool:
            known = kept.projection
            open_ones = {mark for mark, one in known.attempts.items() if not one.exit}
            return known.cycle >= cycle and bool(open_ones - set(besides))

        return await self.until(runs)

    @property
    def sessions(self) -> set[int]:
        """Return the running agent programs, by their work folder."""
        found = set()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.place.project / "agent.py").encode() in words:
                found.add(int(folder.name))
        return found

    def wait_for_session(self) -> set[int]:
        """Return the processes of the session that was just recorded."""
        deadline = time.monotonic() + 60
        while not (found := self.sessions):
            assert time.monotonic() < deadline, "no session"
            time.sleep(0.05)
        return found

    def until_ended(self, sessions: set[int], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while left := sessions & self.sessions:
            assert time.monotonic() < deadline, f"{left} still run"
            time.sleep(0.05)


@pytest.fixture
def drill(own_engine: Engine, tmp_path: Path) -> Drill:
    place = Place(tmp_path, AGENT)
    fleet = f"fleet: {{address: '{own_engine.address}', heartbeat_timeout: {TIMEOUT}s}}\n"
    place.say(fleet)
    manifest = place.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("cycles: 2", "cycles: 50"))
    return Drill(own_engine, place)


@contextmanager
def host(drill: Drill, name: str) -> Iterator[Apart]:
    root = drill.place.project.parent / f"host-{name}"
    with worker(drill.place.project, root, name) as running:
        yield running


async def run_cycles(drill: Drill, count: int) -> RegisteredAgent:
    """Let the agent finish this many cycles, and hold it in the next one."""
    ended = (await drill.agents.kept(AGENT)).projection.cycle_ended
    drill.place.hold.unlink()
    await drill.until(lambda kept: kept.projection.cycle_ended >= ended + count)
    drill.place.hold.touch()
    return await drill.until_running(cycle=ended + count + 1)


def test_a_restored_engine_accepts_no_generation_twice(drill, tmp_path):
    """The session that the engine forgot ends in time, and its work is continued."""
    backup = tmp_path / "backup.db"
    drill.place.hold.touch()

    async def play() -> None:
        with host(drill, "a"):
            await drill.begin()
            first = await drill.until_running(cycle=1)
            drill.engine.stop()
            shutil.copy(drill.engine.database, backup)
            drill.engine.start()
            before = await run_cycles(drill, 3)
            lost = {*first.projection.attempts, *before.projection.attempts}
            sessions, written = drill.wait_for_session(), len(snapshots(drill.place.remote, AGENT))
            known = await drill.count_events()
            assert before.generation >= 4

            drill.engine.kill()
            cut = time.monotonic()
            for file in drill.engine.database.parent.glob(f"{drill.engine.database.name}*"):
                file.unlink()
            shutil.copy(backup, drill.engine.database)
            drill.engine.start()
            back = time.monotonic()
            assert await drill.count_events() < known, "it forgot nothing"
            await asyncio.to_thread(drill.until_ended, sessions, TIMEOUT * SLACK)
            ended = time.monotonic() - cut
            after = await drill.until_running(cycle=1, besides=lost)
            runs = time.monotonic() - back
            print(
                f"\nsession ended {ended:.1f} s after the cut, agent runs again after {runs:.1f} s"
            )
            assert runs < RUNS_AGAIN_SECONDS * SLACK
            assert after.generation > before.generation
            assert not after.projection.run.is_safe
            await refuse_zombie(drill.agents.client, before)
            drill.place.hold.unlink()
            await drill.until(lambda kept: kept.projection.cycle_ended >= 2)
        made = [one.generation for one in snapshots(drill.place.remote, AGENT)]
        assert made == sorted(made)
        assert len(made) > written
        # The forgotten cycles' work is still in the workspace.
        files = git("ls-tree", "--name-only", f"rekindle/{AGENT}/work", cwd=drill.place.remote)
        assert {"step-1", "step-2", "step-3"} <= set(files.split())

    asyncio.run(asyncio.wait_for(play(), 280))


async def refuse_zombie(client: Client, before: RegisteredAgent) -> None:
    assert before.lease is not None
    handle = client.get_workflow_handle_for(AgentWorkflow.run, f"default/{AGENT}")
    late = CommitRequest(
        id="late", generation=before.generation, lease=before.lease.id, known=before.projection.seq
    )
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(AgentWorkflow.commit, late)
    assert refused.value.cause.type == "Fenced"


def test_a_throttled_namespace_ends_sessions_in_time(drill):
    """The engine is up, but refuses the host's heartbeats. Later the agent runs again."""
    drill.place.hold.touch()

    async def play() -> None:
        with host(drill, "a"):
            await drill.begin()
            before = await drill.until_running(cycle=1)
            lost = set(before.projection.attempts)
            sessions = drill.wait_for_session()
            drill.engine.stop()
            drill.engine.settings = ["frontend.namespaceRPS=1", "frontend.globalNamespaceRPS=1"]
            drill.engine.start()
            cut = time.monotonic()
            others = [asyncio.create_task(drill.use_namespace()) for _ in range(8)]
            await asyncio.to_thread(drill.until_ended, sessions, TIMEOUT * SLACK)
            ended = time.monotonic() - cut
            for other in others:
                other.cancel()
            drill.engine.stop()
            drill.engine.settings = []
            drill.engine.start()
            back = time.monotonic()
            after = await drill.until_running(cycle=1, besides=lost)
            runs = time.monotonic() - back
            print(
                f"\nsession ended {ended:.1f} s after the cut, agent runs again after {runs:.1f} s"
            )
            assert runs < RUNS_AGAIN_SECONDS * SLACK
            assert after.generation > before.generation
            assert not after.projection.run.is_safe

    asyncio.run(asyncio.wait_for(play(), 280))
