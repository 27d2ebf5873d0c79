"""Credentials from a host's helper, before a launch."""

import json
import os

import msgspec
import pytest

from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.documents.manifest import Persona
from rekindle.errors import CredentialsError
from rekindle.flows.launches.launch_access import LaunchAccess, fetch_access
from rekindle.flows.supervisor_ports import AgentSandbox, AgentSpec
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.system.sandbox.gateway_setup import GatewaySetup, unpack_environment
from rekindle.wiring.open_store import HARNESSES

KEYS = {"api.anthropic.com": {"header": "x-api-key", "value": "sk-real"}}


@pytest.fixture
def make(tmp_path):
    def make_agent(output, harness=claude_harness, *, sandboxed=True, program=True):
        helper = tmp_path / "helper"
        (tmp_path / "output").write_text(output if isinstance(output, str) else json.dumps(output))
        helper.write_text(f"#!/bin/sh\ncat >{tmp_path}/asked\ncat {tmp_path}/output\n")
        helper.chmod(0o755)
        return AgentSpec(
            name="trades",
            harness=harness,
            folder=str(tmp_path),
            task="",
            rules="",
            persona=Persona(),
            environment={},
            hook=(),
            sandbox=AgentSandbox(None, None) if sandboxed else None,
            credentials=HostCredentials(str(helper) if program else "", "red", "repository"),
        )

    return make_agent


def test_without_a_helper_there_are_no_credentials(make):
    assert fetch_access(make({}, program=False), "1") is None
    assert fetch_access(msgspec.structs.replace(make({}), credentials=None), "1") is None


def test_the_helper_is_told_about_the_launch(make, tmp_path):
    assert fetch_access(make({"env": {"A": "b"}}), "1") == LaunchAccess({"A": "b"})
    assert json.loads((tmp_path / "asked").read_text()) == {
        "agent": "trades",
        "team": "red",
        "harness": "claude-code",
        "repository": "repository",
        "launch": "1",
    }


def test_keys_are_only_in_the_setup_of_the_gateway(make):
    access = fetch_access(make({"env": {"A": "b"}, "keys": KEYS}), "1")
    assert b"sk-real" in access.setup
    assert "sk-real" not in repr((access.environment, access.arguments, access))
    assert access.environment["A"] == "b"
    url = "http://127.0.0.1:3128/api.anthropic.com"
    assert access.environment["ANTHROPIC_BASE_URL"] == url
    assert "api.anthropic.com:443" in access.keyed


def test_the_helper_gets_the_same_bytes_again_for_new_keys(make, monkeypatch):
    """A variable need not be valid text."""
    monkeypatch.setitem(os.environb, b"ODD", b"caf\xe9 \xc3\xa9")
    setup = msgspec.json.decode(fetch_access(make({"keys": KEYS}), "1").setup, type=GatewaySetup)
    assert unpack_environment(setup.environment) == dict(os.environ)


def test_arguments_come_after_the_program_of_the_cli(make):
    keys = {"api.openai.com": {"header": "authorization", "value": "Bearer sk-real"}}
    access = fetch_access(make({"keys": keys}, codex_harness), "1")
    given = access.add_arguments(("node", "codex.js", "exec"), ("node", "codex.js"))
    assert given[:2] == ("node", "codex.js")
    assert given[-1] == "exec"
    base = '--config=model_providers.rekindle.base_url="http://127.0.0.1:3128/api.openai.com/v1"'
    assert base in given


def test_keys_need_a_sandbox(make):
    with pytest.raises(CredentialsError, match="only a sandbox can keep") as refused:
        fetch_access(make({"keys": KEYS}, sandboxed=False), "1")
    assert "--sandbox off" in refused.value.hint
    assert fetch_access(make({"env": {"A": "b"}}, sandboxed=False), "1")


@pytest.mark.parametrize(
    ("output", "harness", "reason"),
    [
        ("garbage", claude_harness, "the expected JSON"),
        ({"keys": KEYS}, codex_harness, "printed no key for api.openai.com"),
        ({"keys": KEYS}, HARNESSES["command"], "command cannot use a gateway"),
        ({"keys": KEYS, "expires": "2000-01-01T00:00:00Z"}, claude_harness, "already expired"),
    ],
)
def test_unusable_credentials_are_refused(make, monkeypatch, output, harness, reason):
    """A key in the environment of the host is not used instead."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-host")
    with pytest.raises(CredentialsError, match=reason) as refused:
        fetch_access(make(output, harness), "1")
    assert refused.value.hint
    assert "sk-" not in str(refused.value) + refused.value.hint
