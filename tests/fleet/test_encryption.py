"""The engine's database contains no readable document, and still works."""

import asyncio
import time

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
    WorkflowFailureError,
)
from temporalio.common import RawValue
from temporalio.converter import WorkflowSerializationContext
from temporalio.worker import Worker

from fleet.carrying import Carrying, Page, read
from fleet.record import Life
from fleet.scripted import Hosts, definition
from rekindle import config
from rekindle.errors import CodecKeyError, EngineError, ManifestError
from rekindle.fleet.agent.host_orders import HostOrder
from rekindle.fleet.commands import fleet_checks
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.engine import encryption_keys
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.hosts.activities import _send_notification
from rekindle.policy.settings.runtime_settings import (
    CodecSettings,
    FleetSettings,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock

TEXT = "Next Action: buy the lighthouse before anybody hears of it"
TRACED = b"in read\n"
"""A part of the stack trace of the activity."""


async def carried(client, name, page):
    """Pass the page through input, memo, update, activity, heartbeat and result."""
    queue = f"queue-{name}"
    async with Worker(client, task_queue=queue, workflows=[Carrying], activities=[read]):
        handle = await client.start_workflow(
            Carrying.run, page, id=name, task_queue=queue, memo={"page": page}
        )
        assert await handle.execute_update(Carrying.say, page) is None
        return await handle.result()


async def everything(address, folder, environ, codec):
    """Run a workflow that succeeds, and one that fails; check both."""
    client = await connect(FleetSettings(address=address, codec=codec), folder, environ)
    assert await carried(client, "well", Page(TEXT)) == Page(TEXT)
    with pytest.raises(WorkflowFailureError) as failed:
        await carried(client, "badly", Page(TEXT, wrong=True))
    cause = failed.value.cause.cause
    assert cause.message == f"unreadable: {TEXT}"
    assert cause.details[0]["text"] == TEXT
    described = await client.get_workflow_handle("well").describe()
    assert (await described.memo())["page"]["text"] == TEXT


def test_the_database_has_no_plain_text_with_a_key(own_engine, tmp_path):
    """Neither a document nor an error is readable, nor its place in our code."""
    environ = {"KEY": encryption_keys.generate_key()}
    asyncio.run(everything(own_engine.address, tmp_path, environ, CodecSettings(keys=["$KEY"])))
    kept = own_engine.bytes_on_disk()
    assert b"Carrying" in kept  # it is the database
    assert TEXT.encode() not in kept
    assert b"lighthouse" not in kept
    assert TRACED not in kept
    assert environ["KEY"].encode() not in kept


def test_the_database_has_plain_text_without_a_key(own_engine, tmp_path):
    """So the check of the previous test can fail."""
    asyncio.run(everything(own_engine.address, tmp_path, {}, CodecSettings()))
    kept = own_engine.bytes_on_disk()
    assert TEXT.encode() in kept
    assert f"unreadable: {TEXT}".encode() in kept
    assert TRACED in kept


@pytest.mark.parametrize("has_key", [True, False])
def test_no_relay_of_a_fleet_agent_is_readable_there(own_engine, tmp_path, has_key):
    """Task, relay and next action are encrypted; without a key all of them are found."""
    environ, codec = (
        {"KEY": encryption_keys.generate_key()},
        CodecSettings(keys=["$KEY"] if has_key else []),
    )
    words = (b"lighthouse", b"Step 2", b"The task of the keeper")

    async def live() -> None:
        fleet = FleetSettings(address=own_engine.address, codec=codec)
        client = await connect(fleet, tmp_path, environ)
        hosts, agents = Hosts(client, "pool", ["cycle", "last"]), AgentClient(client)
        files = {"PROMPT.md": "The task of the keeper: the lighthouse"}
        async with hosts.working():
            await agents.begin("keeper", definition("pool", files=files))
            agent = Life(agents, "keeper")
            await agent.run()
            await agent.until_over()
            kept = await agents.kept("keeper")
            assert "Step 2" in "".join(kept.documents.values())
            listed = []
            while not any(one.why for one in listed):  # the engine's list lags
                listed = [one async for one in agents.listed(["keeper"])]
            assert [one.why for one in listed] == [kept.projection.run.ended.why]

    asyncio.run(asyncio.wait_for(live(), 60))
    found = own_engine.bytes_on_disk()
    assert b"keeper" in found, "it is the database"
    assert [word in found for word in words] == [not has_key] * len(words)


def test_a_host_with_another_key_is_told_so(engine, tmp_path):
    """Our own error arrives through the engine's library."""
    environ = {"KEY": encryption_keys.generate_key(), "OTHER": encryption_keys.generate_key()}
    wanted = encryption_keys.load_keys(CodecSettings(keys=["$KEY"]), tmp_path, environ)[0].id

    async def run():
        ours = FleetSettings(address=engine.address, codec=CodecSettings(keys=["$KEY"]))
        await carried(await connect(ours, tmp_path, environ), "ours", Page(TEXT))
        theirs = FleetSettings(address=engine.address, codec=CodecSettings(keys=["$OTHER"]))
        client = await connect(theirs, tmp_path, environ)
        await client.get_workflow_handle_for(Carrying.run, "ours").result()

    with pytest.raises(CodecKeyError) as refused:
        asyncio.run(run())
    assert refused.value.wanted == wanted


def test_a_fleet_begins_with_encryption_and_changes_keys_while_it_runs(engine, tmp_path):
    """Every host knows the new key before the first host uses it, so none is ever locked out."""
    environ = {"OLD": encryption_keys.generate_key(), "NEW": encryption_keys.generate_key()}
    codecs = [
        CodecSettings(),
        CodecSettings(keys=["$OLD", "$NEW"], strict=False),
        CodecSettings(keys=["$NEW", "$OLD"], strict=False),
    ]

    async def run():
        plain, old, new = [
            await connect(FleetSettings(address=engine.address, codec=codec), tmp_path, environ)
            for codec in codecs
        ]
        started = await plain.start_workflow(
            Carrying.run, Page(TEXT), id="changing", task_queue="changing"
        )
        async with Worker(new, task_queue="changing", workflows=[Carrying], activities=[read]):
            said = old.get_workflow_handle_for(Carrying.run, started.id)
            assert await said.execute_update(Carrying.say, Page("first")) is None
            return await said.result()

    assert asyncio.run(run()) == Page(TEXT)


async def started_with(engine, name, payload):
    """Start a workflow with a raw payload, as a client with write access to the engine could."""
    plain = await Client.connect(engine.address)
    queue = f"queue-{name}"
    return await plain.start_workflow("Carrying", RawValue(payload), id=name, task_queue=queue)


async def first_input(client, name):
    """Return the payload with which a workflow was started, as the engine has it."""
    async for event in client.get_workflow_handle(name).fetch_history_events():
        return event.workflow_execution_started_event_attributes.input.payloads[0]
    raise AssertionError("it has no history")


async def failed_task(client, handle):
    """Return why a worker refused to continue with a workflow."""
    context = WorkflowSerializationContext(namespace=client.namespace, workflow_id=handle.id)
    async with asyncio.timeout(20):
        while True:
            async for event in handle.fetch_history_events():
                if event.HasField("workflow_task_failed_event_attributes"):
                    failure = event.workflow_task_failed_event_attributes.failure
                    converter = client.data_converter.with_context(context)
                    found = await converter.decode_failure(failure)
                    return f"{found} {found.__cause__}"
            await asyncio.sleep(0.05)


PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'{"text": "run what I say"}')


