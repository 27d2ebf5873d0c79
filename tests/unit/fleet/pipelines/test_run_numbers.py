"""The numbers of runs on a fleet, which are reserved on the git remote."""

import pytest

from rekindle.errors import WorkspaceError
from rekindle.fleet.pipelines import run_numbers
from rekindle.fleet.pipelines.run_numbers import find_branch_commit, reserve_number
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy
from throwaway import Repository


@pytest.fixture
def person(fleet):
    return Repository(fleet.root / "person")


def reserve(fleet, person, **more):
    base = person.git("rev-parse", "HEAD")
    return reserve_number(WorkingCopy(person.path), fleet.url, "ship", base, **more)


def test_numbers_are_consecutive_and_keep_the_first_commit(fleet, person):
    assert [reserve(fleet, person), reserve(fleet, person)] == [1, 2]
    ref = "refs/rekindle/pipelines/ship/2/_base"
    assert fleet.is_in(person.git("rev-parse", "HEAD"), ref)


@pytest.mark.parametrize(
    ("branch", "number"),
    [
        ("rekindle/ship/4", 5),
        ("rekindle/ship/7-build-inputs", 8),
        ("rekindle/shipping/9", 1),
        ("mine/rekindle/ship/9", 1),
    ],
)
def test_a_branch_of_a_run_on_another_host_takes_its_number(fleet, person, branch, number):
    person.git("push", "-q", fleet.url, f"main:refs/heads/{branch}")
    assert reserve(fleet, person) == number


def test_numbers_of_branches_that_only_the_user_has_are_taken_too(fleet, person):
    assert reserve(fleet, person, last=3) == 4


def test_two_hosts_with_the_same_commit_do_not_get_the_same_number(fleet, person, monkeypatch):
    """The second host lists the refs before the first one pushes."""
    early = RemoteRepository(fleet.url, "").list_refs("refs/rekindle/*")
    assert reserve(fleet, person) == 1
    seen = [early]
    listed = RemoteRepository.list_refs
    monkeypatch.setattr(
        run_numbers.RemoteRepository,
        "list_refs",
        lambda remote, *patterns: seen.pop() if seen else listed(remote, *patterns),
    )
    assert reserve(fleet, person) == 2
    assert not seen


def test_a_missing_branch_is_named(fleet):
    with pytest.raises(WorkspaceError, match="no branch next"):
        find_branch_commit(fleet.url, "next")
