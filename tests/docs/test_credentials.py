"""The helper in the guide to credentials prints what a host accepts."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.documents.launches.launch_credentials import parse_credentials
from rekindle.documents.launches.sandbox_needs import SandboxNeeds
from rekindle.policy.sandbox.gateway_access import make_access
from rekindle.wiring.open_store import HARNESSES

GUIDE = (Path(__file__).parents[2] / "docs/guides/credentials.md").read_text()


@pytest.fixture
def helper(tmp_path):
    found = [text for kind, words, text in blocks(GUIDE) if kind == "python" and "helper" in words]
    (script,) = found
    program = tmp_path / "helper"
    program.write_text(script.replace("/usr/bin/env python3", sys.executable))
    program.chmod(0o755)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/red").write_text("sk-0123\n")
    return program


def run(helper, command):
    environment = {"MODEL_KEYS": str(helper.parent / "keys"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=helper.parent, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_the_guide_shows_what_the_helper_prints(helper):
    ((command, shown),) = [
        step
        for kind, words, text in blocks(GUIDE)
        if words == ["helper"] and kind == "console"
        for step in steps(text)
    ]
    assert not difference(shown, run(helper, ["sh", "-c", command]).splitlines())


@pytest.mark.parametrize("harness", ["claude-code", "codex", "gemini"])
def test_a_host_accepts_what_the_helper_prints(helper, harness):
    asked = {"agent": "a", "team": "red", "harness": harness, "repository": "", "launch": "1"}
    command = ["sh", "-c", f"echo '{json.dumps(asked)}' | ./helper"]
    parsed = parse_credentials(run(helper, command).encode(), "helper", datetime.now(UTC))
    needs: SandboxNeeds = HARNESSES[harness].SANDBOX
    assert make_access("helper", harness, needs, {}, parsed).environment
    assert parsed.expires is not None
