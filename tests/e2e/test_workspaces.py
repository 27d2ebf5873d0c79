"""Agents with their own clone or work tree: no lost edit, a merge or a reported conflict."""

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

import prerequisites
import worktrees
from e2e.sandbox import TASK, Rekindle
from e2e.test_command import Program
from rekindle.errors import WorkspaceError
from rekindle.system.git.branch_merge import fast_forward
from rekindle.system.git.tree_snapshot import WorkingCopy

pytestmark = pytest.mark.timeout(400)

AGENT = """\
import os, pathlib, subprocess, sys
name = os.environ["REKINDLE_AGENT"]
prompt = sys.stdin.read()
pathlib.Path("prompt.log").write_text(prompt)
subprocess.run(["git", "log", "--oneline", "project/main"], check=not os.path.isfile(".git"))
number = int(name.removeprefix("a"))
shared = pathlib.Path("shared.txt").read_text().splitlines()
shared[number] = f"{name} was here"
pathlib.Path("shared.txt").write_text("\\n".join(shared) + "\\n")
pathlib.Path(f"{name}.txt").write_text(f"the work of {name}\\n")
git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
subprocess.run([*git, "add", "-A"], check=True)
subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"the work of {name}"], check=True)
pathlib.Path(f"{name}-uncommitted.txt").write_text("not committed\\n")
if "resolve the conflicts" in prompt:
    merge = [*git, "merge", "-q", "-X", "theirs", "project/main", "-m", "resolved"]
    subprocess.run(merge, check=True)
"""
WAIT = """\
import os, pathlib, signal
if os.environ["REKINDLE_AGENT"] in KILLED and not os.path.exists("waiting.log"):
    pathlib.Path("before-the-kill.txt").write_text("half of the work\\n")
    pathlib.Path("waiting.new.log").write_text(str(os.getpid()))
    os.rename("waiting.new.log", "waiting.log")
    signal.pause()
"""
"""The first launch of some agents writes a file, and waits until it is killed."""
LINES = "".join(f"line {number}\n" for number in range(40))


def make_project(found, names, settings="workspace: clone"):
    project = found.project
    command = f"[{sys.executable}, agent.py]"
    entry = f"harness: command, until: ['true'], command: {command}"
    agents = "".join(f"  {name}: {{{entry}, {settings}}}\n" for name in names)
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n{agents}")
    (project / "agent.py").write_text(AGENT)
    (project / "PROMPT.md").write_text(TASK)
    (project / "shared.txt").write_text(LINES)
    (project / ".gitignore").write_text("*.log\n.env\n")
    worktrees.git(project, "init", "-q", "-b", "main")
    worktrees.git(project, "config", "user.name", "The User")
    worktrees.git(project, "config", "user.email", "user@example.org")
    worktrees.git(project, "add", "-A")
    worktrees.git(project, "commit", "-qm", "one")
    return project


@pytest.fixture
def rekindle(place, tmp_path):
    return Rekindle(Program(tmp_path / "command"), place)


def refuse(rekindle, *words, code):
    """Run a command that must fail, and return its message on one line."""
    started = rekindle.start(*words)
    assert started.wait() == code, started.out + started.err
    return " ".join(started.err.split())


def git(project, *words):
    return worktrees.git(project, *words).decode()


def find_victims(rekindle, names):
    """Return the process ids of the agents that wait to be killed, once all of them do."""
    folders = {name: find_folder(rekindle, name) for name in names}
    files = [folder / "waiting.log" for folder in folders.values() if folder]
    pids = [file.read_text() for file in files if file.exists()]
    return [int(pid) for pid in pids if pid] if len([*filter(None, pids)]) == len(names) else None


def find_folder(rekindle, name):
    """Return the agent's folder, or None before it was created."""
    rows = json.loads(rekindle("status", name, "--json"))["agents"]
    described = rows[0].get("workspace")
    return Path(described["folder"]) if described else None


def are_done(rekindle):
    """Return whether every agent is done; fail if one of them needs a person."""
    rows = json.loads(rekindle("status", "--json"))["agents"]
    states = {row["agent"]: row["state"] for row in rows}
    assert "needs you" not in states.values(), rows
    return set(states.values()) == {"done"}


