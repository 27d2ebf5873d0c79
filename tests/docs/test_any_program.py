"""The guide to `harness: command`, run from top to bottom with the program that it shows."""

import json
import re
import sys
from pathlib import Path

import pytest

from documented import blocks, difference, steps
from rekindle.policy.exits.stop_reasons import OUTCOMES
from rekindle.wiring.access.trust_checks import accept_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/any-program.md"


@pytest.fixture
def project(tmp_path):
    """Create the files of the guide, two notes, and a summarizer that keeps its requests."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("one two three\n")
    (tmp_path / "notes/b.txt").write_text("four five\n")
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind in {"yaml", "python", "text"} and words:
            (tmp_path / words[0]).write_text(body)
    asked = f"{{adapter: command, command: [tee, {tmp_path}/asked]}}"
    with (tmp_path / "rekindle.yaml").open("a") as manifest:
        manifest.write(f"personas: {{summarizer: {asked}}}\n")
    accept_folder(tmp_path)
    return tmp_path


@pytest.fixture
def rekindle(place, project):
    def run(*words, code=0):
        started = place.start(
            [sys.executable, "-I", "-m", "rekindle", *words],
            env={"PATH": "/usr/bin:/bin", "HOME": str(project), "LC_ALL": "C.UTF-8"},
            cwd=project,
        )
        assert started.wait() == code, f"$ rekindle {words}\n{started.out}{started.err}"
        return started.out

    return run


def said(rekindle):
    turns = [json.loads(line) for line in rekindle("transcript", "--json").splitlines()]
    return [turn["text"] for turn in turns if turn["who"] == "agent"]


def test_its_commands_print_what_it_shows(rekindle, project):
    """After two cycles its output is a transcript, it was active, and briefs are made from it."""
    [body] = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "console"]
    [(line, shown)] = steps(body)
    assert line == "rekindle run"
    assert not (found := difference(shown, rekindle("run").splitlines())), found
    assert said(rekindle) == ["a.txt has 3 words", "b.txt has 2 words"]
    [row] = json.loads(rekindle("status", "--json"))["agents"]
    assert row["last_active"] is not None
    brief = rekindle("brief")
    assert "the run ended: done and verified" in brief
    assert all(f": “{line}”" in brief for line in said(rekindle)), brief
    assert "tool call" not in brief, "of this program none is known"
    asked = (project / "asked").read_text()
    assert all(line in asked for line in said(rekindle)), asked


def test_its_table_of_variables_is_complete(rekindle, project):
    """Each variable of a launch is named, and no other."""
    (project / "agent.py").write_text(
        "import os\nprint(*(name for name in os.environ if name.startswith('REKINDLE_')))\n"
    )
    rekindle("run", "--cycles", "1", code=OUTCOMES["out-of-cycles"].exit_code)
    [printed] = said(rekindle)
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `REKINDLE_")]
    assert set(printed.split()) == set(re.findall(r"`(REKINDLE_\w+)`", " ".join(rows)))
