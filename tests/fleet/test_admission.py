"""Admission of hosts: they must be able to read the agents, and the engine to show them."""

import asyncio
import os
import re
import signal
import subprocess
import sys

import pytest
from temporalio.client import Client

from fleet.deciding import sandboxed
from fleet.engine import Engine, program
from fleet.scripted import definition
from fleet.working import worker
from rekindle.errors import CodecKeyError, EngineError, PlainTextError
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.commands import fleet_checks
from rekindle.fleet.engine import encryption_keys
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.engine.dev_server import SEARCH_ATTRIBUTES
from rekindle.fleet.hosts import host_admission
from rekindle.fleet.hosts.worker import run_host
from rekindle.policy.settings.runtime_settings import (
    CodecSettings,
    FleetSettings,
)

ENVIRON = {"OURS": encryption_keys.generate_key(), "OTHER": encryption_keys.generate_key()}
FULL = {"A": "Int", "B": "Int", "C": "Int"}
"""The engine has room for three integers: with these it refuses to create ours."""
SECONDS = 30


@pytest.fixture
def project(tmp_path):
    made = tmp_path / "project"
    made.mkdir()
    return made


def reached(engine, project, *names, strict=True):
    """Connect to the engine with these keys."""
    fleet = FleetSettings(
        address=engine.address, codec=CodecSettings(keys=list(names), strict=strict)
    )
    return connect(fleet, project, ENVIRON)


async def begun(engine, project, *names):
    """Start an agent, encrypted with the first of these keys, and wait until the list has it."""
    agents = AgentClient(await reached(engine, project, *names))
    await agents.begin("keeper", definition("pool"))
    async with asyncio.timeout(SECONDS):
        while not [one async for one in agents.listed()]:
            pass  # its list may lag a second


def hosting(client, project):
    """Run a host until it takes agents or is refused; return its output."""
    words = []

    def say(word):
        words.append(word)
        if "takes up to" in word:
            os.kill(os.getpid(), signal.SIGTERM)

    async def run():
        own = {"host": "one", "pool": "pool", "slots": 1}
        async with asyncio.timeout(SECONDS):
            await run_host(
                await client, **own, root=project / "root", say=say, heartbeat_seconds=5.0
            )
        return words

    return run()


@pytest.mark.parametrize("names", [[], ["$OTHER"]])
def test_a_host_that_cannot_read_the_agents_is_refused(own_engine, project, names):
    """With another key, or with none, the error names the missing key."""

    async def run():
        await begun(own_engine, project, "$OURS")
        await hosting(reached(own_engine, project, *names), project)

    with pytest.raises(CodecKeyError) as refused:
        asyncio.run(run())
    assert (
        refused.value.wanted
        == encryption_keys.load_keys(CodecSettings(keys=["$OURS"]), project, ENVIRON)[0].id
    )
    assert "`fleet: codec:`" in refused.value.hint


def test_its_command_ends_at_once_and_says_why(own_engine, project):
    """It has the exit code of an engine that refuses."""
    asyncio.run(begun(own_engine, project, "$OURS"))
    (project / "rekindle.yaml").write_text(
        f"version: 1\nfleet: {{address: '{own_engine.address}', codec: {{keys: [$OTHER]}}}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "rekindle", "fleet", "worker", "--root", "root"],
        cwd=project,
        env={**os.environ, **ENVIRON},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == CodecKeyError.exit_code
    assert "which is not configured here" in done.stderr
    assert "takes up to" not in done.stdout


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(["$OURS"], ["$OURS"]), (["$OURS"], ["$OTHER", "$OURS"]), ([], ["$OURS"]), ([], [])],
)
def test_a_host_that_can_read_them_is_let_in(own_engine, project, theirs, ours):
    """This also holds while keys are changed, and when a fleet switches encryption on."""

    async def run():
        await begun(own_engine, project, *theirs)
        return await hosting(reached(own_engine, project, *ours, strict=bool(theirs)), project)

    assert "takes up to 1 agent" in asyncio.run(run())[0]


def test_a_host_that_refuses_plain_text_is_not_let_in_where_an_agent_has_it(own_engine, project):
    """A newer encrypted document does not help; the host would silently hold that agent up."""

    async def run():
        await begun(own_engine, project)
        newer = AgentClient(await reached(own_engine, project, "$OURS", strict=False))
        await newer.begin("newer", definition("pool"))
        async with asyncio.timeout(SECONDS):
            while len([one async for one in newer.listed()]) < 2:
                pass  # its list may lag a second
        await hosting(reached(own_engine, project, "$OURS"), project)

    with pytest.raises(PlainTextError) as refused:
        asyncio.run(run())
    assert refused.value.workflow.endswith("/keeper")
    assert refused.value.exit_code == EngineError.exit_code


