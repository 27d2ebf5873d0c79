"""The engine of the tests: it is the real one, and its state outlives it."""

import asyncio

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client


async def started(address, identity):
    client = await Client.connect(address)
    await client.start_workflow("Unserved", id=identity, task_queue="unserved")


async def status_of(address, identity):
    client = await Client.connect(address)
    return (await client.get_workflow_handle(identity).describe()).status.name


async def namespace(address, name):
    client = await Client.connect(address)
    return await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=name)
    )


def test_it_answers_as_soon_as_it_is_started(engine):
    """Both namespaces exist at once."""
    for name in ("default", "other"):
        found = asyncio.run(namespace(engine.address, name))
        assert found.namespace_info.name == name


def test_its_state_outlives_a_kill(own_engine):
    """It has the same address and the same workflow."""
    asyncio.run(started(own_engine.address, "kept"))
    address, pid = own_engine.address, own_engine.pid
    own_engine.restart()
    assert own_engine.address == address
    assert own_engine.pid != pid
    assert asyncio.run(status_of(address, "kept")) == "RUNNING"
