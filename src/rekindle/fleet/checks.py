"""Whether a fleet could run its agents now: its engine, its workers, where the work is pushed."""

from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.config import Project
from rekindle.documents.workspace import for_any_host
from rekindle.errors import RekindleError
from rekindle.fleet import pollers
from rekindle.fleet.admission import making, missing_attributes, plain_agents
from rekindle.fleet.codec import Codec
from rekindle.fleet.define import define, files_with_secrets
from rekindle.fleet.schedules import ZONE
from rekindle.fleet.store import FleetStore
from rekindle.fleet.workspace import remote_of
from rekindle.policy.mornings import NEVER
from rekindle.policy.settings import FLEET_RPC_SECONDS, AgentDefaults, Fleet
from rekindle.stores.files.inspection import Problem

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_ENCRYPT = "`rekindle stop`, `fleet remove` and `fleet import` encrypt it"
_WORKER = "`rekindle fleet worker{}` on each host that is to run agents"


def of_engine(store: FleetStore, fleet: Fleet) -> list[Problem]:
    """Can it be reached, does it know us, and does anybody work for it?"""
    try:
        return store.wait_for(_engine(store.agents.client, fleet))
    except RekindleError as error:
        return [Problem(str(error), error.hint)]
    except RPCError as refused:
        what = f"the engine at {fleet.address} does not answer: {refused.message}"
        return [Problem(what, "look at the engine's own log")]


def of_briefs(project: Project) -> list[Problem]:
    brief = project.settings.runtime.brief
    if brief.zone or brief.at == NEVER:
        return []
    what = f"briefs are written at {brief.at} {ZONE}: a fleet has no time zone of its own"
    return [Problem(what, "say `runtime: {brief: {zone: Europe/Zurich}}`", is_note=True)]


def of_definition(project: Project, fleet: Fleet, name: str) -> list[Problem]:
    """Report what keeps an agent from being sent to the fleet, and what it would lose."""
    try:
        define(project, fleet, name)
        files = files_with_secrets(project, name)
    except RekindleError as error:
        return [Problem(str(error), error.hint)]
    what = "holds a secret, which is not sent to the fleet"
    fix = "name a variable under `env:` instead; what is not a secret goes to `redact: allow:`"
    return [Problem(f"{file} {what}", fix, is_note=True) for file in files]


def of_workspace(project: Project, name: str) -> list[Problem]:
    folder = project.manifest.agents[name].dir or AgentDefaults().dir
    found = remote_of(project.path / folder)
    if found is not None and for_any_host(found.url) != found.url:
        what = "the url of its git remote has a login, which no host of the fleet is told"
        mend = "give each host credentials of its own: a key, or a credential helper of git"
        return [Problem(what, mend, is_note=True)]
    if found is not None:
        return []
    what = "its folder has no git remote: its work stays on the host that it runs on"
    mend = "`git remote add origin URL`; when a host is gone, another goes on from there"
    return [Problem(what, mend, is_note=True)]


async def _engine(client: Client, fleet: Fleet) -> list[Problem]:
    found = []
    if missing := await missing_attributes(client):
        what = f"the engine does not know the search attributes {', '.join(missing)}"
        mend = f"a worker makes them; where it may not: {making(client, missing)}"
        found.append(Problem(what, mend))
    if not await pollers.has_worker(client, _MOST):
        found.append(Problem("no worker is up: nothing is decided", _WORKER.format("")))
    elif not await pollers.has_host(client, fleet.pool, _MOST):
        what = f"no host of pool {fleet.pool} is up: nothing is run"
        found.append(Problem(what, _WORKER.format(f" --pool {fleet.pool}")))
    return found + await _encryption(client, fleet)


async def _encryption(client: Client, fleet: Fleet) -> list[Problem]:
    """Report hosts without our key and agents in plain text; then plain text can be refused."""
    codec = client.data_converter.payload_codec
    if not isinstance(codec, Codec) or not codec.known:
        return []
    key = next(iter(codec.known))
    found = []
    if hosts := await pollers.without_key(client, key, _MOST):
        what = f"hosts without the key {key}: {', '.join(hosts)}"
        found.append(Problem(what, "name it under `fleet: codec:` there, and start them again"))
    if agents := await plain_agents(client):
        what = f"the engine has plain text of {', '.join(agents)}"
        found.append(Problem(what, f"{_ENCRYPT}, or wait until its history is continued"))
    if not found and not fleet.codec.strict:
        what = "plain text is accepted, although all hosts and agents have the key"
        found.append(Problem(what, "remove `strict: false` from `fleet: codec:`"))
    return found