def test_ten_agents_at_once_lose_no_edit_although_two_are_killed(rekindle):
    names = [f"a{number * 4}" for number in range(10)]
    killed = ["a8", "a24"]
    project = make_project(rekindle, names)
    agent = (project / "agent.py").read_text()
    (project / "agent.py").write_text(WAIT.replace("KILLED", repr(killed)) + agent)
    git(project, "commit", "-qam", "two agents wait")
    assert rekindle.start("up", *names).wait(150) == 0
    for pid in rekindle.place.wait_for(lambda: find_victims(rekindle, killed), 150):
        rekindle.place.signal(pid, signal.SIGKILL)
    rekindle.place.wait_for(lambda: are_done(rekindle), 150)
    for name in names:
        ends = [
            json.loads(line)
            for line in rekindle("events", name, "--json", "--last", "0").splitlines()
            if '"launch.ended"' in line
        ]
        assert len(ends) == (2 if name in killed else 1), ends
    assert git(project, "status", "--porcelain") == "", "the user's checkout was changed"
    assert (project / "shared.txt").read_text() == LINES
    for name in names:
        done = rekindle("merge", name)
        assert "✓ merged 1 commit and " in done, done
    shared = (project / "shared.txt").read_text()
    for name in names:
        assert f"{name} was here" in shared
        assert (project / f"{name}.txt").read_text() == f"the work of {name}\n"
        assert (project / f"{name}-uncommitted.txt").exists()
    assert (project / "before-the-kill.txt").read_text() == "half of the work\n"
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "log", "-1", "--format=%an") == "The User\n"
    assert "Nothing to merge" in rekindle("merge", names[0])
    assert git(project, "fsck") == ""


def workspace(project, name):
    """The agent's folder, from its log."""
    log = (project / ".rekindle/agents" / name / "ops.jsonl").read_text().splitlines()
    [made] = [one for one in map(json.loads, log) if one.get("kind") == "workspace.created"][-1:]
    return Path(made["folder"])


