"""Agents' own checkouts after the user moves the project, or changes `workspace:`."""

import json
import shutil

import pytest

import worktrees
from rekindle.cli import main
from rekindle.errors import WorkspaceError
from rekindle.stores.folders import private_files
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace

KINDS = pytest.mark.parametrize("kind", ["clone", "worktree"])
MANIFEST = "version: 1\nagents:\n  trades: {{harness: claude-code, workspace: {kind}}}\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "before" / "project"
    folder.mkdir(parents=True)
    (folder / "shared.txt").write_text("one\n")
    (folder / ".gitignore").write_text(".rekindle\nrekindle.yaml\n")
    (folder / "PROMPT.md").write_text("Trade.\n")
    worktrees.git(folder, "init", "-q", "-b", "main")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    accept_folder(folder)
    return folder


def work(project, kind):
    """Create a checkout with work that is not published yet."""
    (project / "rekindle.yaml").write_text(MANIFEST.format(kind=kind))
    workspace = AgentWorkspace(project, project, "trades", kind)
    workspace.open((), lambda: None, updates=True)
    (workspace.folder / "committed.txt").write_text("committed\n")
    worktrees.git(workspace.folder, "add", "-A")
    worktrees.git(workspace.folder, "commit", "-qm", "work")
    (workspace.folder / "uncommitted.txt").write_text("uncommitted\n")
    return workspace


def problems_of(project, monkeypatch, capfd):
    monkeypatch.chdir(project)
    main.run(["doctor", "--json"])
    listed = json.loads(capfd.readouterr().out)["agents"]["trades"]
    return {problem["what"]: problem["fix"] for problem in listed}


@KINDS
@pytest.mark.parametrize("renamed", ["project", "above"])
def test_the_checkout_moves_with_the_project(project, kind, renamed, monkeypatch, capfd):
    former = work(project, kind).folder
    if renamed == "project":
        moved = project.rename(project.with_name("renamed"))
    else:
        moved = project.parent.rename(project.parent.with_name("after")) / "project"
    [(words, fix)] = [
        (words, fix)
        for words, fix in problems_of(moved, monkeypatch, capfd).items()
        if "you have moved the project" in words
    ]
    assert str(former) in words
    assert "rekindle merge trades" in fix
    accept_folder(moved)
    workspace = AgentWorkspace(moved, moved, "trades", kind)
    assert not workspace.open((), lambda: pytest.fail("prepared again"), updates=True)
    assert not former.exists()
    assert not former.with_name("trades.json").exists()
    assert (workspace.folder / "uncommitted.txt").exists()
    assert worktrees.git(workspace.folder, "status", "--porcelain") == b"?? uncommitted.txt\n"
    assert worktrees.git(workspace.folder, "fsck") == b""
    assert worktrees.git(moved, "worktree", "list").count(b"\n") == (2 if kind == "worktree" else 1)
    assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
    assert (moved / "committed.txt").exists()
    assert (moved / "uncommitted.txt").exists()
    if kind == "clone":
        url = worktrees.git(workspace.folder, "config", "remote.project.url")
        assert url.decode().strip() == str(moved)


@KINDS
def test_a_merge_right_after_the_move_finds_the_checkout(project, kind, monkeypatch, capfd):
    work(project, kind)
    moved = project.rename(project.with_name("renamed"))
    accept_folder(moved)
    monkeypatch.chdir(moved)
    assert main.run(["merge", "trades"]) == 0, capfd.readouterr().err
    assert (moved / "uncommitted.txt").read_text() == "uncommitted\n"


@KINDS
@pytest.mark.parametrize("step", ["record", "folder"])
def test_a_killed_move_is_completed_by_the_next_one(project, kind, step, monkeypatch):
    former = work(project, kind).folder
    moved = project.rename(project.with_name("renamed"))
    accept_folder(moved)
    workspace = AgentWorkspace(moved, moved, "trades", kind)
    workspace.folder.parent.mkdir()
    record = former.with_name("trades.json")
    (workspace.folder.parent / "trades.json").write_bytes(record.read_bytes())
    if step == "folder":
        former.rename(workspace.folder)
    workspace.open((), lambda: pytest.fail("prepared again"), updates=True)
    assert (workspace.folder / "uncommitted.txt").exists()
    assert worktrees.git(workspace.folder, "fsck") == b""


def test_a_copied_project_gets_a_new_clone(project, tmp_path):
    """The clone of the original is not taken away."""
    former = work(project, "clone").folder
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    accept_folder(copy)
    workspace = AgentWorkspace(copy, copy, "trades", "clone")
    assert workspace.open((), lambda: None, updates=True)
    assert (former / "uncommitted.txt").exists()
    assert not (workspace.folder / "uncommitted.txt").exists()


def test_a_clone_that_reads_a_missing_repository_is_reported_and_repaired(
    project, monkeypatch, capfd
):
    """The user moved the main work tree, in which the objects are."""
    linked = project.with_name("linked")
    worktrees.git(project, "worktree", "add", "-q", str(linked))
    accept_folder(linked)
    workspace = work(linked, "clone")
    moved = project.rename(project.with_name("elsewhere"))
    worktrees.git(moved, "worktree", "repair", str(linked))
    problems = problems_of(linked, monkeypatch, capfd)
    [words] = [words for words in problems if "which does not exist" in words]
    assert f"reads {project}/.git/objects" in words
    assert "rekindle merge trades --check" in problems[words]
    assert main.run(["merge", "trades", "--check"]) == 0, capfd.readouterr().err
    capfd.readouterr()
    assert worktrees.git(workspace.folder, "fsck", "--no-dangling") == b""
    assert not [words for words in problems_of(linked, monkeypatch, capfd) if "not exist" in words]


def test_a_planted_link_is_not_followed_by_the_repair(project, tmp_path):
    workspace = work(project, "clone")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "alternates").write_text("/nowhere/objects\n")
    shutil.rmtree(workspace.folder / ".git/objects/info")
    (workspace.folder / ".git/objects/info").symlink_to(mine)
    with pytest.raises(WorkspaceError, match="points outside"):
        workspace.repair()
    assert (mine / "alternates").read_text() == "/nowhere/objects\n"


def test_a_folder_without_a_record_is_reported(project, monkeypatch, capfd):
    workspace = work(project, "clone")
    workspace.folder.with_name("trades.json").unlink()
    problems = problems_of(project, monkeypatch, capfd)
    [words] = [words for words in problems if "no readable record" in words]
    assert str(workspace.folder) in words
    assert f"rm -r {workspace.folder}" in problems[words]


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("worktree", "works in a clone, but its `workspace:` is now worktree"),
        ("here", "also has the clone"),
    ],
)
def test_a_changed_setting_loses_no_work(project, now, words, monkeypatch, capfd):
    """The clone is cleaned as a clone, whatever `workspace:` says now."""
    workspace = work(project, "clone")
    (project / "rekindle.yaml").write_text(MANIFEST.format(kind=now))
    problems = problems_of(project, monkeypatch, capfd)
    [found] = [problem for problem in problems if words in problem]
    assert "rekindle clean trades" in problems[found]
    assert main.run(["clean", "trades"]) == 0, capfd.readouterr().err
    assert not workspace.folder.exists()
    assert worktrees.git(project, "show", "rekindle/trades/work:committed.txt")
    assert worktrees.git(project, "show", "refs/rekindle/trades/1:uncommitted.txt")


def test_every_project_has_its_own_folder(project):
    other = project.with_name("other")
    folders = {private_files.find_private_project(at).workspaces for at in (project, other)}
    assert len(folders) == 2
