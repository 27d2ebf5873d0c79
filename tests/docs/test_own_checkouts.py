"""The guide to agents with their own clones, run from top to bottom."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import worktrees
from documented import blocks, is_shown, steps
from rekindle.wiring.access.trust_checks import accept_folder

GUIDE = Path(__file__).parents[2] / "docs/guides/own-checkouts.md"
CONFLICTS = 8
"""Exit code of a merge with conflicts."""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind in {"yaml", "python"} and words:
            (folder / words[0]).write_text(body)
    (folder / "PROMPT.md").write_text("Greet.\n")
    (folder / "greeting.txt").write_text("Hello\n")
    (folder / ".gitignore").write_text(".rekindle\n")
    worktrees.git(folder, "init", "-q", "-b", "main")
    worktrees.git(folder, "config", "user.name", "The User")
    worktrees.git(folder, "config", "user.email", "user@example.org")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    accept_folder(folder)
    return folder


def test_its_commands_print_what_it_shows(place, project):
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(project.parent),
        "LC_ALL": "C.UTF-8",
        "GIT_PAGER": "cat",
    }
    text, codes = GUIDE.read_text(), []
    for kind, _, body in blocks(text):
        for line, shown in steps(body) if kind == "console" else ():
            words = shlex.split(line)
            program = [sys.executable, "-I", "-m"] if words[0] == "rekindle" else []
            started = place.start([*program, *words], env=environment, cwd=project)
            codes.append(started.wait())
            printed = (started.out + started.err).splitlines()
            assert is_shown(shown, printed), f"{line}\n{started.out}{started.err}"
    assert codes.count(CONFLICTS) == text.count("cannot be merged") == 2
    assert codes.count(0) == len(codes) - 2
    assert worktrees.git(project, "status", "--porcelain") == b""
    for name in ("alice", "bob"):
        assert (project / f"{name}.txt").read_text() == "an idea\n"


def test_the_conflict_can_be_resolved_with_git(place, project):
    """The command that the guide shows stops with a conflict, which the user resolves."""
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    program = [sys.executable, "-I", "-m", "rekindle"]
    for words in (["run", "alice"], ["run", "bob"], ["merge", "alice"]):
        started = place.start(
            [*program, *words], env=environment | {"HOME": str(project.parent)}, cwd=project
        )
        assert started.wait() == 0, started.out + started.err
    [script] = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "sh"]
    merging = subprocess.run(["sh", "-c", script], cwd=project, env=environment, check=False)
    assert merging.returncode == 1
    (project / "greeting.txt").write_text("Hello from both\n")
    worktrees.git(project, "commit", "-qam", "resolved")
    started = place.start(
        [*program, "merge", "bob"], env=environment | {"HOME": str(project.parent)}, cwd=project
    )
    assert started.wait() == 0, started.out + started.err
    assert (project / "greeting.txt").read_text() == "Hello from both\n"
    assert (project / "bob.txt").read_text() == "an idea\n"