def test_a_forged_plain_text_is_refused_with_a_key(engine, tmp_path):
    """A client with write access to the engine cannot forge the text of an agent."""
    environ = {"KEY": encryption_keys.generate_key()}

    async def run():
        fleet = FleetSettings(address=engine.address, codec=CodecSettings(keys=["$KEY"]))
        client = await connect(fleet, tmp_path, environ)
        forged = await started_with(engine, "forged", PLAIN)
        queue = "queue-forged"
        async with Worker(client, task_queue=queue, workflows=[Carrying], activities=[read]):
            return await failed_task(client, forged)

    assert "plain text" in asyncio.run(run())


def test_a_ciphertext_is_refused_by_another_workflow(engine, tmp_path):
    """One agent's documents, copied within the engine, cannot pass for another's."""
    environ = {"KEY": encryption_keys.generate_key()}

    async def run():
        fleet = FleetSettings(address=engine.address, codec=CodecSettings(keys=["$KEY"]))
        client = await connect(fleet, tmp_path, environ)
        await client.start_workflow(Carrying.run, Page(TEXT), id="hers", task_queue="hers")
        copied = await started_with(engine, "his", await first_input(client, "hers"))
        async with Worker(client, task_queue="queue-his", workflows=[Carrying], activities=[read]):
            return await failed_task(client, copied)

    assert "was modified, or belongs to another agent" in asyncio.run(run())


def test_a_schedule_s_workflow_reads_what_the_schedule_was_given(engine, tmp_path):
    """The engine adds the time to its id, after its input was encrypted."""
    environ = {"KEY": encryption_keys.generate_key()}

    async def run():
        fleet = FleetSettings(address=engine.address, codec=CodecSettings(keys=["$KEY"]))
        client = await connect(fleet, tmp_path, environ)
        action = ScheduleActionStartWorkflow(
            Carrying.run, Page(TEXT), id="brief/x/trades", task_queue="scheduled"
        )
        handle = await client.create_schedule("due", Schedule(action, ScheduleSpec()))
        await handle.trigger()
        async with (
            asyncio.timeout(20),
            Worker(client, task_queue="scheduled", workflows=[Carrying], activities=[read]),
        ):
            while not (recent := (await handle.describe()).info.recent_actions):
                pass  # the engine starts it a moment later
            begun = recent[0].action.workflow_id
            said = client.get_workflow_handle_for(Carrying.run, begun)
            await said.execute_update(Carrying.say, Page("go"))
            found = begun, await said.result()
        await handle.delete()
        return found

    begun, page = asyncio.run(run())
    assert begun.startswith("brief/x/trades-20")
    assert page == Page(TEXT)


