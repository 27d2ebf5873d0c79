"""Kill the creation of agents' clones and work trees: every folder is complete afterwards."""

import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import worktrees
from sampling import WHOLE

ROUNDS = 60 if WHOLE else 8
FILES = 1500
CREATE = """\
import sys
from pathlib import Path
from rekindle.wiring.agent_workspaces import AgentWorkspace
project, agent, kind = sys.argv[1:]
workspace = AgentWorkspace(Path(project), Path(project), agent, kind)
print("ready", flush=True)
workspace.open((".env",), lambda: (workspace.folder / "prepared").touch(), updates=True)
print(workspace.folder, flush=True)
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for number in range(FILES):
        path = folder / f"d{number % 20}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 40)
    (folder / ".gitignore").write_text(".env\nprepared\n")
    (folder / ".env").write_text("SETTING=1\n")
    worktrees.git(folder, "init", "-q", "-b", "main")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    return folder


def start(project, agent, kind):
    child = subprocess.Popen(
        [sys.executable, "-c", CREATE, str(project), agent, kind],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout.readline() == "ready\n"
    return child


def finish(child):
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 0, output
    return Path(output.strip())


def kill(child, *, with_git, waits=False):
    """Kill a process, and its git or not. Return whether it was still running."""
    with suppress(psutil.NoSuchProcess):
        gits = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        for git in gits if with_git else ():
            with suppress(psutil.NoSuchProcess):
                git.kill()
        if waits:
            psutil.wait_procs(gits, timeout=60)
    child.communicate()
    return child.returncode == -signal.SIGKILL


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_a_folder_is_complete_however_often_its_creation_is_killed(project, kind):
    dice, killed = random.Random(f"workspaces {kind}"), 0
    child = start(project, "first", kind)
    began = time.monotonic()
    finish(child)
    usual = time.monotonic() - began
    for number in range(ROUNDS):
        agent = f"a{number % 4}"
        child = start(project, agent, kind)
        # The moment of the kill is the fault, not a way to wait for something.
        time.sleep(dice.uniform(0, usual))
        killed += kill(child, with_git=dice.random() < 0.5)
        folder = finish(start(project, agent, kind))
        assert worktrees.git(folder, "status", "--porcelain") == b""
        branch = worktrees.git(folder, "symbolic-ref", "HEAD").strip()
        assert branch == f"refs/heads/rekindle/{agent}/work".encode()
        assert len(list(folder.rglob("*.txt"))) == FILES
        assert (folder / ".env").read_text() == "SETTING=1\n"
        assert (folder / "prepared").exists()
        how = dice.random()
        if how < 0.4:  # a person removes it
            shutil.rmtree(folder)
        elif how < 0.6:  # a person removes only the record
            (folder.parent / f"{agent}.json").unlink()
    print(f"{kind}: {ROUNDS} rounds, {killed} killed, usual {usual:.2f} s")
    assert killed >= ROUNDS // 2
    assert worktrees.git(project, "status", "--porcelain") == b""
    assert worktrees.git(project, "fsck") == b""
    assert len(list((project / ".git").glob("worktrees/*"))) == (5 if kind == "worktree" else 0)


PUBLISH = """\
import sys
from datetime import UTC, datetime
from pathlib import Path
from rekindle.wiring.agent_workspaces import AgentWorkspace
workspace = AgentWorkspace(Path(sys.argv[1]), Path(sys.argv[1]), "trades", "clone")
print("ready", flush=True)
workspace.publish(datetime.now(UTC))
"""


def publish(project):
    child = subprocess.Popen(
        [sys.executable, "-c", PUBLISH, str(project)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_a_killed_copy_of_commits_leaves_the_repository_sound(project):
    dice, killed, usual = random.Random("published"), 0, 0.0
    folder = finish(start(project, "trades", "clone"))
    for number in range(ROUNDS):
        for file in range(60):
            (folder / f"new-{file}").write_text(f"{number} {file}\n" * 50)
        worktrees.git(folder, "add", "-A")
        worktrees.git(folder, "commit", "-qm", f"work {number}")
        child, began = publish(project), time.monotonic()
        if number:
            time.sleep(dice.uniform(0, usual))
            killed += kill(child, with_git=dice.random() < 0.5, waits=True)
        else:
            child.communicate()
            usual = time.monotonic() - began
        for lock in (project / ".git").rglob("*.lock"):
            lock.unlink()  # of a killed git, as `git` itself tells the user to do
        again = publish(project)
        again.communicate()
        assert again.returncode == 0
        head = worktrees.git(folder, "rev-parse", "HEAD")
        assert worktrees.git(project, "rev-parse", "rekindle/trades/work") == head
        assert b"missing" not in worktrees.git(project, "fsck", "--connectivity-only")
    assert killed >= ROUNDS // 4
