"""`rekindle merge` in unusual repositories, and with unusual histories and names."""

import json
import os
import random
import subprocess
import tracemalloc

import pytest

import worktrees
from rekindle.cli import main
from rekindle.config import load_project
from rekindle.system import clock
from rekindle.system.git import own_configuration
from rekindle.system.git.publish_work import copy_objects
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring import merge_work
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace

KINDS = pytest.mark.parametrize("kind", ["clone", "worktree"])
ODD_NAMES = [
    "new\nline",
    "quote'\"",
    "tab\tname",
    "-dash",
    ":colon",
    "naïve 日本",
    "*",
    "back\\slash",
]


def prepare(folder, *init):
    """Create a repository with two commits."""
    folder.mkdir(parents=True)
    worktrees.git(folder, "init", "-q", "-b", "main", *init)
    (folder / ".gitignore").write_text(".rekindle\n")
    for number in range(2):
        (folder / "shared.txt").write_text(f"{number}\n" + "line\n" * 9 + "end\n")
        worktrees.git(folder, "add", "-A")
        worktrees.git(folder, "commit", "-qm", f"{number}")
    return folder


def make_shallow(folder):
    source = prepare(folder.with_name("source"))
    words = ["git", "clone", "-q", "--depth", "1", f"file://{source}", str(folder)]
    subprocess.run(words, check=True)
    assert (folder / ".git/shallow").exists()
    return folder


def make_linked(folder):
    main_tree = prepare(folder.with_name("main-tree"))
    worktrees.git(main_tree, "worktree", "add", "-q", "-b", "side", str(folder))
    return folder


def make_subfolder(folder):
    (prepare(folder) / "deep/project").mkdir(parents=True)
    return folder / "deep/project"


PLACES = {
    "plain": prepare,
    "sha256": lambda folder: prepare(folder, "--object-format=sha256"),
    "odd path": lambda folder: prepare(folder / "a b:c/naïve 日本 'q\""),
    "packed": lambda folder: worktrees.git(prepare(folder), "gc", "-q") or folder,
    "shallow": make_shallow,
    "linked": make_linked,
    "subfolder": make_subfolder,
}


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Return a function that creates a project, and an agent's checkout in it."""

    def run(kind, place="plain"):
        project = PLACES[place](tmp_path / "project")
        (project / "rekindle.yaml").write_text(
            f"version: 1\nagents:\n  trades: {{harness: claude-code, workspace: {kind}}}\n"
        )
        worktrees.git(project, "add", "-A")
        worktrees.git(project, "commit", "-qm", "manifest")
        accept_folder(project)
        monkeypatch.chdir(project)
        top = own_configuration.find_top(project)
        workspace = AgentWorkspace(project, top, "trades", kind)
        assert workspace.open((), lambda: None, updates=True)
        return top, workspace

    return run


def commit(folder, message="work"):
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", message)


@KINDS
@pytest.mark.parametrize("place", PLACES)
def test_the_work_is_merged_and_survives_clean(start, kind, place, capfd):
    top, workspace = start(kind, place)
    (workspace.folder / "committed.txt").write_text("committed\n")
    commit(workspace.folder)
    (workspace.folder / "uncommitted.txt").write_text("uncommitted\n")
    (top / "mine.txt").write_text("mine\n")
    commit(top, "mine")
    assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
    for name in ("committed", "uncommitted", "mine"):
        assert (top / f"{name}.txt").read_text() == f"{name}\n"
    assert worktrees.git(top, "status", "--porcelain") == b""
    (workspace.folder / "later.txt").write_text("later\n")
    assert main.run(["clean", "trades"]) == 0, capfd.readouterr().err
    assert not workspace.folder.exists()
    assert workspace.open((), lambda: None, updates=True)
    assert (workspace.folder / "later.txt").read_text() == "later\n"
    for folder in (top, workspace.folder):
        assert worktrees.git(folder, "fsck", "--no-dangling") == b""


