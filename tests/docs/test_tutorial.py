"""The tutorial, followed from top to bottom in an empty folder with the practice agent."""

import shlex
import stat
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from documented import blocks, is_shown, steps
from rekindle.demo import stand_in_agent
from rekindle.policy.exits.stop_reasons import OUTCOMES

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs/tutorial.md").read_text()
PATIENCE_SECONDS = 60
AS_SHOWN, QUICKER = "--seconds=15", "--seconds=2"
"""The practice agent takes less time for a chapter here than it gives to a reader."""
PROGRAMS = {
    "rekindle": f'#!/bin/sh\nexec {sys.executable} -I -m rekindle "$@"\n',
    "rekindle-demo-agent": f"""\
#!{sys.executable} -I
from rekindle.demo.stand_in_agent import run
run()
""",
}


class Reader:
    """A person who types the commands of the tutorial, with a home of their own."""

    def __init__(self, place, folder):
        self.place, self.path = place, folder
        self.programs, self.home = folder / "programs", folder / "home"
        for made in (self.programs, self.home):
            made.mkdir()
        for name, text in PROGRAMS.items():
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(stat.S_IRWXU)

    @property
    def state(self):
        return self.path / stand_in_agent.STATE_FOLDER

    def type(self, line):
        """Run a line without a shell; return its exit code and its output."""
        program, *arguments = shlex.split(line)
        if program == "cd":
            self.path /= arguments[0]
            return 0, []
        found = self.programs / program
        started = self.place.start(
            [str(found) if found.exists() else f"/usr/bin/{program}", *arguments],
            env={
                "PATH": f"{self.programs}:/usr/bin:/bin",
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
            },
            cwd=self.path,
        )
        return started.wait(), (started.out + started.err).splitlines()

    def follow(self, line, shown):
        """Type a line, and compare its output; repeat it while the agent is still at work."""
        expected = OUTCOMES["out-of-cycles"].exit_code if "--cycles" in line else 0
        repeats = line.startswith(("rekindle status", "rekindle logs"))

        def prints_it():
            code, printed = self.type(line)
            assert code == expected, f"$ {line}\n" + "\n".join(printed)
            if not is_shown(shown, printed) and not repeats:
                raise AssertionError("\n".join([f"$ {line}", *shown, "printed:", *printed]))
            return is_shown(shown, printed)

        self.place.wait_for(prints_it, PATIENCE_SECONDS)


@pytest.fixture
def reader(place, tmp_path):
    made = Reader(place, tmp_path)
    yield made
    if (made.path / "rekindle.yaml").exists():
        made.type("rekindle down")


def test_the_tutorial_s_commands_print_what_it_shows(reader):
    """From nothing to a finished novel: every console block runs in order, and cleans up."""
    commands = 0
    for kind, words, body in blocks(TUTORIAL):
        if kind in {"yaml", "markdown"} and words:
            assert (AS_SHOWN in body) == (kind == "yaml")
            (reader.path / words[0]).write_text(body.replace(AS_SHOWN, QUICKER))
        if kind != "console":
            continue
        if "working" in words:
            reader.place.wait_for(lambda: any(reader.state.glob("begun-*-chapter-3.md")))
        for line, shown in steps(body):
            reader.follow(line, shown)
            commands += 1
    assert commands >= 18
    assert len(list(reader.path.glob("chapter-*.md"))) == stand_in_agent.CHAPTERS
    assert not (reader.path / ".rekindle").exists()
    assert not reader.place.processes(), "nothing is left running"


def test_the_practice_agent_is_installed_with_rekindle():
    """The script of the package leads to the function that the tutorial's agent runs."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["rekindle-demo-agent"].partition(":")
    assert getattr(import_module(module), name) is stand_in_agent.run