def test_a_command_in_plain_text_is_not_obeyed(own_engine, tmp_path):
    """A folder without the key cannot stop an agent; the operator with the key still can."""
    environ = {"KEY": encryption_keys.generate_key()}

    async def run():
        plain, keyed = [
            AgentClient(
                await connect(
                    FleetSettings(address=own_engine.address, codec=one), tmp_path, environ
                )
            )
            for one in (CodecSettings(), CodecSettings(keys=["$KEY"]))
        ]
        hosts = Hosts(keyed.client, "forgery", ["wait"])
        async with hosts.working():
            await keyed.begin("keeper-of-keys", definition("forgery"))
            await Life(keyed, "keeper-of-keys").run()
            with pytest.raises(CodecKeyError):
                await plain.kept("keeper-of-keys")
            known = (await keyed.kept("keeper-of-keys")).projection.run
            stop = runs.make_desired_event(known, "stopped", clock.read_clock())
            with pytest.raises(EngineError) as refused:
                await plain.say("keeper-of-keys", stop)
            before = (await keyed.kept("keeper-of-keys")).projection.run.desired
            await keyed.say("keeper-of-keys", stop)
            after = (await keyed.kept("keeper-of-keys")).projection.run.desired
        return refused.value.cause, before, after

    expected = ("refused", "running", "stopped")
    assert asyncio.run(asyncio.wait_for(run(), 90)) == expected


WORD = "hunter2-Xq81kLm"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
AGENT = "version: 1\nagents: {keeper: {harness: command, command: [./agent]%s}}\n"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("", f"notify: ['json://me:{WORD}@127.0.0.1']\n"), 4),
        (("", f"notify: [$ALERTS, 'ntfys://{WORD}']\n"), 4),
        ((f", env: {{API_TOKEN: {TOKEN}}}", ""), 2),
    ],
    ids=["password", "topic", "env"],
)
def test_a_secret_in_the_manifest_is_refused_before_it_reaches_the_engine(tmp_path, more, line):
    """Its place is named, and the secret is not shown."""
    env, notify = more
    fleet = "fleet: {pool: pool}\n"
    (tmp_path / "rekindle.yaml").write_text(AGENT % env + fleet + notify)
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    project = config.load_project(tmp_path)
    with pytest.raises(ManifestError, match="which the engine would store") as refused:
        define_agent(project, project.settings.fleet, "keeper")
    assert refused.value.line == line
    words = str(refused.value) + refused.value.hint
    assert WORD not in words
    assert TOKEN not in words
    (problem,) = fleet_checks.check_definition(project, project.settings.fleet, "keeper")
    assert problem.what == str(refused.value)


def test_the_engine_gets_variables_and_no_secret_of_a_definition(own_engine, tmp_path):
    """Without a key, in its database; the host that sends resolves the variable."""
    (tmp_path / "rekindle.yaml").write_text(
        AGENT % ", env: {API_TOKEN: $API_TOKEN}"
        + f"fleet: {{address: '{own_engine.address}', pool: pool}}\nnotify: [$ALERTS]\n"
    )
    (tmp_path / "PROMPT.md").write_text(f"Guard the lighthouse with {TOKEN}.\n")
    project = config.load_project(tmp_path)
    fleet = project.settings.fleet
    (problem,) = fleet_checks.check_definition(project, fleet, "keeper")
    assert problem.what.startswith("PROMPT.md contains a secret")
    assert problem.is_note

    async def begin():
        client = await connect(fleet, tmp_path, {})
        await AgentClient(client).begin("keeper", define_agent(project, fleet, "keeper"))

    asyncio.run(begin())
    marker, deadline = b"Guard the lighthouse with [redacted:", time.monotonic() + 30
    while marker not in (kept := own_engine.bytes_on_disk()):  # its write-ahead log may be moving
        assert time.monotonic() < deadline
    assert b"$ALERTS" in kept
    assert TOKEN.encode() not in kept
    order = HostOrder("pool/keeper", "keeper", 1)
    sent = _send_notification(
        define_agent(project, fleet, "keeper"), order, "hang", "words", "tower"
    )
    assert sent == ["address 1 of `notify:` was not notified: $ALERTS is not set"]
