"""The guide to snapshots, run from top to bottom with the agent that it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import worktrees
from documented import blocks, is_shown, steps
from rekindle.wiring.access.trust_checks import accept_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/undo.md"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    worktrees.git(folder, "init", "-q", "-b", "main")
    (folder / "PROMPT.md").write_text("Write the report.\n")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    (folder / "idea.txt").write_text("an idea\n")
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind in {"yaml", "python"} and words:
            (folder / words[0]).write_text(body)
    accept_folder(folder)
    return folder


def test_its_commands_print_what_it_shows(place, project):
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(project.parent),
        "LC_ALL": "C.UTF-8",
    }
    for kind, _, body in blocks(GUIDE.read_text()):
        if kind != "console":
            continue
        for line, shown in steps(body):
            words = line.split()
            assert words[0] == "rekindle"
            started = place.start(
                [sys.executable, "-I", "-m", *words], env=environment, cwd=project
            )
            assert started.wait() == 0, started.out + started.err
            assert is_shown(shown, started.out.splitlines()), f"{line}\n{started.out}"
    assert (project / "idea.txt").read_text() == "an idea\n"
    assert not (project / "report.txt").exists()
    [script] = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "sh"]
    assert worktrees.git(project, "for-each-ref", "refs/rekindle")
    subprocess.run(["sh", "-c", script], cwd=project, env={"PATH": os.environ["PATH"]}, check=True)
    assert not worktrees.git(project, "for-each-ref", "refs/rekindle")
