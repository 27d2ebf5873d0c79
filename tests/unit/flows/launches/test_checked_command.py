"""Which hosts a command beside the CLI can reach."""

from types import SimpleNamespace

import pytest

from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.documents.manifest import Persona
from rekindle.errors import SandboxError
from rekindle.flows.launches import sandboxed_start
from rekindle.flows.launches.checked_command import CheckedCommand
from rekindle.flows.supervisor_ports import AgentSandbox, AgentSpec
from rekindle.harnesses.claude_code import claude_harness
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.system.sandbox import containments

PROFILE = SandboxProfile(network=("db.example:8080",))


@pytest.fixture
def reach(tmp_path, monkeypatch):
    """Return the hosts that `until:` can reach with these credentials."""
    seen = []

    def record(folder, hosts, setup):
        seen.extend(hosts)
        assert not setup
        raise SandboxError("no proxy here", hint="none")

    monkeypatch.setattr(sandboxed_start, "EgressProxy", record)
    monkeypatch.setattr(containments, "find_containment", lambda *, is_container: None)

    def run_until(credentials, profile=PROFILE, environment=None):
        seen.clear()
        paths = SimpleNamespace(marks=str(tmp_path), scratch=str(tmp_path))
        agent = AgentSpec(
            name="trades",
            harness=claude_harness,
            folder=str(tmp_path),
            task="",
            rules="",
            persona=Persona(),
            environment=environment or {},
            hook=(),
            sandbox=AgentSandbox(profile, paths),
            credentials=credentials,
        )
        redaction = SimpleNamespace(text=lambda text: text)
        world = SimpleNamespace(processes=None, store=SimpleNamespace(redaction=redaction))
        result = CheckedCommand(("true",), agent, world, seconds=1).run()
        assert "no proxy here" in result.words
        return list(seen)

    return run_until


def test_beside_a_credential_helper_a_command_cannot_reach_the_model(reach):
    assert reach(HostCredentials("/bin/helper")) == ["db.example:8080"]


@pytest.mark.parametrize("credentials", [None, HostCredentials()])
def test_without_a_helper_a_command_reaches_what_the_cli_does(reach, credentials):
    assert {"db.example:8080", "api.anthropic.com:443"} <= set(reach(credentials))


def test_on_a_host_only_its_operator_can_name_a_model_on_the_host(reach, monkeypatch):
    named = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:7233"}
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    assert "127.0.0.1:7233" in reach(None, PROFILE, named)
    on_host = SandboxProfile(network=("db.example:8080", "localhost:5432"), is_on_host=True)
    found = reach(None, on_host, named)
    assert {"db.example:8080", "api.anthropic.com:443"} <= set(found)
    assert not {"127.0.0.1:7233", "localhost:5432"} & set(found)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:7233")
    assert "127.0.0.1:7233" in reach(None, on_host, named)
