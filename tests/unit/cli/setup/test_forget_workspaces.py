"""`rekindle forget` saves the work of agents' own checkouts before it removes them."""

import shutil

import pytest

import worktrees
from rekindle.cli import main
from rekindle.errors import WorkspaceError
from rekindle.stores.folders import private_files
from rekindle.system.files import user_folder
from rekindle.wiring import forget_project
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace

KINDS = pytest.mark.parametrize("kind", ["clone", "worktree"])


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shared.txt").write_text("one\n")
    worktrees.git(folder, "init", "-q", "-b", "main")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    accept_folder(folder)
    return folder


def work(project, kind, agent="trades"):
    """Create a checkout with a commit and an uncommitted file, as an agent leaves it."""
    workspace = AgentWorkspace(project, project, agent, kind)
    workspace.open((), lambda: None, updates=True)
    (workspace.folder / "committed.txt").write_text(f"{agent}\n")
    worktrees.git(workspace.folder, "add", "-A")
    worktrees.git(workspace.folder, "commit", "-qm", "work")
    (workspace.folder / "uncommitted.txt").write_text(f"{agent}\n")
    return workspace


def show(project, path, branch="rekindle/trades/work"):
    return worktrees.git(project, "show", f"{branch}:{path}").decode()


@KINDS
def test_the_work_is_on_the_branch_and_the_folder_is_gone(project, kind, capfd):
    workspace = work(project, kind)
    assert main.run(["forget", str(project), "--dry-run"]) == 0
    assert f"· {kind} of trades: {workspace.folder}" in capfd.readouterr().out
    assert workspace.folder.exists()
    assert main.run(["forget", str(project), "--yes"]) == 0
    printed = capfd.readouterr().out
    assert f"✓ removed {kind} of trades: {workspace.folder}" in printed
    assert "git branches: rekindle/trades/work" in printed
    assert not workspace.folder.exists()
    assert not private_files.find_private_project(project).workspaces.exists()
    assert show(project, "committed.txt") == show(project, "uncommitted.txt") == "trades\n"
    assert worktrees.git(project, "worktree", "list").count(b"\n") == 1
    assert worktrees.git(project, "status", "--porcelain") == b""
    assert worktrees.git(project, "fsck") == b""


def test_each_agent_has_its_own_line(project, capfd):
    workspaces = [work(project, "clone", agent) for agent in ("lab", "trades")]
    assert main.run(["forget", str(project), "--yes"]) == 0
    assert capfd.readouterr().out.count("✓ removed clone of") == 2
    for workspace in workspaces:
        assert not workspace.folder.exists()
        assert show(project, "uncommitted.txt", workspace.checkout.branch)


@KINDS
def test_a_half_created_folder_is_removed_without_being_saved(project, kind):
    workspace = AgentWorkspace(project, project, "trades", kind)

    def fail():
        raise WorkspaceError("failed", "prepare failed", hint="")

    with pytest.raises(WorkspaceError):
        workspace.open((), fail, updates=True)
    assert workspace.folder.exists()
    before = worktrees.git(project, "rev-parse", "rekindle/trades/work")
    assert main.run(["forget", str(project), "--yes"]) == 0
    assert not workspace.folder.exists()
    assert worktrees.git(project, "rev-parse", "rekindle/trades/work") == before
    assert worktrees.git(project, "worktree", "list").count(b"\n") == 1


def test_a_clone_without_its_repository_stays(project, capfd):
    workspace = work(project, "clone")
    shutil.rmtree(project)
    assert main.run(["forget", str(project), "--yes"]) == 0
    printed = capfd.readouterr().out
    assert f"! not removed: clone of trades: {workspace.folder}: " in printed
    assert f"rm -r {workspace.folder}" in printed
    assert (workspace.folder / "committed.txt").exists()


def test_a_folder_without_a_record_stays(project, capfd):
    workspace = work(project, "clone")
    (workspace.folder.parent / "trades.json").write_text("{")
    assert main.run(["forget", str(project), "--yes"]) == 0
    assert "! not removed: folder of trades" in capfd.readouterr().out
    assert (workspace.folder / "committed.txt").exists()


def test_a_clone_whose_branch_the_user_has_checked_out_stays(project, capfd):
    workspace = work(project, "clone")
    worktrees.git(project, "checkout", "-q", "rekindle/trades/work")
    assert main.run(["forget", str(project), "--yes"]) != 0
    printed = capfd.readouterr()
    assert "✗ clone of trades" in printed.err
    assert "check out another branch" in printed.err
    assert (workspace.folder / "committed.txt").exists()
    worktrees.git(project, "checkout", "-q", "main")
    assert main.run(["forget", str(project), "--yes"]) == 0
    assert not workspace.folder.exists()
    assert show(project, "uncommitted.txt") == "trades\n"


@pytest.mark.parametrize("command", ["forget", "clean"])
def test_a_repository_that_the_agent_created_is_not_lost(project, command, capfd, monkeypatch):
    workspace = work(project, "clone")
    nested = workspace.folder / "nested"
    nested.mkdir()
    worktrees.git(nested, "init", "-q")
    worktrees.git(nested, "commit", "-q", "--allow-empty", "-m", "inside")
    monkeypatch.chdir(project)
    (project / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades: {harness: claude-code, workspace: clone}\n"
    )
    words = ["forget", ".", "--yes"] if command == "forget" else ["clean", "trades"]
    assert main.run(words) != 0
    assert "the repository nested of trades would be lost" in capfd.readouterr().err
    assert nested.exists()


def test_a_file_that_is_too_large_for_a_snapshot_is_not_lost(project, capfd, monkeypatch):
    workspace = work(project, "clone")
    with (workspace.folder / "large").open("wb") as file:
        file.truncate(51 * 1024 * 1024)
    monkeypatch.chdir(project)
    (project / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades: {harness: claude-code, workspace: clone}\n"
    )
    assert main.run(["clean", "trades"]) != 0
    assert "large of trades would be lost" in capfd.readouterr().err
    assert (workspace.folder / "large").exists()


def test_commits_on_every_branch_of_the_agent_are_saved(project):
    """The agent left its branch, and committed elsewhere."""
    workspace = work(project, "clone")
    left = worktrees.git(workspace.folder, "rev-parse", "HEAD").strip()
    worktrees.git(workspace.folder, "checkout", "-q", "-b", "topic/one", "HEAD~1")
    worktrees.git(workspace.folder, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    topic = worktrees.git(workspace.folder, "rev-parse", "HEAD").strip()
    assert main.run(["forget", str(project), "--yes"]) == 0
    assert not workspace.folder.exists()
    for commit in (left, topic):
        assert worktrees.git(project, "for-each-ref", "--contains", commit.decode())


def test_a_detached_work_tree_keeps_its_commits(project, capfd):
    workspace = work(project, "worktree")
    worktrees.git(workspace.folder, "checkout", "-q", "--detach")
    worktrees.git(workspace.folder, "commit", "-qam", "detached", "--allow-empty")
    assert main.run(["forget", str(project), "--yes"]) != 0
    assert "is not on a branch" in capfd.readouterr().err
    assert workspace.folder.exists()


def test_the_locks_for_new_clones_are_removed_with_everything_else(project):
    work(project, "clone").remove()
    above = user_folder.find_workspaces_folder()
    assert list(above.glob("slot-*.lock"))
    traces = [one for one in forget_project.find_user_traces() if "locks for new" in one.words]
    assert len(traces) == 1
    traces[0].remove()
    assert not list(above.glob("slot-*.lock"))