@KINDS
def test_odd_names_are_merged(start, kind, capfd):
    top, workspace = start(kind)
    for name in ODD_NAMES[:4]:
        (workspace.folder / name).write_text(name)
    commit(workspace.folder)
    for name in ODD_NAMES[4:]:
        (workspace.folder / name).write_text(name)
    assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
    assert [(top / name).read_text() for name in ODD_NAMES] == ODD_NAMES
    assert worktrees.git(top, "status", "--porcelain") == b""


@KINDS
def test_odd_names_in_a_conflict_are_shown_on_one_line(start, kind, capfd):
    top, workspace = start(kind)
    for folder in (top, workspace.folder):
        for name in ODD_NAMES:
            (folder / name).write_text(str(folder))
        commit(folder)
    assert main.run(["merge", "trades", "--ask-agent"]) == 8
    message, _, hint = capfd.readouterr().err.partition("\n")
    for name in ("new line", "quote'\"", "naïve 日本"):
        assert name in message
    assert hint.count("\n") == 1
    assert worktrees.git(top, "status", "--porcelain") == b""


def test_odd_names_that_a_merge_would_overwrite_are_named(start, capfd):
    top, workspace = start("clone")
    (workspace.folder / "naïve 日本").write_text("theirs")
    commit(workspace.folder)
    (top / "naïve 日本").write_text("mine")
    assert main.run(["merge", "trades"]) == 5
    assert "overwrite your changes to naïve 日本" in capfd.readouterr().err
    assert (top / "naïve 日本").read_text() == "mine"


@KINDS
def test_a_detached_head_is_moved(start, kind, capfd):
    top, workspace = start(kind)
    worktrees.git(top, "checkout", "-q", "--detach")
    main_branch = worktrees.git(top, "rev-parse", "main")
    (workspace.folder / "new.txt").write_text("new\n")
    assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
    assert "into HEAD" in capfd.readouterr().out
    assert (top / "new.txt").exists()
    assert worktrees.git(top, "rev-parse", "main") == main_branch
    assert worktrees.git(top, "symbolic-ref", "-q", "HEAD", check=False) == b""


@KINDS
@pytest.mark.parametrize("is_detached", [False, True])
def test_the_agent_is_asked_to_merge_a_commit_that_its_checkout_has(
    start, kind, is_detached, capfd
):
    top, workspace = start(kind)
    for folder in (workspace.folder, top):
        if folder == top and is_detached:
            worktrees.git(top, "checkout", "-q", "--detach")
        (folder / "shared.txt").write_text(f"{folder}\n")
        commit(folder)
    assert main.run(["merge", "trades", "--ask-agent"]) == 8
    capfd.readouterr()
    assert main.run(["loops", "--json"]) == 0
    [loop] = json.loads(capfd.readouterr().out)["open"]
    named = loop["text"].removeprefix("Merge ").partition(" ")[0]
    workspace.open((), lambda: None, updates=True)
    head = worktrees.git(top, "rev-parse", "HEAD")
    assert worktrees.git(workspace.folder, "rev-parse", named) == head


@KINDS
def test_a_branch_without_a_commit_is_refused(start, kind, capfd):
    top, workspace = start(kind)
    (workspace.folder / "new.txt").write_text("new\n")
    commit(workspace.folder)
    worktrees.git(top, "checkout", "-q", "--orphan", "empty")
    assert main.run(["merge", "trades"]) == 5
    printed = capfd.readouterr().err
    assert "your branch empty has no commit yet" in printed
    assert "git checkout" in printed


@KINDS
def test_histories_without_a_common_commit_are_refused(start, kind, capfd):
    top, workspace = start(kind)
    (workspace.folder / "new.txt").write_text("new\n")
    commit(workspace.folder)
    worktrees.git(top, "checkout", "-q", "--orphan", "rewritten")
    commit(top, "rewritten")
    assert main.run(["merge", "trades"]) == 5
    printed = capfd.readouterr().err
    assert "rekindle/trades/work and rewritten have no commit in common" in printed
    assert "git merge --allow-unrelated-histories rekindle/trades/work" in printed
    assert not (top / "new.txt").exists()


