"""Report if a worker's build is not the fleet's current one, and if no worker runs that one."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.fleet.engine import deployments
from rekindle.policy.fleet.fleet_builds import explain_abandoned
from rekindle.thresholds.build_limits import FLEET_BUILDS_SECONDS


async def watch_builds(client: Client, build: str, say: Callable[[str], None]) -> None:
    """Print each new problem with the builds while this worker's build is not the current one."""
    before: list[str] = []
    while True:
        with suppress(RPCError):  # the engine is away, or this worker may not ask
            problems = await find_build_problems(client, build)
            for problem in problems:
                if problem not in before:
                    say(problem)
            before = problems
        await asyncio.sleep(FLEET_BUILDS_SECONDS)


async def find_build_problems(client: Client, build: str) -> list[str]:
    """Return the problems, or an empty list if this worker's build is the current one."""
    current = await deployments.find_current(client)
    if current in {"", build}:
        return []
    problems = explain_abandoned(await deployments.read_builds(client))
    role = (
        f"! this worker's build {build} is not the fleet's current build {current}, so it decides "
        f"only for agents that have moved to it\n  → `rekindle fleet deploy {build}`"
    )
    return [role, *(f"! {problem.what}\n  → {problem.fix}" for problem in problems)]
