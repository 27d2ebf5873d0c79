"""Agents in tmux windows: a window that is gone is opened again, with the same session."""

import json
import shutil

import pytest

from loopback.sandbox import KEY
from loopback.script import Forever, Text
from prerequisites import needs_program
from rekindle.system.terminal import tmux

pytestmark = needs_program("tmux")


@pytest.fixture
def windows(place, tmp_path):
    """Return the operator's tmux, for the server with the agents' windows."""

    def run(*words, code=0):
        argv = [shutil.which("tmux"), "-S", str(tmux.find_socket()), *words]
        started = place.start(argv, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
        assert started.wait() == code, started.err
        return started.out

    yield run
    run("kill-server")


@pytest.fixture
def staying(rekindle):
    """Create an agent in `mode: stay`, whose CLI a person has used before."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]]},
        "projects": {str(rekindle.project): {"hasTrustDialogAccepted": True}},
    }
    (rekindle.cli.home / ".claude.json").write_text(json.dumps(known))
    manifest = rekindle.project / "rekindle.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace('    cycles: 1\n    until: ["true"]\n', "    mode: stay\n"))
    return rekindle


def test_a_pane_that_was_killed_comes_back_with_its_session(staying, windows, model):
    """The watchdog opens it again, reports it, and Claude Code resumes the conversation."""

    def shows(word):
        panes = windows("list-panes", "-a", "-F", "#{pane_id} #{window_name}").splitlines()
        [pane] = [one.split()[0] for one in panes if one.endswith(" trades")]
        return pane if word in windows("capture-pane", "-p", "-t", pane) else None

    def supervisors():
        return [argv for argv in staying.place.processes() if argv[-3:-1] == ["run", "trades"]]

    model.play(Forever(Text("zebras answer")))
    assert "✓ trades: started" in staying("up", "--tmux")
    assert supervisors()
    windows("new-session", "-d", "-s", "another", "sleep", "600")  # the server outlives the pane
    pane = staying.place.wait_for(lambda: shows("zebras"))
    windows("kill-pane", "-t", pane)
    staying.place.wait_for(lambda: not staying.agents() and not supervisors())
    model.play(Forever(Text("lions answer")))
    assert (
        "✓ trades: started: its supervisor is gone; its tmux window was opened again\n"
        in staying("watch", "--once")
    )
    staying.place.wait_for(lambda: shows("lions"))
    first, second = staying.events("launch.started")
    assert second["session"] == first["session"]
    assert second["resumes"] is True
    assert "· trades: running\n" in staying("watch", "--once")
    staying("down")
