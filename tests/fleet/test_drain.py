"""Hosts are restarted one after the other, and finish their cycles first: no session is lost."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.apart import Apart
from fleet.audit import told
from fleet.crowd import make_project
from rekindle import config
from rekindle.cli.main import run as run_command
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine import host_list
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

AGENTS = ["a1", "a2", "a3"]
SECONDS = 120


class Rolled:
    """Two hosts with agents that work all the time."""

    def __init__(self, engine, folder: Path) -> None:
        self.finish = folder / "finish"
        steps = {"env": {"STEP_SECONDS": "0.5", "FINISH": str(self.finish)}}
        names = dict.fromkeys(AGENTS, steps)
        self.project = make_project(folder, engine, names, self.finish)
        self._folder = folder
        self.hosts: dict[str, Apart] = {}

    def start(self, host: str) -> None:
        argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", host]
        argv += ["--root", str(self._folder / host), "--drain", "100s", "--sandbox", "off"]
        started = Apart(argv, cwd=self.project, stdout=subprocess.PIPE, text=True)
        assert started.stdout is not None
        assert "takes up to" in started.stdout.readline()
        self.hosts[host] = started

    async def connect(self) -> AgentClient:
        self.loaded = config.load_project(self.project)
        return AgentClient(await connect(self.loaded.settings.fleet, self.project, {}))

    async def begin(self, agents: AgentClient) -> None:
        running = runs.make_desired_event(Projection(agent="x").run, "running", clock.read_clock())
        for name in AGENTS:
            await agents.begin(name, define_agent(self.loaded, self.loaded.settings.fleet, name))
            await agents.say(name, running)

    def close(self) -> None:
        for started in self.hosts.values():
            started.terminate()
        for started in self.hosts.values():
            try:
                started.wait(60)
            finally:
                started.close()


@pytest.fixture
def rolled(own_engine, tmp_path):
    made = Rolled(own_engine, tmp_path)
    yield made
    made.close()


async def until(holds) -> None:
    async with asyncio.timeout(SECONDS):
        while not await holds():  # noqa: ASYNC110 - of other programs
            await asyncio.sleep(0.1)


def test_a_rolling_restart_loses_no_session(rolled, monkeypatch, capsys):
    """One host is drained by SIGTERM, and the other one by a command."""
    monkeypatch.chdir(rolled.project)

    async def play() -> dict[str, list[str]]:
        rolled.start("x")
        rolled.start("y")
        agents = await rolled.connect()
        await rolled.begin(agents)

        async def has_run_on(*hosts: str) -> bool:
            found = await host_list.list_hosts(agents.client)
            return any(one.agents for one in found if one.host in hosts)

        async def have_ended(count: int) -> bool:
            kept = [await agents.kept(name) for name in AGENTS]
            return all(one.projection.cycle_ended >= count for one in kept)

        await until(lambda: have_ended(1))
        await until(lambda: has_run_on("x"))
        rolled.hosts["x"].terminate()
        assert await asyncio.to_thread(rolled.hosts["x"].wait, SECONDS) == 0
        words = rolled.hosts["x"].stdout.read()
        assert "draining" in words
        rolled.hosts["x"].close()
        rolled.start("x")
        await until(lambda: has_run_on("y"))
        await asyncio.to_thread(run_command, ["fleet", "drain", "y", "--json"])
        assert json.loads(capsys.readouterr().out)["host"] == "y"
        assert await asyncio.to_thread(rolled.hosts["y"].wait, SECONDS) == 0
        await until(lambda: has_run_on("x"))
        await asyncio.to_thread(run_command, ["fleet", "hosts"])
        await asyncio.to_thread(run_command, ["fleet", "status"])
        print(capsys.readouterr().out)
        ended = max([(await agents.kept(name)).projection.cycle_ended for name in AGENTS])
        await until(lambda: have_ended(ended + 1))
        rolled.finish.touch()

        async def are_over() -> bool:
            return all([(await agents.kept(name)).projection.run.is_over for name in AGENTS])

        await until(are_over)
        found = [await told(agents.client, name) for name in AGENTS]
        queues = [{lease.queue for lease in one.leases if lease.taken_at} for one in found]
        assert any(len(both) == 2 for both in queues), "no agent moved"
        return {one.agent: [end["exit"] for end in one.of("launch.ended")] for one in found}

    exits = asyncio.run(asyncio.wait_for(play(), 280))
    assert {word for words in exits.values() for word in words} == {"clean"}, exits
