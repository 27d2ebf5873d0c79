"""`rekindle export` and `rekindle import` move an agent with its session."""

import json
import shutil

import pytest

from e2e.by_hand import FIXTURES, ONE_IN_CI
from loopback.script import Forever, Text
from torture.clis import Cli

pytestmark = pytest.mark.timeout(300)
OUT_OF_CYCLES = 24
TASK = "Ship the parser, in small steps."


class Mover:
    """An agent whose session was stopped in its work, and a second home and folder."""

    def __init__(self, name, request, place):
        sandbox, self.model = map(request.getfixturevalue, FIXTURES[name])
        self.cli = Cli(name, sandbox, self.model, place)
        self.rekindle = self.cli.supervised()
        self.place, self.sandbox, self.project = place, sandbox, sandbox.project
        self.home, self.there = sandbox.home.parent / "home2", sandbox.home.parent / "elsewhere"
        self.there.mkdir()

    def stop_in_call(self):
        """Run the agent until its first tool call, then stop it."""
        self.model.play(self.cli.kind.shell("touch working; sleep 600"), Forever(Text("badger")))
        run = self.rekindle.start("run", "trades")
        self.place.wait_for(lambda: (self.project / "working").exists() or None)
        self.rekindle("stop", "trades")
        run.wait()

    def export(self, *, is_same_home=False):
        self.rekindle("export", "trades", "trades.rekindle")
        if is_same_home:
            self.home = self.sandbox.home
            shutil.copy(self.project / "PROMPT.md", self.there)
            return shutil.copy(self.project / "trades.rekindle", self.there)
        # The other home has the CLI's settings and none of its sessions.
        kept = shutil.ignore_patterns("projects", "sessions", "tmp", "*.sqlite*", "history*")
        shutil.copytree(self.sandbox.home, self.home, ignore=kept, symlinks=True)
        shutil.copy(self.project / "PROMPT.md", self.there)
        return shutil.copy(self.project / "trades.rekindle", self.there)

    def run_there(self, *words, code=0):
        env = self.sandbox.environment(LC_ALL="C.UTF-8", HOME=str(self.home))
        argv = [*self.rekindle.program, *words]
        started = self.place.start(argv, env=env, cwd=self.there)
        assert started.wait() == code, started.out + started.err
        return started.out

    def events_there(self, kind):
        lines = self.run_there("events", "--json", "--last", "0").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]


@pytest.mark.parametrize("name", ONE_IN_CI)
def test_a_moved_agent_continues_its_session(name, request, place):
    """The session id is the same, and the model gets the earlier turns, in a new home and path."""
    continue_there(Mover(name, request, place))


@pytest.mark.torture
def test_a_codex_session_continues_in_another_folder_of_the_same_home(request, place):
    """Codex keeps the sessions of all folders in one place, so the original is there."""
    continue_there(Mover("codex", request, place), is_same_home=True)


def continue_there(mover, *, is_same_home=False):
    mover.stop_in_call()
    (before,) = mover.rekindle.events("launch.ended")
    mover.export(is_same_home=is_same_home)
    assert "imported trades" in mover.run_there("import", "trades.rekindle", "--yes")
    mover.run_there("run", "trades", "--cycles", "1", "--trust", code=0)
    *_, moved, resumed = mover.events_there("launch.started")
    assert (moved["origin"], moved["session"]) == ("import", before["session"])
    assert (resumed["session"], resumed["resumes"]) == (before["session"], True)
    told = [request.text for request in mover.model.log.main]
    (text,) = [text for text in told if "This session was moved here" in text]
    assert text.index(TASK) < text.index("This session was moved here")
