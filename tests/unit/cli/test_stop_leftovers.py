"""`stop` and `down` end the leftovers of an agent without a supervisor, in any manifest."""

import sys

import pytest

from rekindle import config
from rekindle.documents.launches.launch_types import (
    FOLDER,
    LAUNCH_VARIABLE,
)
from rekindle.errors import OwnershipError
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: [sleep, "600"]}
"""
SECOND = "  other: {harness: command, command: [sleep, '600']}\n"
FLEET = "fleet: {address: '127.0.0.1:9', tls: false}\n"
USAGE_ERROR = 2


class Leftover:
    """A trusted project without a supervisor, and a process with the mark of a launch."""

    def __init__(self, place, path):
        self.place, self.path, self.manifest = place, path, path / "rekindle.yaml"
        path.mkdir()
        self.manifest.write_text(MANIFEST)
        trust_checks.accept_folder(path)
        open_store(config.load_project(path)).create("trades")
        self.process = self.leave("trades", path)

    def leave(self, agent, project):
        environment = {
            LAUNCH_VARIABLE: f"mark-{agent}-{project.name}",
            FOLDER: f"{project}/.rekindle/agents/{agent}",
        }
        return self.place.start(["/bin/sleep", "600"], env=environment, cwd=self.path)

    def __call__(self, *words, at=".", code=0):
        started = self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *words],
            env={"PATH": "/usr/bin:/bin", "REKINDLE_TRUST": ""},
            cwd=self.path / at,
        )
        assert started.wait() == code, started.out + started.err
        return started


@pytest.fixture
def project(place, tmp_path):
    return Leftover(place, tmp_path / "project")


def _plant_below(project):
    (project.path / "src").mkdir()
    (project.path / "src/rekindle.yaml").write_text(MANIFEST)


TAMPERED = {
    "fleet": lambda project: project.manifest.write_text(MANIFEST + FLEET),
    "broken": lambda project: project.manifest.write_text("x: ["),
    "removed": lambda project: project.manifest.unlink(),
    "renamed": lambda project: project.manifest.write_text(MANIFEST.replace("trades", "eve")),
    "second agent": lambda project: project.manifest.write_text(MANIFEST + SECOND),
    "planted below": _plant_below,
}


@pytest.mark.parametrize(
    ("command", "tampered"),
    [*(("stop", one) for one in TAMPERED), ("down", "fleet"), ("down", "renamed")],
)
def test_no_manifest_keeps_a_process_alive(project, command, tampered):
    TAMPERED[tampered](project)
    project(command, at="src" if tampered == "planted below" else ".")
    assert project.process.wait() < 0
    project.manifest.write_text(MANIFEST)
    run = open_store(config.load_project(project.path)).read("trades").projection.run
    assert run.desired == "stopped"


def test_a_process_that_claims_a_folder_below_hides_no_other(project):
    """Any process can name any folder in its environment; the trusted one above is meant."""
    _plant_below(project)
    claimed = project.leave("trades", project.path / "src")
    project("stop", at="src")
    assert project.process.wait() < 0
    assert claimed.pid in project.place.living()


def test_which_of_two_is_meant_only_the_operator_can_tell(project):
    project.manifest.write_text(MANIFEST + SECOND)
    project.leave("other", project.path)
    assert "which agent?" in project("stop", code=USAGE_ERROR).err


PLACED = """\
version: 1
agents:
  trades: {harness: command, command: [sleep, "600"], dir: one}
  other: {harness: command, command: [sleep, "600"], dir: two}
"""
MOVED = {
    "two of them": PLACED.replace("dir: one", "dir: x").replace("dir: two", "dir: one"),
    "one below": PLACED.replace("dir: two", "dir: one/below"),
    "a new one": PLACED + "  eve: {harness: command, command: [x], dir: one/below}\n",
}


@pytest.mark.parametrize("moved", MOVED)
def test_an_agent_that_moves_a_folder_cannot_stop_another_one(project, moved):
    """The manifest then gives the folder to another agent, and only the operator can tell."""
    (project.path / "one/below").mkdir(parents=True)
    project.manifest.write_text(PLACED)
    trust_checks.accept_folder(project.path)
    process = project.leave("other", project.path)
    project.manifest.write_text(MOVED[moved])
    err = project("stop", at="one/below", code=USAGE_ERROR).err
    assert "which agent?" in err
    assert "trades, other" in err
    assert {project.process.pid, process.pid} <= set(project.place.living())
    project("stop", "other")
    assert process.wait() < 0
    project("stop", at="one/below")  # only this one of the two is left
    assert project.process.wait() < 0


def test_leftover_processes_are_not_forgotten(project):
    """Without its record, `stop` could not find a process that has cleared its environment."""
    in_use = project("forget", ".", "--yes", code=OwnershipError.exit_code)
    assert "is in use: trades" in in_use.err
    assert trust_checks.is_trusted(project.path)
    project("stop")
    project("forget", ".", "--yes")
    assert not trust_checks.is_trusted(project.path)
