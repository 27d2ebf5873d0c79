"""The guide to the Python API and the example program, run as they are."""

import sys
from pathlib import Path

import pytest

from documented import join_python
from documented_agent import write_project
from rekindle.wiring.access import trust_checks

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/python.md").read_text()
EXAMPLE = ROOT / "examples/keep_ten_agents.py"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def play(place, tmp_path):
    """Run a program in the folder that contains the project `shop`."""

    def run(*argv):
        started = place.start(
            [sys.executable, *argv],
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
            cwd=tmp_path,
        )
        assert started.wait() == 0, started.out + started.err
        return started.out

    return run


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def test_the_guide_runs_as_written(play, shop):
    write_project(shop, "scout")
    trust_checks.accept_folder(shop)
    printed = play("-c", join_python(GUIDE, "files"))
    assert printed.startswith("scout stopped ")
    assert "asks: Waiting for Ann to choose a database" in printed
    assert "ended: done" in printed
    assert "['Use sqlite']" in printed
    assert "+Ship POST /profile" in printed


def test_the_guide_runs_an_agent_without_a_manifest(play, tmp_path):
    (tmp_path / "work").mkdir()
    printed = play("-c", join_python(GUIDE, "alone", only=True))
    assert "True\n" in printed
    assert printed.endswith("running\n")


def test_ten_agents_are_kept_alive_and_answered(play, shop):
    """One of them loses its supervisor."""
    agents = [*(f"agent-{number}" for number in range(9)), "agent-killed"]
    write_project(shop, *agents)
    trust_checks.accept_folder(shop)
    printed = play(str(EXAMPLE), str(shop))
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    assert all((shop / f".done-{name}").exists() for name in agents)
    assert printed.count("→ Take sqlite") == len(agents)
    assert printed.count("agent-killed: started") == 2
