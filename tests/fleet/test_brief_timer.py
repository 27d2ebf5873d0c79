"""An agent's workflow waits for the time of its brief itself, with the real engine."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client, WorkflowHandle

from fleet.record import Life
from fleet.scripted import Hosts, definition
from rekindle.documents import events
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.fleet import brief_times
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

pytestmark = pytest.mark.timeout(300)


def set_hour(monkeypatch, hour: datetime) -> None:
    """Let every day's brief hour be at this time, which may have seconds."""

    def resolve(day, at, zone):
        del at, zone
        return hour + (day - hour.date())

    for module in (brief_schedule, brief_times):
        monkeypatch.setattr(module, "resolve_time_of_day", resolve)


async def count_timers(handle: WorkflowHandle) -> int:
    history = await handle.fetch_history()
    return sum(event.HasField("timer_started_event_attributes") for event in history.events)


def live(address: str, name: str, life) -> None:
    async def run() -> None:
        client = await Client.connect(address, data_converter=make_data_converter(()))
        hosts = Hosts(client, f"pool-{name}", ["wait"])
        async with hosts.working():
            await life(AgentClient(client), hosts, client.get_workflow_handle(f"default/{name}"))

    asyncio.run(asyncio.wait_for(run(), 150))


def has_brief(kept) -> bool:
    return "brief" in kept.projection.documents


def test_a_brief_is_written_when_its_time_comes(engine, monkeypatch):
    """The session that began before keeps running; until the work starts, there is no timer."""
    name = "on-time"

    async def life(agents: AgentClient, hosts: Hosts, handle: WorkflowHandle) -> None:
        agent = Life(agents, name)
        await agent.begin(f"pool-{name}")
        await agents.kept(name)
        assert await count_timers(handle) == 0
        set_hour(monkeypatch, datetime.now(UTC) + timedelta(seconds=6))
        await agent.run()
        await agent.until(lambda kept: kept.projection.attempts)
        assert not has_brief(await agents.kept(name))
        await agent.until(has_brief)
        assert await count_timers(handle) >= 1
        assert hosts.done.is_set()

    live(engine.address, name, life)


def test_a_brief_whose_time_has_passed_is_written_by_the_next_workflow(engine, monkeypatch):
    """This is the state after continue-as-new, or after an outage of the engine."""
    name, now = "late", datetime.now(UTC)
    set_hour(monkeypatch, now - timedelta(minutes=1))
    own = {"launch": "l", "cycle": 1, "session": "s"}
    began, ended = now - timedelta(hours=2), now - timedelta(hours=1)
    worked = [
        events.AgentCreated(ts=began, seq=1, agent=name),
        events.LaunchStarted(ts=began, seq=2, harness="h", **own),
        events.LaunchEnded(ts=ended, seq=3, exit="clean", **own),
    ]

    async def life(agents: AgentClient, hosts: Hosts, handle: WorkflowHandle) -> None:
        del hosts, handle
        past = fold_events(Projection(agent=name), worked)
        await agents.begin(name, definition(f"pool-{name}"), projection=past)
        await Life(agents, name).until(has_brief)

    live(engine.address, name, life)
