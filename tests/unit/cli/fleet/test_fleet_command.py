"""The fleet's commands and its section: without cost for a laptop, with clear messages."""

import json
import subprocess
import sys
from contextlib import suppress

import pytest

from rekindle.cli.main import run
from rekindle.errors import ManifestError
from rekindle.wiring.access.trust_checks import accept_folder

MANIFEST = "version: 1\nagents:\n  trades:\n    harness: command\n    command: ['true']\n"
WHAT_IS_IMPORTED = """
import json, sys
from rekindle.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""
WITHOUT_THE_EXTRA = """
import sys
sys.modules["MODULE"] = None
from rekindle.cli.main import run
sys.exit(run(["fleet", "key"]))
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PROMPT.md").write_text("work")
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    accept_folder(tmp_path)
    return tmp_path


def say(project, section):
    (project / "rekindle.yaml").write_text(f"{MANIFEST}{section}\n")
    with suppress(ManifestError):
        accept_folder(project)


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["fleet", "--help"], ["doctor"]])
@pytest.mark.parametrize("section", ["", "fleet: {}"])
def test_without_a_fleet_nothing_of_it_is_imported(project, arguments, section):
    """A laptop needs no engine, and does not wait for one."""
    say(project, section)
    done = subprocess.run(
        [sys.executable, "-c", WHAT_IS_IMPORTED, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert "rekindle.cli.main" in modules
    tops = {name.partition(".")[0] for name in modules}
    assert tops.isdisjoint({"temporalio", "cryptography", "google"})


@pytest.mark.parametrize("module", ["temporalio", "cryptography"])
def test_without_the_extra_the_error_says_what_to_install(module):
    """The message is a sentence, not a missing module."""
    program = WITHOUT_THE_EXTRA.replace("MODULE", module)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 10
    assert f"a fleet needs {module}" in done.stderr
    assert "pip install 'rekindle-agents[fleet]'" in done.stderr


def test_the_doctor_warns_of_documents_that_anyone_can_read(project, capsys):
    """A readable database is only a warning; an engine that does not answer is a problem."""
    say(project, "fleet: {address: '127.0.0.1:9'}")
    assert run(["doctor"]) == 8
    out = capsys.readouterr().out
    assert "· fleet 127.0.0.1:9: the engine's database stores" in out
    assert "rekindle fleet key" in out
    assert "✗ fleet 127.0.0.1:9: the engine at 127.0.0.1:9 could not be reached" in out
    say(project, "fleet: {address: '127.0.0.1:9', codec: {keys: [$A]}}")
    assert run(["doctor"]) == 8
    assert "engine's database" not in capsys.readouterr().out


def test_a_key_in_the_manifest_is_refused_by_every_command(project, capsys):
    """The error does not repeat it."""
    say(project, "fleet: {api_key: hunter2}")
    assert run(["status"]) == 3
    said = capsys.readouterr().err
    assert "rekindle.yaml:6" in said
    assert "$ENGINE_KEY" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("fleet.address", "fleet.address = 127.0.0.1:7233\n"),
        ("fleet.tls", "fleet.tls = {ca: a.pem, server_name: b} (default not set)\n"),
        ("fleet.api_key", 'fleet.api_key = $KEY (default "")\n'),
    ],
)
def test_each_key_is_explained(project, capsys, key, shown):
    """It shows the value in force and the default."""
    say(project, "fleet: {tls: {ca: a.pem, server_name: b}, api_key: $KEY}")
    assert run(["config", "explain", key]) == 0
    assert shown in capsys.readouterr().out
    assert run(["config", "explain", key, "--json"]) == 0


def test_a_credential_helper_in_the_default_folder_for_the_agents_is_refused(project, capsys):
    say(project, "fleet: {address: '127.0.0.1:1'}")
    helper = project / ".rekindle/fleet/helper"
    helper.parent.mkdir(parents=True)
    helper.write_text("#!/bin/sh\n")
    helper.chmod(0o755)
    arguments = ["fleet", "worker", "--sandbox", "off", "--credentials", str(helper)]
    assert run(arguments) != 0
    said = capsys.readouterr().err
    assert "is in the folder for the agents" in said
    assert f"move it out of {helper.parent}" in said
