"""A worker that decides, on a fleet whose current build is this one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from rekindle import __version__
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.engine.deployments import claim_first, make_deployment_config
from rekindle.fleet.hosts.worker import make_deciding_worker


@asynccontextmanager
async def deciding(client: Client, *workflows: type) -> AsyncIterator[None]:
    """Run the worker that a host runs."""
    await claim_first(client, __version__)
    async with make_deciding_worker(client, *workflows):
        yield


@asynccontextmanager
async def sandboxed(client: Client, *workflows: type, **how: Any) -> AsyncIterator[None]:
    """Run a worker with the SDK's sandbox, which hosts do without."""
    await claim_first(client, __version__)
    config = make_deployment_config(__version__)
    async with Worker(
        client, task_queue=DECISION_QUEUE, workflows=workflows, deployment_config=config, **how
    ):
        yield
