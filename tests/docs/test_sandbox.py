"""The guide to sandboxes, run with the program that it shows."""

import sys
from pathlib import Path

import pytest

import prerequisites
from documented import blocks, difference, steps
from rekindle.system.sandbox import probe
from rekindle.wiring.access.trust_checks import accept_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/sandbox.md"


@pytest.fixture
def project(tmp_path):
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    for name in ("work", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind in {"yaml", "python", "text"} and words:
            (tmp_path / words[0]).write_text(body)
    accept_folder(tmp_path)
    return tmp_path


def test_its_commands_print_what_it_shows(place, project):
    [body] = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "console"]
    [(line, shown)] = steps(body)
    assert line == "rekindle run"
    started = place.start(
        [sys.executable, "-I", "-m", "rekindle", "run"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(project / "home"), "LC_ALL": "C.UTF-8"},
        cwd=project,
    )
    assert started.wait() == 0, started.out + started.err
    assert not (found := difference(shown, started.out.splitlines())), (found, started.out)
    assert (project / "work/report.txt").read_text() == "mine"
    assert (project / "rekindle.yaml").read_text() != "mine"
