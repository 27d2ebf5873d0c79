"""`stop` and `down` end an agent whose supervisor is suspended, by Ctrl-Z or SIGSTOP, or hangs."""

import signal
import sys

import pytest

from guarded import LOGIN, Guarded

UNHEARD = """
import runpy, sys
from rekindle.stores.files.supervisor_locks import OuterLock
from rekindle.thresholds import screens
screens.STOP_SUPERVISOR_SECONDS = float(sys.argv.pop(1))
OuterLock.resume_holder = OuterLock.signal_holder = lambda lock: False
if sys.argv[1] == "left":
    sys.argv.pop(1)
    OuterLock.kill_holder = lambda lock: False
runpy.run_module("rekindle", run_name="__main__")
"""
"""Rekindle whose SIGCONT does not reach the supervisor, and with "left" no SIGKILL either."""


@pytest.fixture
def project(place, tmp_path):
    return Guarded(place, tmp_path)


def start_unheard(project, *words):
    argv = [sys.executable, "-I", "-c", UNHEARD, "1", *words]
    return project.place.start(argv, env=LOGIN, cwd=project.path)


@pytest.mark.parametrize(
    ("command", "manifest"), [("stop", "good"), ("down", "good"), ("stop", "broken")]
)
def test_a_suspended_supervisor_is_continued_and_stops(project, command, manifest):
    running = project.start("run")
    _, supervisor = project.until_up()
    project.place.signal(supervisor, signal.SIGSTOP)
    if manifest == "broken":
        (project.path / "rekindle.yaml").write_text("agents: [")
    assert "✓ trades: stopped\n" in project(command).out
    project.until_gone()
    assert running.wait() == 130
    assert [one["exit"] for one in project.events("launch.ended")] == ["interrupted"]


@pytest.mark.parametrize("command", ["stop", "down", "stop-without-manifest"])
def test_a_supervisor_that_hangs_is_killed_with_its_agent(project, command):
    """The agent ignores SIGTERM, so the supervisor's death alone does not end it."""
    program = project.ledger / "agent.py"
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    program.write_text(ignore + program.read_text())
    running = project.start("run")
    _, supervisor = project.until_up()
    project.place.signal(supervisor, signal.SIGSTOP)
    manifest = project.path / "rekindle.yaml"
    text = manifest.read_text()
    if command == "stop-without-manifest":
        manifest.write_text("agents: [")
    stopping = start_unheard(project, command.partition("-")[0])
    assert stopping.wait() == 0, stopping.err
    assert "✓ trades: stopped\n" in stopping.out
    project.until_gone()
    assert running.wait() == -signal.SIGKILL
    manifest.write_text(text)
    assert "stopped: by you" in project("status", "trades").out


def test_down_reports_a_supervisor_that_has_not_ended(project):
    project.start("run")
    agent, supervisor = project.until_up()
    project.place.signal(supervisor, signal.SIGSTOP)
    stopping = start_unheard(project, "left", "down")
    assert stopping.wait() == 9
    assert stopping.out == "✗ trades: has not exited yet\n"
    assert project.agents() == [agent]
    project.place.signal(supervisor, signal.SIGCONT)
    project.place.wait_for(lambda: not project.supervisors())
    project.until_gone()
