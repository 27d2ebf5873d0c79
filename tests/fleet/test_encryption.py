"""The engine's database holds nothing of a document that can be read, and works all the same."""

import asyncio

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.worker import Worker

from fleet.carrying import Carrying, Page, read
from fleet.record import Life
from fleet.scripted import Hosts, definition
from rekindle.errors import CodecKeyError
from rekindle.fleet import keys
from rekindle.fleet.client import Agents
from rekindle.fleet.connect import connect
from rekindle.policy.settings import Codec, Fleet

TEXT = "Next Action: buy the lighthouse before anybody hears of it"
TRACED = b"in read\n"
"""Of the stack trace of the activity."""


async def carried(client, name, page):
    """The page through input, memo, update, activity, heartbeat and result."""
    queue = f"queue-{name}"
    async with Worker(client, task_queue=queue, workflows=[Carrying], activities=[read]):
        handle = await client.start_workflow(
            Carrying.run, page, id=name, task_queue=queue, memo={"page": page}
        )
        assert await handle.execute_update(Carrying.say, page) is None
        return await handle.result()


async def everything(address, folder, environ, codec):
    """A workflow that ends well, and one that fails; each is seen as it was."""
    client = await connect(Fleet(address=address, codec=codec), folder, environ)
    assert await carried(client, "well", Page(TEXT)) == Page(TEXT)
    with pytest.raises(WorkflowFailureError) as failed:
        await carried(client, "badly", Page(TEXT, wrong=True))
    cause = failed.value.cause.cause
    assert cause.message == f"unreadable: {TEXT}"
    assert cause.details[0]["text"] == TEXT
    described = await client.get_workflow_handle("well").describe()
    assert (await described.memo())["page"]["text"] == TEXT


def test_the_database_holds_no_plain_text_with_a_key(own_engine, tmp_path):
    """Neither of a document nor of an error, nor where in our code it was."""
    environ = {"KEY": keys.new()}
    asyncio.run(everything(own_engine.address, tmp_path, environ, Codec(keys=["$KEY"])))
    kept = own_engine.bytes_on_disk()
    assert b"Carrying" in kept  # it is the database
    assert TEXT.encode() not in kept
    assert b"lighthouse" not in kept
    assert TRACED not in kept
    assert environ["KEY"].encode() not in kept


def test_the_database_holds_it_without_a_key(own_engine, tmp_path):
    """The check before this one would see it."""
    asyncio.run(everything(own_engine.address, tmp_path, {}, Codec()))
    kept = own_engine.bytes_on_disk()
    assert TEXT.encode() in kept
    assert f"unreadable: {TEXT}".encode() in kept
    assert TRACED in kept


@pytest.mark.parametrize("has_key", [True, False])
def test_of_an_agent_on_the_fleet_no_relay_can_be_read_there(own_engine, tmp_path, has_key):
    """Its task, its relay, its next action; without a key all of them are found."""
    environ, codec = {"KEY": keys.new()}, Codec(keys=["$KEY"] if has_key else [])
    words = (b"lighthouse", b"Step 2", b"The task of the keeper")

    async def live() -> None:
        fleet = Fleet(address=own_engine.address, codec=codec)
        client = await connect(fleet, tmp_path, environ)
        hosts, agents = Hosts(client, "pool", ["cycle", "last"]), Agents(client)
        files = {"PROMPT.md": "The task of the keeper: the lighthouse"}
        async with hosts.working():
            await agents.begin("keeper", definition("pool", files=files))
            agent = Life(agents, "keeper")
            await agent.run()
            await agent.until_over()
            kept = await agents.kept("keeper")
            assert "Step 2" in "".join(kept.documents.values())

    asyncio.run(asyncio.wait_for(live(), 60))
    found = own_engine.bytes_on_disk()
    assert b"keeper" in found, "it is the database"
    assert [word in found for word in words] == [not has_key] * len(words)


def test_who_has_another_key_is_told_so(engine, tmp_path):
    """By our own error, through the engine's library."""
    environ = {"KEY": keys.new(), "OTHER": keys.new()}
    wanted = keys.load(Codec(keys=["$KEY"]), tmp_path, environ)[0].id

    async def run():
        ours = Fleet(address=engine.address, codec=Codec(keys=["$KEY"]))
        await carried(await connect(ours, tmp_path, environ), "ours", Page(TEXT))
        theirs = Fleet(address=engine.address, codec=Codec(keys=["$OTHER"]))
        client = await connect(theirs, tmp_path, environ)
        await client.get_workflow_handle_for(Carrying.run, "ours").result()

    with pytest.raises(CodecKeyError) as refused:
        asyncio.run(run())
    assert refused.value.wanted == wanted


def test_a_fleet_begins_with_encryption_and_changes_keys_while_it_runs(engine, tmp_path):
    """Every host knows the new key before the first one uses it; so nobody is ever locked out."""
    environ = {"OLD": keys.new(), "NEW": keys.new()}
    codecs = [Codec(), Codec(keys=["$OLD", "$NEW"]), Codec(keys=["$NEW", "$OLD"])]

    async def run():
        plain, old, new = [
            await connect(Fleet(address=engine.address, codec=codec), tmp_path, environ)
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
