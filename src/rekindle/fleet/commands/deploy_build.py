"""Change the build that decides for a fleet's agents."""

import asyncio
import time

import msgspec
from temporalio.client import Client

from rekindle.errors import NotFoundError, UsageError
from rekindle.fleet.engine import deployments, workflow_moves
from rekindle.policy.fleet.fleet_builds import FleetBuilds
from rekindle.thresholds.fleet_limits import FLEET_REFRESH_POLL_SECONDS, FLEET_REFRESH_SECONDS


class DeployResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `fleet deploy` did, and the builds afterwards."""

    build: str
    before: str
    """Build that was current before."""
    woken: int = 0
    """Number of idle agents and pipelines that were told to move."""
    moved: int = 0
    """Number of agents and pipelines that were moved in the middle of their runs."""
    after: FleetBuilds


async def deploy(client: Client, build: str, *, moves: bool = False) -> DeployResult:
    """Make a build the current one, and let idle agents move to it.

    Running agents move with their next event. With `moves`, all agents move immediately, also those
    that are stuck and those whose build no worker runs.
    """
    before = await deployments.read_builds(client)
    _require_workers(before, build)
    if before.current != build:
        await deployments.set_current(client, build)
    if before.ramping:
        await deployments.set_ramp(client, "", 0)
    moved = await _move_all(client, before, build) if moves else 0
    woken, idle = 0, _render_idle_query(before, build)
    if idle:
        woken = await workflow_moves.refresh(client, idle)
        await _await_none(client, idle)
    return DeployResult(
        build=build,
        before=before.current,
        woken=woken,
        moved=moved,
        after=await deployments.read_builds(client),
    )


async def ramp(client: Client, build: str, percent: float) -> DeployResult:
    """Let a share of the agents move to a build with their next reports."""
    before = await deployments.read_builds(client)
    _require_workers(before, build)
    if before.current == build:
        raise UsageError(
            f"build {build} is the current build already",
            hint="name another build with BUILD; `rekindle doctor` lists problems with builds",
        )
    await deployments.set_ramp(client, build, percent)
    after = await deployments.read_builds(client)
    return DeployResult(build=build, before=before.current, after=after)


async def roll_back(client: Client, *, moves: bool = False) -> DeployResult:
    """End a ramp, or else make the previous build the current one again."""
    before = await deployments.read_builds(client)
    if before.ramping:
        return await deploy(client, before.current, moves=moves)
    previous = before.find_previous()
    if not previous:
        raise NotFoundError(
            "the fleet has no previous build",
            hint="name the build to return to: `rekindle fleet deploy BUILD`",
        )
    return await deploy(client, previous, moves=moves)


async def _move_all(client: Client, builds: FleetBuilds, target: str) -> int:
    """Move all workflows of other builds.

    The engine lists workers for a minute after they have stopped, so it is unknown which of these
    builds still have one.
    """
    moved = 0
    for known in builds.builds:
        if known.build != target:
            query = deployments.render_build_query(known.build)
            moved += await workflow_moves.move(client, query, target)
    return moved


def _require_workers(builds: FleetBuilds, build: str) -> None:
    known = builds.find(build)
    if known is not None and known.workers:
        return
    others = ", ".join(builds.find_with_workers()) or "none"
    raise NotFoundError(
        f"no worker runs build {build}; builds with workers: {others}",
        hint=f"start a worker of build {build} first, with `rekindle fleet worker` or "
        "`rekindle fleet decider`",
    )


def _render_idle_query(builds: FleetBuilds, target: str) -> str:
    """Return the query for workflows on other builds that no event will wake soon."""
    others = [known.build for known in builds.builds if known.workers and known.build != target]
    if not others:
        return ""
    versions = ", ".join(f'"{deployments.DEPLOYMENT}:{build}"' for build in others)
    return (
        f'TemporalWorkerDeploymentVersion IN ({versions}) AND ExecutionStatus="Running" AND '
        'WorkflowType IN ("Agent", "Pipeline", "Team") AND '
        '(RekindleState IS NULL OR RekindleState != "running")'
    )


async def _await_none(client: Client, query: str) -> None:
    """Wait a moment until no workflow matches, because each takes some time to move."""
    deadline = time.monotonic() + FLEET_REFRESH_SECONDS
    while time.monotonic() < deadline and (await client.count_workflows(query)).count:  # noqa: ASYNC110 - of another program
        await asyncio.sleep(FLEET_REFRESH_POLL_SECONDS)
