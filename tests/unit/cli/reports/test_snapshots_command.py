"""Snapshots of an agent whose clone was removed, and of an agent that does not exist."""

import pytest

import worktrees
from rekindle.cli import main
from rekindle.config import load_project
from rekindle.wiring import open_snapshots
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Create a project whose agent has uncommitted work in its clone."""
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades: {harness: claude-code, workspace: clone}\n"
    )
    worktrees.git(tmp_path, "init", "-q", "-b", "main")
    worktrees.git(tmp_path, "add", "-A")
    worktrees.git(tmp_path, "commit", "-qm", "one")
    accept_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    workspace = AgentWorkspace(tmp_path, tmp_path, "trades", "clone")
    workspace.open((), lambda: None, updates=True)
    (workspace.folder / "new.txt").write_text("new\n")
    return tmp_path


def test_the_snapshot_of_a_removed_clone_is_never_restored_in_the_checkout(project, capfd):
    """It would check out the agent's branch there, and replace the user's files."""
    assert main.run(["clean", "trades"]) == 0, capfd.readouterr().err
    for words in (["trades"], ["trades/1"], ["trades", "1"]):
        assert main.run(["rewind", *words, "--yes"]) == 7
        error = " ".join(capfd.readouterr().err.split())
        assert "trades has no clone or work tree at the moment" in error
        assert "`rekindle run trades` creates it again" in error
    assert worktrees.git(project, "symbolic-ref", "HEAD") == b"refs/heads/main\n"
    assert not (project / "new.txt").exists()


def test_an_unknown_agent_is_an_error(project, capfd):
    assert main.run(["snapshots", "trade"]) == 7
    assert "no agent named 'trade'" in capfd.readouterr().err
    assert main.run(["snapshots", "trades"]) == 0


def test_a_merge_counts_only_what_there_is(project, capfd):
    assert main.run(["merge", "trades", "--check"]) == 0
    assert "· 1 uncommitted file of trades can be merged into main" in capfd.readouterr().out


def test_only_a_remote_of_the_user_counts_for_the_warning_about_a_mirror(project, capfd):
    """A clone has the user's repository as a remote, which is on this host."""
    assert main.run(["clean", "trades"]) == 0
    AgentWorkspace(project, project, "trades", "clone").open((), lambda: None, updates=True)
    opened = load_project(project)
    assert open_snapshots.explain_mirror(opened, "trades") == ""
    worktrees.git(project, "remote", "add", "origin", "https://example.org/a.git")
    assert "1 snapshot" in open_snapshots.explain_mirror(opened, "trades")