def test_a_conflict_leaves_the_checkout_alone_and_the_agent_resolves_it(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    (project / "shared.txt").write_text(LINES.replace("line 1\n", "the user's line\n"))
    git(project, "commit", "-qam", "two")
    refused = refuse(rekindle, "merge", "a1", code=8)
    assert "conflicts in shared.txt; your checkout was not changed" in refused
    assert "git merge rekindle/a1/work" in refused
    assert git(project, "status", "--porcelain") == ""
    assert (project / ".git/MERGE_HEAD").exists() is False
    uncommitted = git(project, "show", "rekindle/a1/work:a1-uncommitted.txt")
    assert uncommitted == "not committed\n", "`git merge` of the branch would leave it out"
    assert "rekindle up a1" in refuse(rekindle, "merge", "a1", "--ask-agent", code=8)
    assert "resolve the conflicts in shared.txt" in rekindle("loops", "a1")
    rekindle("run", "a1")
    done = rekindle("merge", "a1")
    assert "✓ merged" in done
    assert "the user's line" in (project / "shared.txt").read_text()
    assert (project / "a1.txt").exists()


def test_unsaved_changes_of_the_user_are_never_overwritten(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    (project / "shared.txt").write_text("not saved\n")
    refused = refuse(rekindle, "merge", "a1", code=5)
    assert "the merge would overwrite your changes to shared.txt" in refused, refused
    assert (project / "shared.txt").read_text() == "not saved\n"
    assert not (project / "a1.txt").exists()


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_a_removed_folder_is_created_again_with_all_its_files(rekindle, kind):
    project = make_project(rekindle, ["a1"], f"workspace: {kind}")
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    before = (folder / "a1-uncommitted.txt").read_text()
    assert "a1/2" in rekindle("snapshots", "a1")
    done = rekindle("clean", "a1")
    assert "its commits are on rekindle/a1/work" in done
    assert not folder.exists()
    assert git(project, "worktree", "list").count("\n") == 1
    text = (project / "rekindle.yaml").read_text()
    (project / "rekindle.yaml").write_text(text.replace("agent.py", "-c, pass"))
    rekindle("run", "a1")
    assert (folder / "a1.txt").read_text() == "the work of a1\n"
    assert (folder / "a1-uncommitted.txt").read_text() == before
    assert git(folder, "status", "--porcelain") == "?? a1-uncommitted.txt\n"


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_a_folder_that_git_does_not_accept_is_moved_aside(rekindle, kind):
    project = make_project(rekindle, ["a1"], f"workspace: {kind}")
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    (folder / "ignored.log").write_text("only here\n")
    if kind == "clone":
        (folder / ".git/HEAD").write_text("\0")
    else:
        shutil.rmtree(project / ".git/worktrees")
    started = rekindle.start("run", "a1")
    assert started.wait() == 0, started.err
    assert "created its folder again" in started.out + started.err
    [aside] = folder.parent.glob("a1.1*")
    assert (aside / "ignored.log").read_text() == "only here\n"
    assert (folder / "a1-uncommitted.txt").exists()
    assert git(project, "fsck") == ""


def test_a_clean_folder_follows_the_user_and_commands_in_it_find_the_project(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    rekindle("merge", "a1")
    (project / "later.txt").write_text("later\n")
    git(project, "add", "later.txt")
    git(project, "commit", "-qm", "later")
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    assert (folder / "later.txt").exists()
    assert (folder / "rekindle.yaml").exists(), "the clone has its own copy of the manifest"
    status = [sys.executable, "-I", "-m", "rekindle", "status"]
    started = rekindle.place.start(status, env=rekindle.cli.environment(), cwd=folder)
    assert started.wait() == 0, started.err
    assert "a1" in started.out


def test_files_are_copied_and_prepared_once(rekindle):
    prepare = f"[{sys.executable}, -c, \"open('prepared.log', 'a').write('once')\"]"
    project = make_project(rekindle, ["a1"], f"workspace: clone, copy: [.env], prepare: {prepare}")
    refused = refuse(rekindle, "run", "a1", code=3)
    assert "`copy: .env` does not exist" in refused
    (project / ".env").write_text("SETTING=1\n")
    rekindle("run", "a1")
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    assert (folder / ".env").read_text() == "SETTING=1\n"
    assert (folder / "prepared.log").read_text() == "once"


def test_a_failing_prepare_starts_nothing_and_is_tried_again(rekindle):
    prepare = f"[{sys.executable}, -c, \"raise SystemExit('no network')\"]"
    project = make_project(rekindle, ["a1"], f"workspace: clone, prepare: {prepare}")
    refused = refuse(rekindle, "run", "a1", code=9)
    assert "`prepare:` failed" in refused
    assert "no network" in refused
    text = (project / "rekindle.yaml").read_text()
    (project / "rekindle.yaml").write_text(text.replace("raise SystemExit('no network')", "pass"))
    rekindle("run", "a1")
    assert (workspace(project, "a1") / "a1.txt").exists()


ESCAPE = """\
import pathlib, subprocess, sys
project = pathlib.Path(sys.argv[1])
results = {}
for name, path in {
    "checkout": project / "planted.txt",
    "branch": project / ".git/refs/heads/main",
    "config": project / ".git/config",
    "neighbour": pathlib.Path.cwd().parent / "other.txt",
}.items():
    try:
        path.write_text("planted")
        results[name] = "written"
    except OSError:
        results[name] = "refused"
git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
pathlib.Path("inside.txt").write_text("inside\\n")
subprocess.run([*git, "add", "-A"], check=True)
subprocess.run([*git, "commit", "-qm", "inside"], check=True)
pathlib.Path("results.log").write_text(repr(results))
"""


def test_a_sandboxed_clone_commits_but_cannot_write_to_the_user_s_repository(rekindle):
    is_there = shutil.which("bwrap")
    prerequisites.require(None if is_there else "`sandbox: on` needs bubblewrap")
    project = make_project(rekindle, ["a1"], "workspace: clone, sandbox: on")
    (project / "agent.py").write_text(ESCAPE)
    text = (project / "rekindle.yaml").read_text()
    (project / "rekindle.yaml").write_text(text.replace("agent.py", f"agent.py, {project}"))
    git(project, "commit", "-qam", "escape")
    head = git(project, "rev-parse", "main")
    rekindle("run", "a1")
    results = (workspace(project, "a1") / "results.log").read_text()
    assert results.count("refused") == 4, results
    assert git(project, "rev-parse", "main") == head
    rekindle("merge", "a1")
    assert (project / "inside.txt").read_text() == "inside\n"


def commit(folder, name, text, *options):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", "-f", name)
    git(folder, "commit", "-qm", f"{name}", *options)
    return git(folder, "rev-parse", "HEAD").strip()


def test_a_merge_never_overwrites_ignored_files_or_rekindle_s_own(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    (project / ".env").write_text("the user's secret\n")
    commit(folder, ".env", "the agent's\n")
    assert "would overwrite your changes to .env" in refuse(rekindle, "merge", "a1", code=5)
    assert (project / ".env").read_text() == "the user's secret\n"
    git(folder, "rm", "-q", ".env")
    log = project / ".rekindle/agents/a1/ops.jsonl"
    before = log.read_bytes()
    planted = commit(folder, ".rekindle/agents/a1/ops.jsonl", "{}\n")
    rekindle("merge", "a1", "--check")
    with pytest.raises(WorkspaceError, match="Rekindle's own"):
        fast_forward(WorkingCopy(project), planted)
    rekindle("merge", "a1")
    assert log.read_bytes() == before


def test_every_commit_of_a_clone_and_of_the_user_stays_in_a_ref(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    git(project, "switch", "-q", "rekindle/a1/work")
    mine = commit(project, "mine.txt", "of the user\n")
    git(project, "switch", "-q", "main")
    on_work = commit(folder, "on-work.txt", "x\n")
    git(folder, "tag", "mark")
    git(folder, "switch", "-qc", "side", "HEAD~1")
    side = commit(folder, "side.txt", "x\n")
    (folder / "stashed.txt").write_text("stashed\n")
    git(folder, "stash", "-qu")
    stash = git(folder, "rev-parse", "refs/stash").strip()
    rekindle("clean", "a1")
    assert not folder.exists()
    for one in (mine, on_work, side, stash):
        assert git(project, "for-each-ref", "--contains", one), one


def test_a_merge_with_conflict_markers_is_refused(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    folder = workspace(project, "a1")
    git(folder, "switch", "-qc", "other", "HEAD~1")
    commit(folder, "a1.txt", "another text\n")
    git(folder, "switch", "-q", "rekindle/a1/work")
    worktrees.git(folder, "merge", "-q", "other", check=False)
    assert "<<<<<<<" in (folder / "a1.txt").read_text()
    assert "has not finished a merge" in refuse(rekindle, "merge", "a1", code=5)
    assert not (project / "a1.txt").exists()


def test_a_commit_that_the_user_removed_does_not_come_back(rekindle):
    project = make_project(rekindle, ["a1"])
    commit(project, "key.txt", "a key\n")
    text = (project / "rekindle.yaml").read_text()
    (project / "rekindle.yaml").write_text(text.replace("agent.py", "-c, pass"))
    git(project, "commit", "-qam", "idle")
    rekindle("run", "a1")
    git(project, "rm", "-q", "key.txt")
    git(project, "commit", "-q", "--amend", "-m", "without the key")
    assert "Nothing to merge" in rekindle("merge", "a1")
    assert not (project / "key.txt").exists()


PLANT = """\
import os
try:
    os.makedirs(".git/hooks", exist_ok=True)
    open(".git/hooks/post-checkout", "w").write("x")
    result = "planted"
except OSError as error:
    result = str(error)
open("result.log", "w").write(result)
"""


def test_a_sandboxed_clone_has_read_only_hooks(rekindle):
    is_there = shutil.which("bwrap")
    prerequisites.require(None if is_there else "`sandbox: on` needs bubblewrap")
    project = make_project(rekindle, ["a1"], "workspace: clone, sandbox: on")
    (project / "agent.py").write_text(PLANT)
    git(project, "commit", "-qam", "plant")
    rekindle("run", "a1")
    assert "Read-only" in (workspace(project, "a1") / "result.log").read_text()
    assert list((workspace(project, "a1") / ".git/hooks").iterdir()) == []


def test_two_projects_in_a_repository_cannot_share_an_agent_s_branch(rekindle):
    project = make_project(rekindle, ["a1"])
    rekindle("run", "a1")
    inner = project / "inner"
    inner.mkdir()
    for name in ("rekindle.yaml", "PROMPT.md", "agent.py"):
        shutil.copy(project / name, inner / name)
    environment = rekindle.cli.environment(LC_ALL="C.UTF-8", REKINDLE_TRUST="1")
    argv = [*rekindle.program, "run", "a1"]
    started = rekindle.place.start(argv, env=environment, cwd=inner)
    assert started.wait() == 3, started.err
    assert "has an agent of this name" in " ".join(started.err.split())
