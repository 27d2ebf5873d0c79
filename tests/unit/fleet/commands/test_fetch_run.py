"""The commits of a run on a fleet, in the user's repository."""

import pytest

import worktrees
from rekindle import config
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import UsageError, WorkspaceError
from rekindle.fleet.commands.fetch_run import fetch_run

RESULT = "refs/heads/rekindle/ship/1"
BASE = "refs/rekindle/pipelines/ship/1/_base"


@pytest.fixture
def git(tmp_path):
    """Run git in the project, whose remote has a run; return its output."""
    project, bare = tmp_path / "project", tmp_path / "remote.git"
    project.mkdir()

    def run(*words):
        return worktrees.git(project, *words).decode().strip()

    run("init", "-q", "--bare", "-b", "main", str(bare))
    run("init", "-q", "-b", "main")
    run("remote", "add", "origin", str(bare))
    (project / "rekindle.yaml").write_text("version: 1\n")
    run("commit", "-q", "--allow-empty", "-m", "begin")
    run("push", "-q", "origin", f"HEAD:{BASE}", f"{make_commit(run, 'result')}:{RESULT}")
    return run


def make_commit(git, message, parent="HEAD"):
    return git("commit-tree", "-p", parent, "-m", message, "HEAD^{tree}")


def make_row(**fields):
    return RunRow(pipeline="ship", run=1, state="done", **fields)


def fetch(tmp_path, branch="rekindle/ship/1"):
    fetch_run(config.load_project(tmp_path / "project"), make_row(branch=branch))


def test_a_result_becomes_a_branch_and_follows_the_remote(git, tmp_path):
    fetch(tmp_path)
    assert git("log", "-1", "--format=%s", RESULT) == "result"
    assert git("rev-parse", BASE) == git("rev-parse", "HEAD")
    git("push", "-q", "origin", f"{make_commit(git, 'fix', RESULT)}:{RESULT}")
    fetch(tmp_path)
    assert git("log", "-1", "--format=%s", RESULT) == "fix"


def test_commits_that_only_the_user_has_are_kept(git, tmp_path):
    fetch(tmp_path)
    own = make_commit(git, "own", RESULT)
    git("update-ref", RESULT, own)
    git("push", "-q", "origin", f"{make_commit(git, 'fix', f'{RESULT}^')}:{RESULT}", "--force")
    fetch(tmp_path)
    assert git("rev-parse", RESULT) == own


def test_a_branch_of_another_run_is_not_used_as_the_result(git, tmp_path):
    git("update-ref", RESULT, make_commit(git, "of an earlier run on this host"))
    commit = git("ls-remote", "origin", RESULT).split()[0]
    project = config.load_project(tmp_path / "project")
    with pytest.raises(WorkspaceError, match="does not contain the result") as refused:
        fetch_run(project, make_row(branch="rekindle/ship/1", commit=commit))
    git(*refused.value.hint.partition(": git ")[2].split())
    fetch_run(project, make_row(branch="rekindle/ship/1", commit=commit))
    assert git("rev-parse", RESULT) == commit


def test_a_branch_that_is_checked_out_does_not_move(git, tmp_path):
    fetch(tmp_path)
    git("switch", "-q", "rekindle/ship/1")
    here = git("rev-parse", "HEAD")
    git("push", "-q", "origin", f"{make_commit(git, 'fix')}:{RESULT}")
    fetch(tmp_path)
    assert git("rev-parse", "HEAD") == here


def test_a_run_without_a_result_gets_no_branch(git, tmp_path):
    fetch(tmp_path, branch="")
    assert git("for-each-ref", "--format=%(refname)", "refs/rekindle") == BASE
    assert git("for-each-ref", RESULT) == ""


def test_a_repository_without_a_remote_is_refused(git, tmp_path):
    git("remote", "remove", "origin")
    with pytest.raises(UsageError, match="needs a git remote"):
        fetch(tmp_path)
