"""An accepted `fleet:` that is removed from the manifest is not taken for the end of its agents."""

import sys

import pytest

from rekindle.wiring.access import trust_checks

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"], until: ["true"]}
"""
FLEET = "fleet: {address: '127.0.0.1:9', tls: false}\n"
UNACCEPTED = 3


@pytest.fixture
def rekindle(place, tmp_path):
    """Create a project whose accepted fleet is gone from the manifest; return its runner."""
    project = tmp_path / "project"
    project.mkdir()
    manifest = project / "rekindle.yaml"
    manifest.write_text(MANIFEST + FLEET)
    (project / "PROMPT.md").write_text("Ship it.\n")
    trust_checks.accept_folder(project)
    manifest.write_text(MANIFEST)

    def run(*words):
        argv = [sys.executable, "-I", "-m", "rekindle", *words]
        environment = {"PATH": "/usr/bin:/bin", "REKINDLE_TRUST": ""}
        started = place.start(argv, env=environment, cwd=project)
        return started.wait(), started.out, started.err

    return run


@pytest.mark.parametrize("command", [["stop"], ["stop", "trades"], ["down"]])
def test_no_success_is_claimed(rekindle, command):
    code, out, err = rekindle(*command)
    assert (code, "stays stopped" in out) == (UNACCEPTED, False)
    assert 'fleet.address: "127.0.0.1:9" → removed' in err
    assert "the fleet may still be running trades" in err


def test_run_accepts_it_and_tells_how_to_end_the_agent_on_the_fleet(rekindle):
    code, out, err = rekindle("run")
    assert code == 0, out + err
    assert 'fleet.address: "127.0.0.1:9" → removed' in err
    assert "`rekindle fleet remove trades`" in err
    assert rekindle("stop")[0] == 0
