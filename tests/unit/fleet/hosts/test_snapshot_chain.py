"""The history of a work branch stays short, and no commit is lost."""

import pytest

from rekindle.documents.commits import work_commit
from rekindle.errors import StalePushError
from rekindle.fleet.hosts import snapshot_chain

FEW = 5


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(snapshot_chain, "WORK_SNAPSHOTS", FEW)


def count_snapshots(fleet):
    messages = fleet.remote.git("log", "--format=%B%x01", work_commit.make_work_ref("trades"))
    return sum(work_commit.parse(one) is not None for one in messages.split("\x01"))


def push_often(fleet, branch, times, name="new.txt"):
    pushed = None
    for number in range(times):
        (fleet.repository("here").path / name).write_text(f"{number}\n")
        pushed = branch.push()
        assert branch.has(pushed.revision)
    return pushed


def test_the_chain_does_not_grow_without_bounds(fleet):
    branch = fleet.at("here", 1)
    branch.bring(None)
    lengths = []
    for _ in range(4 * FEW):
        push_often(fleet, branch, 1, name=f"new-{len(lengths)}.txt")
        lengths.append(count_snapshots(fleet))
    assert max(lengths) == FEW
    assert min(lengths[FEW:]) == 1
    pushed = push_often(fleet, branch, 1)
    fleet.at("there", 2).bring(pushed)
    there = fleet.repository("there")
    assert (there.path / "new-0.txt").exists()
    there.git("fsck", "--full")


def test_the_agents_and_peoples_commits_stay_reachable(fleet):
    """Even those that an amended or moved branch no longer contains."""
    branch = fleet.at("here", 1)
    branch.bring(None)
    here = fleet.repository("here")
    amended = here.commit("work.txt", "first\n")
    branch.push()
    here.git("commit", "-q", "--amend", "-m", "Amended")
    branch.push()
    last = here.git("rev-parse", "refs/rekindle/trades/pushed")
    theirs = here.git("commit-tree", f"{last}^{{tree}}", "-p", last, "-m", "Of a person")
    here.git("push", "-q", fleet.url, f"{theirs}:{work_commit.make_work_ref('trades')}")
    (here.path / "new.txt").write_text("new\n")
    with pytest.raises(StalePushError):
        branch.push()
    branch.reclaim_branch()
    head = here.commit("more.txt", "more\n")
    pushed = push_often(fleet, branch, 3 * FEW)
    assert count_snapshots(fleet) <= FEW + 3, "the person's commit keeps those below it"
    for commit in (amended, theirs, head):
        assert fleet.is_in(commit, pushed.revision)


def test_a_squashed_branch_is_still_fenced(fleet):
    branch = fleet.at("here", 1)
    branch.bring(None)
    pushed = push_often(fleet, branch, 2 * FEW)
    other = fleet.at("there", 2)
    other.bring(pushed)
    (fleet.repository("here").path / "late.txt").write_text("late\n")
    with pytest.raises(StalePushError):
        branch.push()
    (fleet.repository("there").path / "new.txt").write_text("there\n")
    assert other.push().revision == fleet.work()


def test_a_host_that_died_before_it_recorded_its_push_loses_nothing(fleet):
    """The log names a snapshot that the remote has removed."""
    branch = fleet.at("here", 1)
    branch.bring(None)
    recorded = None
    while True:
        pushed = push_often(fleet, branch, 1, name=f"{fleet.work()}.txt")
        message = fleet.remote.git("log", "-1", "--format=%B", pushed.revision)
        if work_commit.find_replaced(message):
            break
        recorded = pushed
    assert work_commit.find_replaced(message) == recorded.revision
    assert branch.has(recorded.revision), "the files here are newer, and must not be replaced"
    fleet.remote.git("reflog", "expire", "--expire=now", "--all")
    fleet.remote.git("gc", "-q", "--prune=now")
    brought = fleet.at("there", 2).bring(recorded)
    assert brought.head == recorded.head
    names = {path.name for path in fleet.repository("there").path.glob("*.txt")}
    assert names == {path.name for path in fleet.repository("here").path.glob("*.txt")}
