"""A worker that is killed leaves nothing running: another host has its agents soon."""

import asyncio
import time
from pathlib import Path

from fleet.apart import children
from fleet.pace import AGENT, Project, begun
from rekindle.fleet.engine.agent_client import AgentClient

WAITS = "import time; time.sleep(600)\n"
SECONDS = 10


def test_a_session_ends_with_the_worker_that_was_killed(own_engine, tmp_path):
    """Neither the cycle's process nor the agent keeps running, even if no one stops them."""
    project = Project(tmp_path / "project", own_engine.address)
    (project.path / "agent.py").write_text(WAITS)
    worker = project.worker("a", 1)

    async def running() -> None:
        agents = AgentClient(await project.connect())
        await begun(agents, AGENT, project.definition)
        while not (await agents.kept(AGENT)).projection.attempts:
            assert worker.poll() is None
            await asyncio.sleep(0.1)

    try:
        asyncio.run(asyncio.wait_for(running(), 60))
        cycles = [pid for own in children(worker.pid) for pid in children(own)]
        deadline = time.monotonic() + SECONDS
        while not (agents := [pid for own in cycles for pid in children(own)]):
            assert time.monotonic() < deadline, "the agent was not started"
            time.sleep(0.05)
        worker.kill()
        left = {*cycles, *agents}
        deadline = time.monotonic() + SECONDS
        while left := {pid for pid in left if Path(f"/proc/{pid}").exists()}:
            assert time.monotonic() < deadline, f"{left} go on"
            time.sleep(0.05)
    finally:
        worker.close()
    assert len(cycles) == len(agents) == 1