def test_the_branch_is_not_moved_while_the_user_has_it_checked_out(start):
    top, workspace = start("clone")
    worktrees.git(top, "checkout", "-q", "rekindle/trades/work")
    before = worktrees.git(top, "rev-parse", "HEAD")
    (workspace.folder / "new.txt").write_text("new\n")
    commit(workspace.folder)
    workspace.publish(clock.read_clock())
    assert worktrees.git(top, "rev-parse", "HEAD") == before
    assert worktrees.git(top, "status", "--porcelain") == b""
    worktrees.git(top, "checkout", "-q", "main")
    workspace.publish(clock.read_clock())
    head = worktrees.git(workspace.folder, "rev-parse", "HEAD")
    assert worktrees.git(top, "rev-parse", "rekindle/trades/work") == head


@KINDS
def test_the_user_can_merge_into_the_agent_s_branch_in_a_clone_only(start, kind, capfd):
    """Git does not let two work trees have the same branch."""
    top, workspace = start(kind)
    (workspace.folder / "new.txt").write_text("new\n")
    commit(workspace.folder)
    checked_out = subprocess.run(
        ["git", "checkout", "-q", "rekindle/trades/work"],
        cwd=top,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert (checked_out.returncode == 0) == (kind == "clone")
    if kind == "clone":
        assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
        assert (top / "new.txt").exists()


def test_branches_whose_names_exclude_each_other_are_published_in_turn(start):
    """Git cannot store `topic` and `topic/one` at once."""
    top, workspace = start("clone")
    git = worktrees.git
    commits = []
    for name, removed in (("topic", ""), ("topic/one", "topic")):
        git(workspace.folder, "checkout", "-q", "--detach")
        if removed:
            git(workspace.folder, "branch", "-D", removed)
        git(workspace.folder, "checkout", "-q", "-b", name)
        (workspace.folder / "topic.txt").write_text(name)
        commit(workspace.folder, name)
        commits.append(git(workspace.folder, "rev-parse", "HEAD").decode().strip())
        workspace.publish(clock.read_clock())
    for commit_id in commits:
        assert git(top, "for-each-ref", "--contains", commit_id)


def test_a_commit_that_the_agent_adds_during_a_merge_stays(start):
    project, workspace = start("clone")
    (workspace.folder / "new.txt").write_text("new\n")
    opened = load_project(project)
    planned = merge_work.plan_merge(opened, "trades")
    assert planned.uncommitted == 1
    worktrees.git(workspace.folder, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    added = worktrees.git(workspace.folder, "rev-parse", "HEAD")
    merge_work.commit_work(opened, planned)
    assert worktrees.git(workspace.folder, "rev-parse", "HEAD") == added


def test_a_branch_that_the_user_has_checked_out_is_merged_with_all_its_objects(start, monkeypatch):
    """Only its commits are merged, because the agent is working."""
    project, workspace = start("clone")
    worktrees.git(project, "switch", "-q", "rekindle/trades/work")
    (workspace.folder / "new.txt").write_text("new\n")
    worktrees.git(workspace.folder, "add", "-A")
    worktrees.git(workspace.folder, "commit", "-qm", "new")
    monkeypatch.setattr(merge_work.RunningAgents, "find", lambda *_: {"trades": None})
    opened = load_project(project)
    merge_work.bring_in(opened, merge_work.plan_merge(opened, "trades"))
    assert (project / "new.txt").read_text() == "new\n"
    assert worktrees.git(project, "fsck") == b""


def test_copying_objects_needs_little_memory(start):
    project, workspace = start("clone")
    data = random.Random(1).randbytes(16 * 2**20)
    (workspace.folder / "large.bin").write_bytes(data)
    commit(workspace.folder)
    clone, source = WorkingCopy(workspace.folder), WorkingCopy(project)
    head = clone.read_head().head
    tracemalloc.start()
    try:
        copy_objects(clone, source, (head,), excluded={})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(data) / 4
    assert worktrees.git(project, "cat-file", "blob", f"{head}:large.bin") == data
    assert not list((project / ".git").glob("tmp*")), "the file for the objects is gone"
