"""A harness that another package brings: it keeps the contract, and `rekindle run` finds it."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.sandbox import TASK
from loopback.fixtures import network, place
from plugin import environment
from rekindle.testing.harness_contract import HarnessContract

__all__ = ["network", "place"]

HERE = Path(__file__).parent
MANIFEST = """\
version: 1
agents:
  parrot: {harness: echo, prompt: PROMPT.md, cycles: 1, until: ['true']}
"""
PROGRAM = """\
#!{python} -I
import json, os, pathlib, sys
option, _, session = sys.argv[1].partition("=")
kept = pathlib.Path(f"session-{{session}}")
if option == "--resume" and not kept.exists():
    sys.exit("no such session")
print(json.dumps({{"opened": session}}), flush=True)
if not kept.exists():
    kept.touch()
    os.kill(os.getpid(), 9)
for line in sys.stdin:
    print(json.dumps({{"said": line.strip()}}), flush=True)
print(json.dumps({{"done": session}}), flush=True)
"""


def loaded():
    spec = importlib.util.spec_from_file_location(
        "rekindle_echo", HERE / "src/rekindle_echo/__init__.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestEcho(HarnessContract):
    harness = loaded()
    recordings = HERE / "recordings"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The plugin, as pip installs it, in an environment of its own beside the project's."""
    place = tmp_path_factory.mktemp("plugged") / "venv"
    python = environment.made(place)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    where = str(environment.packages(place))
    subprocess.run([*pip, "--target", where, str(HERE)], check=True, env=variables)
    return python


@pytest.fixture
def rekindle(installed, place, tmp_path):
    """Our program in that environment, in a project whose agent is of the plugin's kind."""
    project, programs = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    programs.mkdir()
    (project / "rekindle.yaml").write_text(MANIFEST)
    (project / "PROMPT.md").write_text(TASK)
    program = programs / "echo-agent"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def run(*words: str, code: int = 0) -> str:
        argv = [str(installed), "-I", "-m", "rekindle", *words]
        ended = place.start(argv, env=variables, cwd=project)
        assert ended.wait() == code, ended.out + ended.err
        return ended.out + ended.err

    return run


def test_an_agent_of_a_plugged_in_harness_is_kept_alive(rekindle):
    """It is killed in its first launch, resumes the same session, and completes."""
    said = rekindle("run")
    assert "Ship the parser, in small steps." not in said  # a resumed session is not told again
    assert "done and verified after cycle 1" in said
    rows = [json.loads(line) for line in rekindle("events", "--json").splitlines()]
    ended = [one for one in rows if one["kind"] == "launch.ended"]
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert len({one["session"] for one in ended}) == 1


def test_a_plugged_in_harness_is_offered_where_its_program_is(rekindle, tmp_path):
    """A new agent is of its kind, for no other CLI is there."""
    rekindle("init", "--yes", "--agent", "second")
    manifest = (tmp_path / "project/rekindle.yaml").read_text()
    assert manifest.count("harness: echo") == 2


def test_an_unknown_harness_is_named(rekindle, tmp_path):
    """The message lists the known ones, the plugged-in one included."""
    manifest = tmp_path / "project/rekindle.yaml"
    manifest.write_text(MANIFEST.replace("harness: echo", "harness: ecco"))
    assert "echo" in rekindle("run", code=3)
