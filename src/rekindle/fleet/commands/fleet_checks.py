"""Check whether a fleet can run its agents: the engine, the workers and the git remotes."""

from collections import defaultdict
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.config import Project
from rekindle.documents.commits.work_commit import strip_user
from rekindle.errors import RekindleError
from rekindle.fleet.commands.define_agent import define_agent, find_files_with_secrets
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.engine import deployments, queue_pollers
from rekindle.fleet.engine.payload_codec import EncryptingCodec
from rekindle.fleet.engine.stuck_workflows import list_stuck
from rekindle.fleet.hosts.host_admission import (
    find_missing_attributes,
    find_plain_agents,
    render_make_command,
)
from rekindle.fleet.hosts.work_branch import find_remote
from rekindle.policy.briefs.brief_schedule import NEVER
from rekindle.policy.fleet.fleet_builds import BuildProblem, explain_abandoned, explain_stuck
from rekindle.policy.fleet.scheduled_run import FLEET_ZONE
from rekindle.policy.settings.runtime_settings import (
    FLEET_RPC_SECONDS,
    AgentDefaults,
    FleetSettings,
)
from rekindle.stores.files.folder_check import FolderProblem

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_WORKER = "run `rekindle fleet worker{}` on each host that should run agents"


def check_engine(store: FleetStore, fleet: FleetSettings) -> list[FolderProblem]:
    """Return problems with the connection to the engine, the workers and the encryption."""
    try:
        return store.wait_for(_check_connection(store.agents.client, fleet))
    except RekindleError as error:
        return [FolderProblem(str(error), error.hint)]
    except RPCError as refused:
        what = f"the engine at {fleet.address} does not answer: {refused.message}"
        return [FolderProblem(what, "check the engine's own log")]


def check_briefs(project: Project) -> list[FolderProblem]:
    brief = project.settings.runtime.brief
    if brief.zone or brief.at == NEVER:
        return []
    what = f"briefs are written at {brief.at} {FLEET_ZONE}, because a fleet has no time zone"
    return [FolderProblem(what, "set `runtime: {brief: {zone: Europe/Zurich}}`", is_note=True)]


def check_definition(project: Project, fleet: FleetSettings, name: str) -> list[FolderProblem]:
    """Return problems that keep an agent off the fleet, and files that contain secrets."""
    try:
        define_agent(project, fleet, name)
        files = find_files_with_secrets(project, name)
    except RekindleError as error:
        return [FolderProblem(str(error), error.hint)]
    what = "contains a secret, which is not sent to the fleet"
    fix = (
        "put the secret into a variable under `env:`, or add it to `redact: allow:` if it is not "
        "a secret"
    )
    return [FolderProblem(f"{file} {what}", fix, is_note=True) for file in files]


def check_workspace(project: Project, name: str) -> list[FolderProblem]:
    folder = project.manifest.agents[name].dir or AgentDefaults().dir
    remote = find_remote(project.path / folder)
    if remote is not None and strip_user(remote.url) != remote.url:
        what = "the URL of its git remote contains a login, which is not sent to the fleet"
        fix = "give each host its own credentials: a key, or a git credential helper"
        return [FolderProblem(what, fix, is_note=True)]
    if remote is not None:
        return []
    what = "its folder has no git remote, so its work stays on the host that runs it"
    fix = "add one with `git remote add origin URL`, so that another host can continue its work"
    return [FolderProblem(what, fix, is_note=True)]


async def _check_connection(client: Client, fleet: FleetSettings) -> list[FolderProblem]:
    problems = []
    if missing := await find_missing_attributes(client):
        what = f"the engine lacks the search attributes {', '.join(missing)}"
        fix = f"start a worker, which creates them, or run {render_make_command(client, missing)}"
        problems.append(FolderProblem(what, fix))
    has_worker = await queue_pollers.has_worker(client, _MOST)
    if not has_worker:
        problems.append(
            FolderProblem("no worker is running, so no agent can continue", _WORKER.format(""))
        )
    elif not await queue_pollers.has_host(client, fleet.pool, _MOST):
        what = f"no host of pool {fleet.pool} is running, so no agent can run"
        problems.append(FolderProblem(what, _WORKER.format(f" --pool {fleet.pool}")))
    found = await _find_stuck(client)
    if has_worker:
        found += explain_abandoned(await deployments.read_builds(client))
    problems += [FolderProblem(problem.what, problem.fix) for problem in found]
    return problems + await _check_encryption(client, fleet)


async def _find_stuck(client: Client) -> list[BuildProblem]:
    """Return the agents that are stuck, together if they have the same build and cause."""
    stuck = defaultdict(list)
    async for found in list_stuck(client):
        stuck[found.build, found.cause].append(found.name)
    return [explain_stuck(names, *key) for key, names in sorted(stuck.items())]


async def _check_encryption(client: Client, fleet: FleetSettings) -> list[FolderProblem]:
    """Return hosts that lack the key and agents in plain text, or a suggestion to use `strict`."""
    codec = client.data_converter.payload_codec
    if not isinstance(codec, EncryptingCodec) or not codec.known:
        return []
    key = next(iter(codec.known))
    problems = []
    if hosts := await queue_pollers.find_workers_without_key(client, key, _MOST):
        what = f"these hosts do not have the key {key}: {', '.join(hosts)}"
        problems.append(
            FolderProblem(what, "add the key to `fleet: codec:` there, and restart the workers")
        )
    if agents := await find_plain_agents(client):
        what = f"the engine stores plain text for {', '.join(agents)}"
        problems.append(FolderProblem(what, "`rekindle fleet keys --rotate` encrypts it"))
    if not problems and not fleet.codec.strict:
        what = "plain text is accepted, although all hosts and agents have the key"
        problems.append(FolderProblem(what, "remove `strict: false` from `fleet: codec:`"))
    return problems
