"""`stop` and `down` end an agent of this host, whatever it wrote into its workspace."""

import json
import shutil
import sys

import pytest

from rekindle.wiring.access import trust_checks

AGENT = """\
import pathlib, subprocess, sys, time
left = [sys.executable, "-c", "import time; time.sleep(600)", "left-behind"]
subprocess.Popen(left, start_new_session=True)
pathlib.Path("launched").write_text("x")
time.sleep(600)
"""
MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: [PYTHON, agent.py]}
"""
FLEET = "fleet: {address: '127.0.0.1:9', api_key: $SECRET, tls: false}\n"
SUPERVISOR = ("run", "trades", "--for-up")
MANIFEST_ERROR, FOREIGN, AGENT_ERROR, UNRECORDED = 3, 6, 9, 13


class Folder:
    """A trusted folder whose agent runs in the background, with a process beside it."""

    def __init__(self, place, path):
        self.place, self.path = place, path
        path.mkdir()
        self.manifest = path / "rekindle.yaml"
        self.manifest.write_text(MANIFEST.replace("PYTHON", sys.executable))
        (path / "agent.py").write_text(AGENT)
        (path / "PROMPT.md").write_text("Ship it.\n")
        trust_checks.accept_folder(path)
        self("up")
        place.wait_for(lambda: (path / "launched").exists() and len(self.pids()) == 3)

    def start(self, *words, at="."):
        return self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *words],
            env={"PATH": "/usr/bin:/bin", "REKINDLE_TRUST": "", "SECRET": "s3cret"},
            cwd=self.path / at,
        )

    def __call__(self, *words, code=0, at="."):
        started = self.start(*words, at=at)
        assert started.wait() == code, started.out + started.err
        return started

    def pids(self):
        """Return the processes of the supervisor, of the agent, and the one beside it."""
        ends = (SUPERVISOR, ("agent.py",), ("left-behind",))
        found = self.place._ask(do="list")["processes"]
        return [
            one["pid"]
            for one in found
            if any(tuple(one["argv"][-len(end) :]) == end for end in ends)
        ]

    def require_end(self):
        """Require that all of them are gone: a supervisor frees its lock just before it exits."""
        self.place.wait_for(lambda: self.pids() == [])

    def kill_supervisor(self):
        found = self.place._ask(do="list")["processes"]
        [pid] = [one["pid"] for one in found if tuple(one["argv"][-3:]) == SUPERVISOR]
        self.place.signal(pid, 9)
        self.place.wait_for(lambda: len(self.pids()) == 1)

    def plant_owner(self):
        """Name another host as the agent's, as any program in the workspace can."""
        owner = self.path / ".rekindle/agents/trades/owner.json"
        owner.write_text(json.dumps(json.loads(owner.read_text()) | {"host": "elsewhere"}))


@pytest.fixture
def folder(place, tmp_path):
    made = Folder(place, tmp_path / "project")
    yield made
    for pid in made.pids():
        place.signal(pid, 9)
    place.wait_for(lambda: not made.pids())


@pytest.mark.parametrize("command", ["stop", "down"])
def test_a_fleet_that_was_added_keeps_nothing_alive(folder, command):
    """The lock of its supervisor is on this host: no engine is asked."""
    folder.manifest.write_text(folder.manifest.read_text() + FLEET)
    assert "✓ trades: stopped" in folder(command).out
    folder.require_end()
    folder("stop", code=MANIFEST_ERROR)
    folder.manifest.write_text(MANIFEST.replace("PYTHON", sys.executable))
    assert json.loads(folder("status", "--json").out)["agents"][0]["run"]["desired"] == "stopped"


def test_stop_without_a_name_means_the_only_running_agent(folder):
    """An agent that adds another one to the manifest cannot make `stop` refuse."""
    more = "  more: {harness: command, command: ['true']}\n"
    folder.manifest.write_text(folder.manifest.read_text() + more)
    assert "✓ trades: stopped" in folder("stop").out
    folder.require_end()


@pytest.mark.parametrize(("command", "name"), [("stop", "trades"), ("down", "other")])
def test_a_manifest_planted_in_a_folder_below_hides_nothing(folder, command, name):
    """A manifest that the user has not accepted does not decide which project is meant."""
    (folder.path / "src").mkdir()
    planted = folder.manifest.read_text().replace("trades:", f"{name}:")
    (folder.path / "src/rekindle.yaml").write_text(planted)
    stopped = folder(command, at="src")
    assert "✓ trades: stopped" in stopped.out
    assert f"using the project {folder.path}" in stopped.err
    folder.require_end()


def test_an_accepted_project_below_is_meant(folder):
    """The agent of the outer project continues, and is named."""
    (folder.path / "src").mkdir()
    (folder.path / "src/rekindle.yaml").write_text(folder.manifest.read_text())
    trust_checks.accept_folder(folder.path / "src")
    stopped = folder("stop", at="src")
    assert "is not running" in stopped.out
    assert f"cd {folder.path} && rekindle stop trades" in stopped.err
    assert len(folder.pids()) == 3


@pytest.mark.parametrize("command", ["stop", "down"])
def test_an_owner_that_was_planted_keeps_nothing_alive(folder, command):
    """Processes that this host recorded end first; then the owner of the agent is named."""
    folder.kill_supervisor()
    folder.plant_owner()
    assert "elsewhere" in folder(command, code=FOREIGN).err
    folder.require_end()


DAMAGE = {
    "owner that is not one": ("owner.json", b"{"),
    "log that was rewritten": ("ops.jsonl", b"nothing\n"),
    "folder that is gone": ("", b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_its_files_keeps_nothing_alive(folder, damage):
    """Whatever `stop` prints, the leftover processes of the agent are gone."""
    name, data = DAMAGE[damage]
    folder.kill_supervisor()
    if name:
        (folder.path / ".rekindle/agents/trades" / name).write_bytes(data)
    else:
        shutil.rmtree(folder.path / ".rekindle")
    folder.start("stop").wait()
    folder.require_end()


def test_damage_keeps_no_supervisor_alive(folder):
    """Its lock is outside the workspace, and shows that it runs here."""
    folder.plant_owner()
    folder("stop", code=UNRECORDED)
    folder.require_end()


OWNERS = {
    "another host": b'{"v": 1, "host": "elsewhere", "gen": 1}',
    "newer": b'{"v": 2, "host": "elsewhere", "gen": 2}',
    "unreadable": b"{",
}


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_that_was_planted_ends_the_supervisor_and_starts_no_other(folder, owner):
    """A newer Rekindle on another host may have written it: ignoring it could run two agents."""
    (folder.path / ".rekindle/agents/trades/owner.json").write_bytes(OWNERS[owner])
    found = folder.place._ask(do="list")["processes"]
    [agent] = [one["pid"] for one in found if one["argv"][-1] == "agent.py"]
    folder.place.signal(agent, 9)
    folder.require_end()
    folder.start("watch", "--once").wait()
    folder("up", code=AGENT_ERROR)
    assert folder.pids() == []


def test_the_agent_ends_when_another_host_has_taken_it_over(folder):
    """Otherwise it would work beside the other host's agent until its launch ends."""
    folder.plant_owner()
    folder.require_end()
