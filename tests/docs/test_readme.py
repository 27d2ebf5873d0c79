"""The README is short, and its commands print the output that it shows."""

import json
import shlex
import stat
import sys
from pathlib import Path

import pytest

from documented import blocks, is_shown, steps
from rekindle.demo import stand_in_agent

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PATIENCE_SECONDS = 30
CLAUDE = f"""\
#!{sys.executable} -I
import runpy
runpy.run_path({stand_in_agent.__file__!r}, run_name="__main__")
"""


class Reader:
    """A person who types the commands of the README; `claude` is the stand-in of the demo."""

    def __init__(self, place, folder):
        self.place, self.path = place, folder / "project"
        self.programs, self.home = folder / "programs", folder / "home"
        self.state = self.path / stand_in_agent.STATE_FOLDER
        for made in (self.path, self.programs, self.home):
            made.mkdir()
        rekindle = f'#!/bin/sh\nexec {sys.executable} -I -m rekindle "$@"\n'
        for name, text in (("claude", CLAUDE), ("rekindle", rekindle)):
            program = self.programs / name
            program.write_text(text)
            program.chmod(stat.S_IRWXU)

    def run(self, line):
        """Run a line without a shell; return its output."""
        program, *arguments = shlex.split(line)
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
        code = started.wait()
        assert code == 0, f"$ {line}\n{started.out}{started.err}"
        return started.out.splitlines()

    def prepare(self, words):
        """Do what the text before a block says."""
        if "task" in words:
            (self.path / "PROMPT.md").write_text("Write six chapters.\n")
            # The first call for this chapter is slow, so that the kill arrives during it.
            self.state.mkdir(parents=True)
            (self.state / f"{stand_in_agent.SLOW_PREFIX}chapter-2.md").touch()
        elif "working" in words:
            self.place.wait_for(lambda: any(self.state.glob("begun-*-chapter-2.md")))


@pytest.fixture
def reader(place, tmp_path):
    made = Reader(place, tmp_path)
    yield made
    made.run("rekindle down")


def test_the_readme_s_commands_print_what_it_shows(reader):
    """Every console block, run in order in an empty folder, prints the shown output."""
    commands = 0
    for kind, words, body in blocks(README):
        if kind == "markdown" and words:
            (reader.path / words[0]).write_text(body)
        if kind != "console":
            continue
        reader.prepare(words)
        for line, shown in steps(body):
            commands += 1
            if "logs" in line:  # the supervisor writes the log while the reader looks
                reader.place.wait_for(
                    lambda line=line, shown=shown: is_shown([*shown, "…"], reader.run(line)),
                    PATIENCE_SECONDS,
                )
                continue
            printed = reader.run(line)
            assert is_shown(shown, printed), "\n".join([f"$ {line}", *shown, "printed:", *printed])
    assert commands >= 7


def test_the_check_sees_a_difference():
    """A wrong, a missing and an additional line are noticed."""
    shown = ["a", "…", "b …"]
    assert is_shown(shown, ["a", "x", "y", "b 1"])
    assert not is_shown(shown, ["a", "x", "c 1"])
    assert not is_shown(["a"], [])
    assert not is_shown(["a …"], ["c"])
    assert not is_shown(["a"], ["a", "b"])
    assert is_shown(["a", "…"], ["a"])


MEASURED = {
    "The agent crashes or is killed": {"cli-killed", "tool-killed"},
    "The agent hangs": {"hang"},
    "The context window fills up": {"window"},
    "You reach a usage limit": {"limit"},
    "The model is overloaded, or the network is down": {"overload"},
    "Rekindle itself is killed, or the host reboots": {"both-killed", "reboot"},
    "The disk fills up": {"disk-full"},
    "The agent repeats its plan": {"same-plan"},
}
"""The faults of the survival benchmark behind each measured row."""


def test_the_measured_column_shows_the_stored_results():
    """Each row has the items of all runs of its faults, with both CLIs."""
    rows = [line.strip("|").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    shown = {row[0].strip(): row[2].strip() for row in rows if len(row) == 3 and row[2].strip()}
    del shown["What happens"]
    stored = json.loads((ROOT / "tools/survival.json").read_text())
    cells = [cell for cell in stored["cells"] if cell["contender"] == "rekindle"]
    expected = {}
    for what, faults in MEASURED.items():
        found = [cell for cell in cells if cell["fault"] in faults]
        assert len(found) == 2 * len(faults)
        runs = [run for cell in found for run in cell["runs"]]
        assert {(run["lost"], run["twice"]) for run in runs} == {(0, 0)}
        expected[what] = f"{min(run['done'] for run in runs)} of {stored['items']}"
    assert shown == expected


def test_the_readme_is_short():
    """It has at most 120 lines, and shows the picture of the demo."""
    assert len(README.splitlines()) <= 120
    assert "(docs/images/demo.svg)" in README