def test_doctor_says_when_plain_text_can_be_refused(own_engine, project):
    """It names the agents that have plain text, and the hosts that lack the key."""

    async def found(*names, **how):
        fleet = FleetSettings(
            address=own_engine.address, codec=CodecSettings(keys=list(names), **how)
        )
        client = await connect(fleet, project, ENVIRON)
        return [one.what for one in await fleet_checks._check_encryption(client, fleet)]

    async def run():
        first = await found("$OURS", strict=False)
        plain = await reached(own_engine, project)
        async with sandboxed(plain, AgentWorkflow):
            await begun(own_engine, project)
            agents = AgentClient(await reached(own_engine, project, "$OURS", strict=False))
            async with asyncio.timeout(SECONDS):
                while len(before := await found("$OURS", strict=False)) < 2:
                    pass  # its list may lag a second
            await agents.remove("keeper")
        return first, before, await found(), await found("$OURS")

    (first,), (hosts, agents), without, after = asyncio.run(run())
    assert first.startswith("plain text is accepted, although")
    assert "do not have the key" in hosts
    assert "plain text for keeper" in agents
    assert without == []
    assert "plain text" not in "".join(after)


def test_a_host_is_admitted_to_a_fleet_without_agents(own_engine, project):
    """There is nothing yet that it could not read."""
    said = asyncio.run(hosting(reached(own_engine, project, "$OTHER"), project))
    assert "takes up to 1 agent" in said[0]


def test_an_engine_that_refuses_lists_still_admits_hosts(own_engine):
    """A host that may not list agents or attributes is still admitted."""

    async def run():
        client = await Client.connect(own_engine.address, namespace="nowhere")
        return await host_admission.require_admission(client)

    assert asyncio.run(run()) is None


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (FULL, SEARCH_ATTRIBUTES),
        ({"RekindleCycle": "Keyword"}, {"RekindleCycle": "Int"}),
    ],
)
def test_a_host_that_may_not_create_missing_attributes_is_refused(
    tmp_path, project, there, missing
):
    """The error names each with its type, and the command that creates it."""
    with Engine(tmp_path, attributes=there) as engine, pytest.raises(EngineError) as refused:
        asyncio.run(hosting(reached(engine, project), project))
    assert refused.value.cause == "attributes"
    for name, kind in SEARCH_ATTRIBUTES.items():
        assert (f"{name} ({kind})" in str(refused.value)) == (name in missing)
        assert (f"--name {name} " in refused.value.hint) == (name in missing)


def test_the_named_command_creates_them(tmp_path, project):
    """The engine's own program accepts it word for word."""
    folders = [tmp_path / "full", tmp_path / "fresh"]
    for folder in folders:
        folder.mkdir()
    with Engine(folders[0], attributes=FULL) as engine, pytest.raises(EngineError) as refused:
        asyncio.run(hosting(reached(engine, project), project))
    with Engine(folders[1], attributes={}) as engine:
        (words,) = re.findall(r"`temporal (.+?)`", refused.value.hint)
        argv = [program(), *words.split(), "--address", engine.address]
        subprocess.run(argv, check=True, capture_output=True, timeout=SECONDS)

        async def missing():
            return await host_admission.find_missing_attributes(await reached(engine, project))

        assert asyncio.run(missing()) == {}


def test_a_host_creates_missing_attributes_if_it_may(tmp_path, project):
    """Then it takes agents."""

    async def run(engine):
        said = await hosting(reached(engine, project), project)
        return said, await host_admission.find_missing_attributes(await reached(engine, project))

    with Engine(tmp_path, attributes={"RekindleHost": "Keyword"}) as engine:
        said, missing = asyncio.run(run(engine))
    assert "takes up to 1 agent" in said[0]
    assert missing == {}


@pytest.mark.parametrize("root", [None, "deep/er"])
def test_a_host_makes_its_own_place(engine, tmp_path, root):
    """It works on a machine where Rekindle has never been configured."""
    said = f"version: 1\nagents: {{}}\nfleet: {{address: '{engine.address}', pool: places}}\n"
    (tmp_path / "rekindle.yaml").write_text(said)
    wanted = tmp_path / (root or ".rekindle/fleet")
    with worker(tmp_path, tmp_path / root if root else None, f"place-{bool(root)}"):
        assert wanted.is_dir()
