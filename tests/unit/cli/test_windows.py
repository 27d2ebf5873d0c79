"""Agents that `up --tmux` started: their supervisors come back where they were."""

import signal

import pytest

from prerequisites import needs_program
from rekindle.system.terminal import tmux
from unit.cli.test_operate import Project

pytestmark = needs_program("tmux")

OPENED = "✓ trades: started: its supervisor is gone; its tmux window was opened again\n"


@pytest.fixture
def project(place, tmp_path):
    made = Project(place, tmp_path)
    made("up", "trades", "--tmux")
    made.wait_for_launch("trades")
    yield made
    made("down")
    place.wait_for(lambda: place.processes() == [])  # the tmux server ends with its last window


def kill_supervisor(project):
    """Kill it where it is: in the window, with all that the window shows."""
    [pid] = project.pids("run", "trades", "--for-up") or project.pids(
        "run", "trades", "--for-watchdog"
    )
    project.place.signal(pid, signal.SIGKILL)
    project.place.wait_for(lambda: project.place.processes() == [])


def window_names(project):
    listed = project.tmux(
        "-S", str(tmux.find_socket()), "list-windows", "-a", "-F", "#{window_name}"
    )
    return listed.out.split()


def test_a_headless_agent_comes_back_in_its_window(project):
    """If it does not come up, its own words give the reason, though the window is gone."""
    assert not project.private("trades").window.is_relative_to(project.path)
    kill_supervisor(project)
    assert OPENED in project("watch", "--once").out
    project.wait_for_launch("trades", 1)
    assert window_names(project) == ["trades"]
    kill_supervisor(project)
    project.write(trades="    prompt: NOT.md\n")
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {restart: {cooldown: 0s}}\n")
    assert OPENED in project("watch", "--once").out
    project.place.wait_for(lambda: project.place.processes() == [])
    out = project("watch", "--once").out
    assert "✗ trades: started again: its supervisor did not come up: Error: " in out
    assert "NOT.md" in out
    project.place.wait_for(lambda: project.place.processes() == [])


def test_without_tmux_a_headless_agent_comes_back_in_the_background(project):
    """Keeping it alive comes first; the operator's next `run` or `up` decides on its place."""
    kill_supervisor(project)
    out = project("watch", "--once", path="/nowhere").out
    words = "its supervisor is gone; without its tmux window: tmux is not installed"
    assert f"✓ trades: started: {words}\n" in out
    project.wait_for_launch("trades", 1)
    kill_supervisor(project)
    (project.path / "go").touch()
    project("run", "trades")
    assert not project.private("trades").window.exists()


def test_a_supervisor_in_a_window_can_notify(project):
    """It has the variables of `notify:`, which its agent does not get."""
    project("stop", "trades")
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "notify: ['json://$ALERTS_HOST']\n")
    (project.path / "agent.py").write_text("import sys; sys.exit('error: invalid API key')\n")
    out = project("up", "trades", "--tmux", ALERTS_HOST="127.0.0.1:9").out
    assert "needs you" in out
    [pid] = project.pids("run", "trades", "--for-up")
    reading = project.place.start(
        ["cat", f"/proc/{pid}/environ"], env={"PATH": "/usr/bin:/bin"}, cwd=project.path
    )
    assert reading.wait() == 0, reading.err
    assert "ALERTS_HOST=127.0.0.1:9" in reading.out.split("\0")
