"""The files of `deploy/` are accepted by the programs that read them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

import prerequisites
from rekindle import config
from rekindle.cli.main import app
from sampling import WHOLE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "rekindle-worker.service"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def find_program(name: str) -> str:
    """Return a program beside this Python or on the PATH; without it, skip or fail the test."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        prerequisites.refuse(f"{name} is not installed")
    return found


def parse_command(words: list[str]) -> click.Context:
    """Return the command that words name, with its options; raise an error if it has others."""
    context = click.Context(app)
    command: click.Command = app
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command = found
    return command.make_context(command.name, words)


def test_the_database_ends_transactions_of_an_engine_that_hangs():
    """A history process that is frozen in a transaction must not keep its shards locked."""
    assert "idle_in_transaction_session_timeout=5s" in SERVICES["postgres"]["command"]


def test_the_linter_has_no_complaint_about_the_dockerfile():
    done = subprocess.run(
        [find_program("hadolint"), "--no-color", "-"],
        input=DOCKERFILE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_finds_a_problem():
    """So the previous test can fail."""
    done = subprocess.run(
        [find_program("hadolint"), "-"],
        input=DOCKERFILE.replace("&& rm -rf /var/lib/apt/lists/*", ""),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode


def test_the_image_runs_without_privileges_and_with_pinned_dependencies():
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE)[-1].isdecimal()
    script = (DEPLOY / "install.sh").read_text()
    installs = re.findall(r"pip (?:install|wheel)(?:\\\n|.)+", script)
    assert len(installs) == 4
    for install in installs:
        assert "--require-hashes" in install or "--no-deps" in install
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for copied in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in copied.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name


def test_its_command_exists():
    [words] = re.findall(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)
    assert parse_command(yaml.safe_load(words)).params["health_address"] == "0.0.0.0:8080"


def test_the_engine_of_systemd_accepts_the_unit(tmp_path):
    """With a program that exists here, because it looks for it."""
    text = UNIT.read_text()
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/opt/rekindle/bin/rekindle", "/bin/true"))
    verify = [find_program("systemd-analyze"), "verify", "--man=no"]
    done = subprocess.run([*verify, unit], capture_output=True, text=True, check=False)
    # systemd 252 ignores this key.
    complaints = [line for line in done.stderr.splitlines() if "'DelegateSubgroup'" not in line]
    assert (done.returncode, complaints) == (0, [])
    unit.write_text(unit.read_text().replace("Restart=always", "Restart=often"))
    done = subprocess.run([*verify, unit], capture_output=True, text=True, check=False)
    assert "often" in done.stderr


def test_the_command_of_the_unit_exists():
    [words] = re.findall(r"^ExecStart=\S+ (.+)$", UNIT.read_text(), re.MULTILINE)
    assert parse_command(words.split()).params["root"] == Path("/var/lib/rekindle/agents")


def test_the_services_refer_to_each_other():
    """Each waits for a service that exists, and for a state that the service can reach."""
    for name, service in SERVICES.items():
        assert "image" in service, name
        for other, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
            else:
                assert SERVICES[other]["restart"].startswith("on-failure"), (name, other)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() or source in COMPOSE["volumes"], volume
        for port in service.get("ports", []):
            assert str(port).startswith("127.0.0.1:"), "neither has access control"


@pytest.mark.parametrize("name", ["decider", "worker"])
def test_the_commands_of_the_services_exist(name):
    assert parse_command(SERVICES[name]["command"]).params["trust"]


def test_the_services_need_their_secrets():
    """No default for a password or a key."""
    text = (DEPLOY / "compose.yaml").read_text()
    for variable in ("POSTGRES_PASSWORD", "REKINDLE_FLEET_KEY"):
        assert f"${{{variable}:?" in text
        assert f"${{{variable}:-" not in text


def test_the_manifest_of_the_services_is_valid(tmp_path):
    shutil.copy(DEPLOY / "rekindle.yaml", tmp_path)
    fleet = config.load_project(tmp_path).settings.fleet
    assert fleet.address == "temporal:7233"
    assert f"namespace create {fleet.namespace}" in str(SERVICES["namespace"]["command"])


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.skipif(not WHOLE, reason="installs all dependencies: only in `just torture`")
def test_the_contents_of_the_image_can_be_built_without_docker():
    argv = [sys.executable, ROOT / "tools/image.py", "--contents"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "bin/python -c: rekindle.fleet.hosts.worker" in done.stdout
