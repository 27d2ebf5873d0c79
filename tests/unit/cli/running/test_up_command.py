"""`up` checks once, starts all agents, then looks at all, and reports their true state."""

import json
import re
import signal

import pytest

from rekindle.errors import NotifyError
from unit.cli.test_operate import Project

LIMITED = "import sys; sys.exit('error: quota exceeded, try again in 5000 seconds')\n"
LOGGED_OUT = "import sys; sys.exit('error: invalid API key')\n"
ENDS_WHEN_RELEASED = """\
import os, signal, sys, time

def end(*_):
    while not os.path.exists("released"):
        time.sleep(0.01)
    sys.exit()

signal.signal(signal.SIGTERM, end)
open("ready", "w").close()
while True:
    time.sleep(1)
"""


@pytest.fixture
def project(place, tmp_path):
    made = Project(place, tmp_path)
    yield made
    made("down")
    place.wait_for(lambda: place.processes() == [])


def row(project, name):
    (found,) = json.loads(project("status", name, "--json").out)["agents"]
    return found


@pytest.mark.parametrize(
    ("agent", "shown", "reason"),
    [(LIMITED, "waiting", "a usage limit"), (LOGGED_OUT, "needs you", "a person must log in")],
    ids=["waits for a limit", "in safe mode"],
)
def test_an_agent_that_is_held_back_is_up_with_its_reason(project, agent, shown, reason):
    """Its supervisor is alive, though it launches nothing: ✓ is printed at once."""
    (project.path / "agent.py").write_text(agent)
    # On a busy machine the program may take longer to start than `up` waits.
    assert re.match(f"✓ trades: started(; {shown}|$)", project("up", "trades").out)
    project.place.wait_for(lambda: row(project, "trades")["state"] == shown)
    again = project("up", "trades").out
    assert again.startswith(f"✓ trades: {shown}: "), again
    assert reason in again
    [supervisor] = project.pids("run", "trades", "--for-up")
    project.place.signal(supervisor, signal.SIGKILL)
    project.place.wait_for(lambda: project.place.processes() == [])
    assert project("up", "trades").out == again  # by another supervisor, which launched nothing
    assert project.pids("run", "trades", "--for-up") != [supervisor]


def test_no_agent_waits_for_another_that_is_ending(project):
    """One was told to stop and takes its time; the other is launched meanwhile."""
    (project.path / "slow.py").write_text(ENDS_WHEN_RELEASED)
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("agent.py", "slow.py", 1))
    project("up", "trades")
    project.place.wait_for((project.path / "ready").exists)
    [ending] = project.pids("slow.py")
    stop = project.start("stop", "trades")
    project.place.wait_for(lambda: row(project, "trades")["run"]["desired"] == "stopped")
    up = project.start("up")
    project.wait_for_launch("docs")
    assert project.pids("slow.py") == [ending]
    (project.path / "released").touch()
    assert stop.wait() == 0, stop.err
    assert up.wait() == 0, up.err
    assert up.out == "✓ trades: started\n✓ docs: started\n"


def test_a_notifier_that_is_missing_is_reported_once(project):
    """`notify:` belongs to all agents: there is one error, and nothing starts."""
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "notify: ['nonsense://x']\n")
    refused = project("up", code=NotifyError.exit_code)
    assert refused.out == ""
    assert (refused.out + refused.err).count("nonsense") == 1, refused.err
    assert not project.pids("agent.py")


def test_an_agent_that_is_not_started_is_shown_with_the_fix(project):
    project.write(docs="    prompt: NOT.md\n")
    ended = project("up", code=9)
    assert "✗ docs: NOT.md: cannot be read" in ended.out
    assert "\n  → create it, or correct `prompt:` in rekindle.yaml\n" in ended.out
    [_, docs] = json.loads(project("up", "--json", code=9).out)["agents"]
    assert docs["hint"] == "create it, or correct `prompt:` in rekindle.yaml"


def test_a_supervisor_that_exits_at_once_is_reported_in_its_own_words(project):
    """Words of the previous run, which are in the same file, are not shown."""
    (project.path / "go").touch()
    project("run", "trades")
    output = project.run("trades") / "output.log"
    output.write_text("Error: of an old run\n")
    project.write(trades="    mode: stay\n")
    ended = project("up", "trades", code=9)
    assert "✗ trades: Error: " in ended.out
    assert "terminal" in ended.out
    assert "of an old run" not in ended.out
