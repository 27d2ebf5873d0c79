"""Caps of teams, with the real engine: agents wait for a permit outside the queue of their pool."""

import asyncio
import json

import pytest

from fleet.deciding import deciding, sandboxed
from fleet.test_teams import is_offered, reach, start, wait_until
from rekindle.cli.main import run
from rekindle.fleet.agent.refresh_signal import REFRESH_SIGNAL
from rekindle.fleet.agent.team_permit import make_team_id
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.hosts.worker import WORKFLOWS
from rekindle.fleet.teams.team_client import TeamClient
from rekindle.policy.fleet.team_permits import TeamCaps
from rekindle.policy.settings import runtime_settings
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock
from rekindle.wiring.access import trust_checks

pytestmark = pytest.mark.timeout(300)
CAPPED, FREE = [f"capped-{number}" for number in range(5)], ["free-0", "free-1"]


async def list_offered(agents: AgentClient, names: list[str]) -> list[str]:
    """Return the agents that are in the queue of their pool."""
    there = await asyncio.gather(*(is_offered(agents, name) for name in names))
    return [name for name, is_there in zip(names, there, strict=True) if is_there]


async def stop(agents: AgentClient, name: str) -> None:
    run = (await agents.kept(name)).projection.run
    await agents.say(name, runs.make_desired_event(run, "stopped", clock.read_clock()))


async def read_state(agents: AgentClient, name: str) -> str:
    return next(iter([one.state async for one in agents.listed([name])]), "")


def test_a_team_at_its_cap_does_not_delay_others(own_engine, monkeypatch):
    """Its permits outlive the engine, stopped agents return them, and lost agents lose them."""
    monkeypatch.setattr(runtime_settings, "FLEET_PERMIT_CHECK_SECONDS", 1.0)

    async def play() -> None:
        agents = await reach(own_engine)
        teams = TeamClient(agents.client)
        offered: list[str] = []

        async def is_count(count: int) -> bool:
            offered[:] = await list_offered(agents, CAPPED)
            assert len(offered) <= count, offered
            return len(offered) == count and len((await teams.read("capped")).held) == count

        async def wait_for_others(*gone: str) -> None:
            """Wait until other agents than these have the permits."""
            await wait_until(lambda: is_count(2))
            await wait_until(lambda: has_changed(gone))

        async def has_changed(gone: tuple[str, ...]) -> bool:
            return await is_count(2) and not set(gone) & set(offered)

        async with sandboxed(agents.client, *WORKFLOWS):
            await teams.set_caps("capped", TeamCaps(agents=2))
            for name in CAPPED:
                await start(agents, name, "caps", "capped")
            for name in FREE:
                await start(agents, name, "caps", "free")
            await wait_until(lambda: is_count(2))
            for name in FREE:
                await wait_until(lambda name=name: is_offered(agents, name))
            waiting = next(name for name in CAPPED if name not in offered)

            async def is_shown() -> bool:
                return await read_state(agents, waiting) == "capped"

            await wait_until(is_shown)
            own_engine.restart()
            stopped, terminated = offered
            await stop(agents, stopped)
            await wait_for_others(stopped)
            await agents.client.get_workflow_handle(agents.workflow(terminated)).terminate()
            await wait_for_others(stopped, terminated)
            await teams.set_caps("capped", TeamCaps())

            async def is_all() -> bool:
                left = [name for name in CAPPED if name not in {stopped, terminated}]
                return len(await list_offered(agents, left)) == len(left)

            await wait_until(is_all)

    asyncio.run(play())


def test_an_operator_sets_and_reads_the_caps(engine, tmp_path, monkeypatch, capsys):
    (tmp_path / "rekindle.yaml").write_text(f"version: 1\nfleet: {{address: '{engine.address}'}}\n")
    trust_checks.accept_folder(tmp_path)
    monkeypatch.chdir(tmp_path)

    async def call(*words: str) -> str:
        await asyncio.to_thread(run, ["fleet", "team", *words])
        captured = capsys.readouterr()
        return captured.out + captured.err

    async def play() -> None:
        agents = await reach(engine)
        async with deciding(agents.client, *WORKFLOWS):
            assert "team shop has no caps" in await call("shop")
            shown = "shop  0 running (at most 2), 0 waiting, $0.00 spent today (no limit)\n"
            assert await call("shop", "--agents", "2") == shown
            shown = "shop  0 running (at most 2), 0 waiting, $0.00 spent today (at most $9.50)\n"
            assert await call("shop", "--money-per-day", "9.5") == shown
            assert shown in await call()
            [team] = json.loads(await call("shop", "--json"))["teams"]
            assert (team["agents"], team["usd_per_day"]) == (2, 9.5)
            assert "need a team" in await call("--agents", "2")
            handle = agents.client.get_workflow_handle(make_team_id("default", "shop"))
            before = await handle.describe()
            await handle.signal(REFRESH_SIGNAL)

            async def is_continued() -> bool:
                return (await handle.describe()).run_id != before.run_id

            await wait_until(is_continued)
            assert shown in await call("shop")

    asyncio.run(play())
