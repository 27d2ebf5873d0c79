"""`rekindle attach`: the operator's terminal shows the tmux window of an agent."""

import os
import shutil
import subprocess
import sys

import pytest

from desk import Desk
from prerequisites import needs_program
from rekindle.cli.main import run
from rekindle.system.terminal import tmux
from rekindle.wiring.starting.background_start import TMUX_SESSION

MANIFEST = "version: 1\nagents:\n  trades: {harness: claude-code}\n  docs: {harness: claude-code}\n"
needs_tmux = needs_program("tmux")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def windows(folder):
    """Open windows of two agents, and of one with the same name in another project."""
    other = folder / "other"
    other.mkdir()
    for name, place, words in (
        ("trades", other, "another project"),
        ("trades", folder, "this is trades"),
        ("docs", folder, "this is docs"),
    ):
        argv = ["sh", "-c", f"echo {words}; exec sleep 600"]
        tmux.open_window(TMUX_SESSION, name, str(place), argv, {"PATH": os.environ["PATH"]})
    yield
    ask_server("kill-server")


def ask_server(*words):
    server = [shutil.which("tmux"), "-S", str(tmux.find_socket())]
    subprocess.run([*server, *words], check=True, timeout=10)


@needs_tmux
@pytest.mark.parametrize("name", ["trades", "docs"])
def test_the_terminal_shows_the_agent_of_this_project(windows, folder, name):
    env = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    env |= {key: os.environ[key] for key in ("HOME", "XDG_STATE_HOME") if key in os.environ}
    argv = [sys.executable, "-m", "rekindle", "attach", name]
    with Desk(argv, env=env, cwd=folder) as desk:
        desk.wait_for(f"this is {name}")
        assert b"another project" not in desk.shown
        ask_server("detach-client", "-s", TMUX_SESSION)
        assert desk.hear()["code"] == 0


@needs_tmux
def test_an_agent_outside_tmux_is_told_apart(folder, capfd, monkeypatch):
    monkeypatch.setattr("rekindle.cli.running.tmux_attach.is_at_terminal", lambda: True)
    assert run(["attach", "trades"]) == 7
    err = capfd.readouterr().err
    assert "trades has no tmux window" in err
    assert "`rekindle up --tmux trades`" in err


def test_attaching_needs_a_terminal(folder, capfd, monkeypatch):
    monkeypatch.setattr("rekindle.cli.running.tmux_attach.is_at_terminal", lambda: False)
    assert run(["attach", "trades"]) == 2
    assert "rekindle logs -f trades" in capfd.readouterr().err
