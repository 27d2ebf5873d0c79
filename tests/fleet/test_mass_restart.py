"""All hosts of a fleet are killed at once in the middle of many cycles, and start again."""

import asyncio
import time

import pytest

from fleet.pace import Project, begun
from rekindle.fleet.engine import host_list
from rekindle.fleet.engine.agent_client import AgentClient
from sampling import WHOLE

AGENTS, HOSTS = 200 if WHOLE else 60, 2
WAITS = "import time; time.sleep(3600)\n"
SECONDS = 900


@pytest.mark.torture
@pytest.mark.timeout(3 * SECONDS)
def test_a_restart_of_all_hosts_settles(own_engine, tmp_path):
    """Every agent runs again, none in safe mode; the time is printed."""
    project = Project(tmp_path / "project", own_engine.address)
    (project.path / "agent.py").write_text(WAITS)
    names = [f"a{number:03}" for number in range(AGENTS)]

    def start() -> list:
        return [project.worker(f"host-{number}", AGENTS // HOSTS) for number in range(HOSTS)]

    async def play() -> tuple[float, float]:
        agents = AgentClient(await project.connect())
        for name in names:
            await begun(agents, name, project.definition_of(name))
        first = await until_running(agents)
        for worker in workers:
            worker.kill()
        at = time.monotonic()
        for worker in workers:
            worker.wait(60)
            worker.close()
        workers[:] = await asyncio.to_thread(start)
        up = time.monotonic()
        print(f"\n{AGENTS} agents ran after {first:.0f} s; hosts back after {up - at:.0f} s")
        settled = await until_running(agents)
        assert "safe" not in await host_list.count_agents(agents.client)
        return up - at, settled

    async def running(agents: AgentClient) -> list[str]:
        found = await host_list.list_hosts(agents.client)
        return [name for one in found for name in one.agents]

    async def until_running(agents: AgentClient) -> float:
        began = time.monotonic()
        async with asyncio.timeout(SECONDS):
            while len(set(await running(agents))) < AGENTS:  # noqa: ASYNC110 - of other programs
                await asyncio.sleep(0.5)
        return time.monotonic() - began

    workers = start()
    try:
        away, settled = asyncio.run(asyncio.wait_for(play(), 2 * SECONDS))
    finally:
        for worker in workers:
            worker.close()
    print(f"all hosts were back after {away:.0f} s, and all agents ran {settled:.0f} s later")
