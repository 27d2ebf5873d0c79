"""The keys in use are listed, and after a rotation no open workflow needs an old one."""

import asyncio
import contextlib
import json

import pytest
from temporalio.client import Client

from fleet.record import Life
from fleet.scripted import Hosts, definition
from rekindle.cli.main import run as run_command
from rekindle.errors import EngineError
from rekindle.fleet.engine import encryption_keys, keys_in_use, run_schedules
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.policy.fleet.scheduled_run import ScheduledOrder, render_fleet_schedule
from rekindle.policy.settings.runtime_settings import CodecSettings, FleetSettings

ENVIRON = {"OLD": encryption_keys.generate_key(), "NEW": encryption_keys.generate_key()}
OLD, NEW = (
    key.id for key in encryption_keys.load_keys(CodecSettings(keys=["$OLD", "$NEW"]), None, ENVIRON)
)
SECONDS = 120


def metadata_of(key):
    """Return the bytes that name a key beside a payload; a worker's identity names all its keys."""
    return b"rekindle-key\x12\x0c" + key.encode()


async def connect_with(engine, folder, *names):
    codec = CodecSettings(keys=list(names))
    return await connect(FleetSettings(address=engine.address, codec=codec), folder, ENVIRON)


async def find_open_bytes(engine):
    """Return the bytes of the latest run of each open workflow, and of the schedules."""
    plain, found = await Client.connect(engine.address), b""
    async for workflow in plain.list_workflows('ExecutionStatus="Running"'):
        async for event in plain.get_workflow_handle(workflow.id).fetch_history_events():
            found += event.SerializeToString()
    async for listed in await plain.list_schedules():
        described = await plain.get_schedule_handle(listed.id).describe()
        found += described.raw_description.SerializeToString()
    return found


async def until_listed(client, count):
    """Wait for the engine's list, which lags."""
    async with asyncio.timeout(SECONDS):
        while len([each async for each in AgentClient(client).listed()]) < count:
            pass


async def begin_agents(client):
    """Start an agent that finishes its run, and one that never runs."""
    hosts, agents = Hosts(client, "keys", ["last"]), AgentClient(client)
    order = ScheduledOrder(
        kind="agents",
        name="idle",
        schedule=render_fleet_schedule("1d"),
        heartbeat_seconds=10,
        pool="keys",
    )
    await run_schedules.keep_schedule(client, order)
    async with hosts.working():
        await agents.begin("idle", definition("keys"))
        await agents.begin("ended", definition("keys"))
        life = Life(agents, "ended")
        await life.run()
        await life.until_over()
        await until_listed(client, 2)


def test_after_a_rotation_no_open_workflow_needs_the_old_key(own_engine, tmp_path):
    """Not even an agent that was idle, its memo in the engine's list, or a schedule."""

    async def run():
        await begin_agents(await connect_with(own_engine, tmp_path, "$OLD", "$NEW"))
        assert metadata_of(OLD) in await find_open_bytes(own_engine)
        own_engine.restart()  # or it would list the former worker for a minute
        client = await connect_with(own_engine, tmp_path, "$NEW", "$OLD")
        async with Hosts(client, "keys", []).working():
            before = await keys_in_use.find_keys_in_use(client)
            left = await keys_in_use.rotate_keys(client)
            states = {name: await AgentClient(client).kept(name) for name in ("ended", "idle")}
            schedule = await run_schedules.read_schedule(client, "agents", "idle")
            after = await find_open_bytes(own_engine)
            listed = {each.agent: each.why async for each in AgentClient(client).listed()}
        return before, left, states, schedule, after, listed

    before, left, states, schedule, after, listed = asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert before.current == NEW
    assert [use.key for use in before.keys] == [NEW, OLD]
    assert before.keys[1].stored == ["ended", "idle", "schedule run/default/agents/idle"]
    assert len(before.keys[0].workers) == 1
    assert before.closed_hours > 0
    assert left == []
    assert metadata_of(OLD) not in after
    assert metadata_of(NEW) in after
    assert states["ended"].projection.run.is_over
    assert listed["ended"] == "done"
    assert "1d" in schedule.schedule


def test_a_running_agent_changes_its_key_in_the_middle_of_its_cycle(own_engine, tmp_path):
    """The cycle continues under the same lease."""

    async def run():
        old = await connect_with(own_engine, tmp_path, "$OLD")
        await AgentClient(old).begin("busy", definition("keys"))
        client = await connect_with(own_engine, tmp_path, "$NEW", "$OLD")
        agents, hosts = AgentClient(client), Hosts(client, "keys", ["beat and end", "last"])
        async with hosts.working():
            life = Life(agents, "busy")
            await life.run()
            await until_listed(client, 1)
            await life.until(lambda kept: kept.projection.attempts)
            left = await keys_in_use.rotate_keys(client)
            hosts.is_brief_begun.set()  # the cycle may end
            await life.until_over()
            assert {one.exit for one in (await life.known()).attempts.values()} == {"clean"}
        return left

    assert asyncio.run(asyncio.wait_for(run(), SECONDS)) == []


async def until_polled(client):
    async with asyncio.timeout(SECONDS):
        while not (await keys_in_use.find_keys_in_use(client)).keys[0].workers:
            pass


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        (["$OLD", "$NEW"], ["$NEW", "$OLD"], "encrypt with another key"),
        ([], ["$NEW", "$OLD"], "no worker is running"),
        ([], [], "no key"),
    ],
)
def test_a_rotation_is_refused_if_it_would_not_help(own_engine, tmp_path, theirs, ours, words):
    """A worker with another first key would encrypt with that one again."""

    async def run():
        client = await connect_with(own_engine, tmp_path, *ours)
        async with contextlib.AsyncExitStack() as stack:
            if theirs:
                other = await connect_with(own_engine, tmp_path, *theirs)
                await stack.enter_async_context(Hosts(other, "keys", []).working())
                await until_polled(client)
            await keys_in_use.rotate_keys(client)

    with pytest.raises(EngineError, match=words) as refused:
        asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert refused.value.hint


def test_the_command_lists_and_rotates(own_engine, tmp_path, monkeypatch, capsys):
    """It names the agents that need another key, and says what to do next."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OLD", ENVIRON["OLD"])
    monkeypatch.setenv("NEW", ENVIRON["NEW"])
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {}\n"
        f"fleet: {{address: '{own_engine.address}', codec: {{keys: [$NEW, $OLD]}}}}\n"
    )

    async def run():
        old = await connect_with(own_engine, tmp_path, "$OLD")
        await AgentClient(old).begin("idle", definition("keys"))
        await until_listed(old, 1)
        client = await connect_with(own_engine, tmp_path, "$NEW", "$OLD")
        async with Hosts(client, "keys", []).working():
            await until_polled(client)
            for words in ([], ["--rotate"], ["--json"]):
                await asyncio.to_thread(run_command, ["fleet", "keys", *words])
                yield capsys.readouterr().out

    async def collect():
        return [text async for text in run()]

    listed, rotated, document = asyncio.run(asyncio.wait_for(collect(), SECONDS))
    assert f"{NEW} (current)  1 worker, 0 workflows" in listed
    assert f"{OLD}  1 worker, 1 workflow or schedule: idle" in listed
    assert "rekindle fleet keys --rotate" in listed
    assert "need only the current key" in rotated
    assert json.loads(document)["keys"][0]["stored"] == ["idle"]
