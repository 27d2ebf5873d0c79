"""Decide for the agents of a fleet, and host none of them."""

import asyncio
import logging
from collections.abc import Callable

from temporalio.client import Client

from rekindle.fleet.engine.deployments import claim_first
from rekindle.fleet.hosts import host_admission
from rekindle.fleet.hosts.build_watch import watch_builds
from rekindle.fleet.hosts.worker import WORKFLOWS, StopRequests, make_deciding_worker


async def run_decider(client: Client, build: str, say: Callable[[str], None]) -> None:
    """Decide until this process receives SIGTERM or SIGINT."""
    # Rekindle reports an agent's problem on one line. The SDK would log a traceback.
    logging.getLogger("temporalio").setLevel(logging.ERROR)
    await host_admission.require_admission(client)
    await claim_first(client, build)
    stopping = StopRequests()
    async with make_deciding_worker(client, *WORKFLOWS, build=build):
        say(f"build {build} decides for the agents of namespace {client.namespace}")
        watching = asyncio.create_task(watch_builds(client, build, say))
        await stopping.wait()
        watching.cancel()
        say("shutting down; other workers will decide")
