"""Teams that share a fleet, with the real engine: fair starts, caps and hosts for some teams."""

import asyncio
from collections.abc import Callable

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.worker import Worker

from fleet.deciding import deciding
from fleet.engine import Engine
from fleet.scripted import definition
from rekindle.fleet.agent.host_orders import HostOrder, HostReport, make_pool_queue
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.dev_server import SERVER_SETTINGS
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.fleet.hosts.activities import Activities
from rekindle.fleet.hosts.cycle_slots import CycleSlots
from rekindle.fleet.hosts.host_presence import HostPresence
from rekindle.fleet.hosts.host_processes import EngineClient
from rekindle.fleet.hosts.worker import WORKFLOWS
from rekindle.fleet.teams.refused_offers import explain_refused_offer
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

pytestmark = pytest.mark.timeout(300)
MANY, FEW = 12, 3
TEAMS = {"a": MANY, "b": FEW}
_ONE_PARTITION = [f"matching.numTaskqueue{which}Partitions=1" for which in ("Read", "Write")]
"""The engine is fair within a partition of a queue; four partitions need more agents than this."""


async def reach(engine: Engine) -> AgentClient:
    return AgentClient(await Client.connect(engine.address, data_converter=make_data_converter(())))


async def start(agents: AgentClient, name: str, pool: str, team: str) -> None:
    running = runs.make_desired_event(runs.RunState(), "running", clock.read_clock(), 9)
    await agents.begin(name, definition(pool, team=team), new_events=[running])


async def wait_until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not (await found if asyncio.iscoroutine(found := holds()) else found):  # noqa: ASYNC110 - of another program
            await asyncio.sleep(0.05)


async def is_offered(agents: AgentClient, name: str) -> bool:
    """Return whether the agent waits in the queue of its pool."""
    described = await agents.client.get_workflow_handle(agents.workflow(name)).describe()
    is_open = described.status == WorkflowExecutionStatus.RUNNING
    # Once a host has accepted the offer, another activity is pending in that host's own queue.
    pending = described.raw_description.pending_activities
    return is_open and any(one.activity_type.name == "offer" for one in pending)


async def play_starts(agents: AgentClient) -> list[str]:
    """Queue many agents of team a and then a few of team b; return the order of first starts."""
    many, few = ([f"{team}{number}" for number in range(count)] for team, count in TEAMS.items())
    started: dict[str, None] = {}

    @activity.defn(name="offer")
    async def offer(order: HostOrder, _shunned: list[str]) -> str:
        started[order.agent] = None
        return "a missing host"

    async with deciding(agents.client, *WORKFLOWS):
        for names in (many, few):
            await asyncio.gather(*(start(agents, name, "shared", name[0]) for name in names))
            for name in names:
                await wait_until(lambda name=name: is_offered(agents, name))
        async with Worker(
            agents.client,
            task_queue=make_pool_queue("shared"),
            activities=[offer],
            max_concurrent_activities=1,
            max_concurrent_activity_task_polls=1,
        ):
            await wait_until(lambda: len(started) == MANY + FEW)
    return list(started)


@pytest.mark.parametrize("settings", [SERVER_SETTINGS, ()], ids=["fair", "first come"])
def test_a_team_with_few_agents_does_not_wait_behind_one_with_many(tmp_path, settings):
    """Its agents start among the first; an engine without fairness serves them last."""

    async def play(engine: Engine) -> list[str]:
        return await play_starts(await reach(engine))

    with Engine(tmp_path, settings=[*settings, *_ONE_PARTITION]) as engine:
        order = asyncio.run(play(engine))
    places = [place for place, name in enumerate(order, 1) if name.startswith("b")]
    expected = range(2, 2 * FEW + 3) if settings else range(MANY + 1, MANY + FEW + 1)
    assert set(places) <= set(expected), places


def describe_host(name: str) -> HostReport:
    return HostReport(
        beat=0, host=name, place="here", pool="picky", slots=1, build="1", heartbeat_seconds=5
    )


def test_a_host_for_some_teams_refuses_the_agents_of_others(engine, tmp_path):
    """The agent stays in the queue with the reason, and another host of the pool takes it."""
    lines: list[str] = []

    async def play() -> None:
        agents = await reach(engine)

        def make_host(name: str, *teams: str) -> Worker:
            own = Activities(
                EngineClient(agents.client),
                HostPresence(agents.client, describe_host(name), lines.append),
                CycleSlots(1),
                root=tmp_path,
                host=name,
                say=lines.append,
                teams=frozenset(teams),
            )
            queue = make_pool_queue("picky")
            return Worker(agents.client, task_queue=queue, activities=[own.offer])

        def explain():
            return explain_refused_offer(agents.client, agents.workflow("stranger"))

        async def is_elsewhere() -> bool:
            return not await is_offered(agents, "stranger")

        async with deciding(agents.client, *WORKFLOWS):
            async with make_host("picky", "a", "b"):
                await start(agents, "stranger", "picky", "c")
                await wait_until(explain)
                assert "accepts only agents of a, b, not team c" in await explain()
            async with make_host("open"):
                await wait_until(is_elsewhere)

    asyncio.run(play())
    assert lines[0].startswith("stranger: host picky accepts only")
