"""The result of a run is put on its branch, without dropping commits of the user."""

import pytest

import worktrees
from rekindle.errors import WorkspaceError
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.run_refs import place_result

BRANCH = "rekindle/ship/1"


@pytest.fixture
def git(tmp_path):
    def git(*words):
        return worktrees.git(tmp_path, *words).decode().strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "base")
    return git


@pytest.fixture
def place(tmp_path):
    folder = RunFolder(tmp_path / "pipelines/ship/1", tmp_path / "outputs")
    return lambda commit: place_result(WorkingCopy(tmp_path), folder, commit)


def commit_on(git, parent, words):
    return git("commit-tree", f"{parent}^{{tree}}", "-p", parent, "-m", words)


def test_a_result_gets_its_branch_and_a_repeated_end_changes_nothing(git, place):
    result = commit_on(git, "main", "result")
    for _ in range(2):
        assert place(result) == BRANCH
        assert git("rev-parse", BRANCH) == result
    git("branch", "-qD", BRANCH)
    assert git("rev-parse", "refs/rekindle/pipelines/ship/1/_run/result") == result


def test_an_older_branch_is_moved_forward(git, place):
    git("branch", BRANCH, "main")
    result = commit_on(git, "main", "result")
    place(result)
    assert git("rev-parse", BRANCH) == result


def test_commits_that_the_user_added_to_the_result_are_kept(git, place):
    """The coordinator was killed after it had moved the branch, and the next one repeats it."""
    result = commit_on(git, "main", "result")
    place(result)
    added = commit_on(git, result, "mine")
    git("update-ref", f"refs/heads/{BRANCH}", added)
    assert place(result) == BRANCH
    assert git("rev-parse", BRANCH) == added


def test_other_commits_of_the_user_are_kept_until_their_branch_is_renamed(git, place):
    result, own = commit_on(git, "main", "result"), commit_on(git, "main", "mine")
    git("branch", BRANCH, own)
    with pytest.raises(WorkspaceError, match=f"the branch {BRANCH} is for the result") as raised:
        place(result)
    assert f"git branch -m {BRANCH} NAME" in raised.value.hint
    assert git("rev-parse", BRANCH) == own
    git("branch", "-m", BRANCH, "mine")
    assert place(result) == BRANCH
    assert git("rev-parse", BRANCH) == result


def test_a_branch_that_the_user_works_on_is_not_moved(git, place):
    git("checkout", "-q", "-b", BRANCH)
    with pytest.raises(WorkspaceError):
        place(commit_on(git, "main", "result"))
    assert git("rev-parse", BRANCH) == git("rev-parse", "main")
