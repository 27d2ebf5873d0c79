"""Undo: the snapshots of a supervised agent, and a rewind after it has done damage."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import worktrees
from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program

pytestmark = pytest.mark.timeout(300)

AGENT = """\
import os, pathlib, signal, sys, time
prompt = sys.stdin.read()
launches = pathlib.Path("launches.log")  # ignored
number = launches.read_text().count("\\n") if launches.exists() else 0
launches.open("a").write("launch\\n")
pathlib.Path(f"prompt-{number}.log").write_text(prompt)
if number == 0:
    os.kill(os.getpid(), signal.SIGKILL)  # nothing has changed: the next launch needs no snapshot
pathlib.Path("result.txt").write_text(f"launch {number}\\n")
pathlib.Path("important.txt").unlink(missing_ok=True)
if "wait" in prompt:
    pathlib.Path("hooked.log").write_text(str(os.getpid()))
    os.rename("hooked.log", "hooked")
    time.sleep(600)
"""


@pytest.fixture
def rekindle(place, tmp_path):
    """Create a project in a repository, with an agent that damages it."""
    found = Rekindle(Program(tmp_path / "command"), place)
    project = found.project
    command = f"[{sys.executable}, agent.py]"
    entry = f"    harness: command\n    until: ['true']\n    command: {command}\n"
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n  trades:\n{entry}")
    (project / "agent.py").write_text(AGENT)
    (project / "PROMPT.md").write_text(TASK)
    (project / "important.txt").write_text("never committed\n")
    (project / ".gitignore").write_text("*.log\nhooked\n")
    worktrees.git(project, "init", "-q", "-b", "main")
    worktrees.git(project, "add", "agent.py", ".gitignore")
    worktrees.git(project, "commit", "-qm", "one")
    return found


def reasons(rekindle):
    return [one["reason"] for one in rekindle.events("snapshot.taken")]


def find_clone(rekindle, name):
    """Return the folder of an agent's clone, or None before it was created."""
    described = json.loads(rekindle("status", name, "--json"))["agents"][0].get("workspace")
    return Path(described["folder"]) if described else None


def test_what_an_agent_did_is_undone_and_the_undo_too(rekindle):
    project = rekindle.project
    rekindle("run")
    assert [one["exit"] for one in rekindle.events("launch.ended")] == ["crash", "clean"]
    assert reasons(rekindle) == ["start", "end"], "the resume takes no snapshot"
    listed = json.loads(rekindle("snapshots", "--json"))["snapshots"]
    assert [(one["name"], one["reason"]) for one in listed] == [
        ("trades/1", "start"),
        ("trades/2", "end"),
    ]
    changes = rekindle("diff", "1", "--stat")
    assert "important.txt" in changes
    assert "result.txt" in changes
    assert "-never committed" in rekindle("diff", "trades/1", "trades/2")
    done = rekindle("rewind", "--yes")
    assert "to undo this: `rekindle rewind trades/2`" in done
    assert "Ignored, and not changed: launches.log" in done, done
    assert (project / "important.txt").read_text() == "never committed\n"
    assert not (project / "result.txt").exists()
    assert "is already as it was at trades/1" in rekindle("rewind", "--yes")
    rekindle("rewind", "trades/2", "--yes")
    assert (project / "result.txt").exists()
    assert not (project / "important.txt").exists()
    rekindle("rewind", "trades", "1", "--yes")
    rekindle("run")
    prompt = (project / "prompt-2.log").read_text()
    assert "The operator rewound the work tree to snapshot trades/1 (cycle 1, start)." in prompt


def test_a_rewind_needs_neither_the_manifest_nor_our_files(rekindle):
    project = rekindle.project
    rekindle("run")
    for path in list(project.iterdir()):
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "trades/1" in rekindle("snapshots")
    rekindle("rewind", "--yes")
    assert (project / "important.txt").read_text() == "never committed\n"
    assert (project / "rekindle.yaml").exists()
    assert (project / "agent.py").read_text() == AGENT
    assert worktrees.git(project, "status", "--porcelain", "-uno") == b""


def test_a_rewind_is_refused_while_an_agent_works(rekindle):
    project = rekindle.project
    (project / "PROMPT.md").write_text("wait\n")
    (project / "launches.log").write_text("launch\n")
    running = rekindle.start("run")
    rekindle.place.wait_for(lambda: (project / "hooked").exists() or None)
    refused = rekindle.start("rewind", "--yes")
    assert refused.wait() == 6
    assert "`rekindle stop trades`" in refused.err
    assert (project / "result.txt").exists()
    rekindle("stop")
    assert running.wait() is not None
    rekindle("rewind", "--yes")
    assert not (project / "result.txt").exists()


def test_an_agent_in_its_own_clone_does_not_prevent_a_rewind_of_the_checkout(rekindle):
    project = rekindle.project
    manifest = (project / "rekindle.yaml").read_text()
    entry = manifest.partition("  trades:\n")[2]
    own = f"  helper:\n{entry}    workspace: clone\n    prompt: WAIT.md\n"
    (project / "rekindle.yaml").write_text(manifest + own)
    (project / "WAIT.md").write_text("wait\n")
    rekindle("run", "trades")
    running = rekindle.start("run", "helper")
    folder = rekindle.place.wait_for(lambda: find_clone(rekindle, "helper"))
    rekindle.place.wait_for(lambda: (folder / "hooked").exists() or None)
    rekindle("rewind", "trades", "1", "--yes")
    assert not (project / "result.txt").exists()
    refused = rekindle.start("rewind", "helper", "--yes")
    assert refused.wait() == 6
    assert (folder / "result.txt").exists()
    rekindle("stop", "helper")
    assert running.wait() is not None


def test_no_snapshot_is_taken_if_the_manifest_says_so_or_without_git(rekindle):
    project = rekindle.project
    with (project / "rekindle.yaml").open("a") as manifest:
        manifest.write("runtime: {snapshots: {take: false}}\n")
    rekindle("run")
    assert reasons(rekindle) == []
    assert "There is no snapshot yet" in rekindle("snapshots")
    shutil.rmtree(project / ".git")
    outside = rekindle.start("snapshots")
    assert outside.wait() != 0
    assert "git init" in outside.err


def test_doctor_warns_before_they_are_published_and_forget_removes_them(rekindle):
    project = rekindle.project
    rekindle("run")
    worktrees.git(project, "remote", "add", "origin", "https://example.org/project.git")
    examined = rekindle.start("doctor")
    assert examined.wait() in {0, 8}
    assert "2 snapshots of its work tree, which may contain secrets" in examined.out
    assert "never run `git push --mirror`" in examined.out
    worktrees.git(project, "update-ref", "refs/rekindle/other/1", "HEAD")
    assert "removed 2 snapshots of the work tree" in rekindle("forget", ".", "--yes")
    left = worktrees.git(project, "for-each-ref", "--format=%(refname)", "refs/rekindle")
    assert left == b"refs/rekindle/other/1\n"
