"""Snapshots of a work tree in git."""

import os
import subprocess
from datetime import UTC, datetime

import pytest

import worktrees
from rekindle.documents.commits.snapshot_commit import SnapshotLabel
from rekindle.errors import WorkspaceError
from rekindle.system.git import git_process
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.thresholds.storage import SNAPSHOTS_KEPT

CAP = 1000


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    worktrees.git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("kept\n")
    (folder / ".gitignore").write_text("ignored\n")
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    return folder


def label(reason="start", agent="trades"):
    return SnapshotLabel(agent, reason, datetime.now(UTC), 2)


def take(folder, reason="start", *, reuse=False, agent="trades"):
    return WorkSnapshots(folder, file_bytes=CAP).take(label(reason, agent), reuse=reuse)


def rewind(folder, target):
    with WorkSnapshots(folder, file_bytes=CAP).hold() as held:
        saved = held.save(label("rewind"), target)
        held.restore(target, saved)
    return saved


def names_in(folder, snapshot):
    listed = worktrees.git(folder, "ls-tree", "-r", "-z", "--name-only", snapshot.commit)
    return set(os.fsdecode(listed).split("\0")[:-1])


def test_an_unchanged_tree_is_neither_read_nor_stored_again(work, monkeypatch):
    first, _ = take(work)
    commands = []
    run_git = git_process.run_git
    monkeypatch.setattr(
        git_process,
        "run_git",
        lambda program, arguments, **more: (
            commands.append(arguments[0]),
            run_git(program, arguments, **more),
        )[1],
    )
    again, is_new = take(work, "end", reuse=True)
    assert (again.commit, is_new) == (first.commit, False)
    assert not {"add", "write-tree", "commit-tree", "update-ref"} & set(commands)
    (work / "kept.txt").write_text("else\n")
    assert take(work, "end", reuse=True)[1]


def test_each_cycle_has_a_snapshot_of_its_start(work):
    (first, _), (second, is_new) = take(work), take(work)
    assert is_new
    assert (first.number, second.number, first.tree) == (1, 2, second.tree)
    listed = WorkSnapshots(work).list()
    assert [one.name for one in listed] == ["trades/1", "trades/2"]
    assert listed[1] == second


def test_a_large_file_is_left_out_and_named_until_it_is_small_or_tracked(work):
    (work / "large").write_bytes(bytes(CAP + 1))
    first, _ = take(work)
    assert [one.path for one in first.left_out] == ["large"]
    assert "large" not in names_in(work, first)
    (work / "large").write_bytes(bytes(CAP))
    assert "large" in names_in(work, take(work)[0])
    (work / "large").write_bytes(bytes(CAP + 1))
    third, _ = take(work)
    assert "large" not in names_in(work, third), "not even an old version of it"
    worktrees.git(work, "add", "large")
    fourth, _ = take(work)
    assert "large" in names_in(work, fourth)
    assert fourth.left_out == ()


def test_a_file_that_becomes_ignored_is_no_longer_stored(work):
    (work / ".env").write_text("KEY=1\n")
    assert ".env" in names_in(work, take(work)[0])
    (work / ".gitignore").write_text("ignored\n.env\n")
    assert ".env" not in names_in(work, take(work)[0])
    worktrees.git(work, "add", "-f", ".env")
    assert ".env" in names_in(work, take(work)[0])


def test_files_of_rekindle_are_left_out_at_any_depth(work):
    for folder in (work / ".rekindle", work / "sub/.rekindle"):
        folder.mkdir(parents=True)
        (folder / "log").write_text("1\n")
    worktrees.git(work, "add", "-f", ".")
    target, _ = take(work)
    assert names_in(work, target) == {"kept.txt", ".gitignore"}
    (work / ".rekindle/log").write_text("2\n")
    rewind(work, target)
    assert (work / ".rekindle/log").read_text() == "2\n"


def test_line_ends_and_filters_do_not_change_a_byte(work):
    (work / ".gitattributes").write_text("*.txt text eol=lf\n*.bin filter=broken\n")
    worktrees.git(work, "config", "filter.broken.clean", "touch filtered; cat")
    (work / "mixed.txt").write_bytes(b"a\r\nb\n")
    (work / "data.bin").write_bytes(b"data")
    worktrees.git(work, "add", "mixed.txt")
    target, _ = take(work)
    worktrees.git(work, "clean", "-qfdx")
    worktrees.git(work, "rm", "-qf", "mixed.txt")
    rewind(work, target)
    assert (work / "mixed.txt").read_bytes() == b"a\r\nb\n"
    assert (work / "data.bin").read_bytes() == b"data"
    assert not (work / "filtered").exists()


def test_no_program_of_a_planted_configuration_is_started(work):
    planted = work.parent / "planted"
    program = f"!touch {planted}"
    for key, value in {
        "core.fsmonitor": f"touch {planted}",
        "core.hooksPath": str(work / "hooks"),
        "filter.evil.clean": f"touch {planted}",
        "filter.evil.smudge": f"touch {planted}",
        "diff.evil.textconv": f"touch {planted}",
        "diff.external": f"touch {planted}",
        "alias.add": program,
    }.items():
        worktrees.git(work, "config", key, value)
    (work / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        (work / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {planted}\n")
        (work / "hooks" / hook).chmod(0o755)
    (work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    snapshots = WorkSnapshots(work)
    target, _ = snapshots.take(label())
    (work / "kept.txt").write_text("changed\n")
    assert "changed" in snapshots.compare(target.tree, snapshots.capture_tree(), stat=False)
    rewind(work, target)
    assert (work / "kept.txt").read_text() == "kept\n"
    assert not planted.exists()


def test_a_rewind_restores_the_branch_and_undoing_it_restores_the_commits(work):
    target, _ = take(work)
    (work / "kept.txt").write_text("two\n")
    worktrees.git(work, "commit", "-qam", "two")
    worktrees.git(work, "switch", "-qc", "feature")
    worktrees.git(work, "commit", "-q", "--allow-empty", "-m", "three")
    before = worktrees.git(work, "for-each-ref", "refs/heads")
    saved = rewind(work, target)
    assert worktrees.git(work, "log", "--format=%s", "main") == b"one\n"
    assert worktrees.git(work, "branch", "--show-current") == b"main\n"
    assert worktrees.git(work, "status", "--porcelain") == b""
    rewind(work, saved)
    assert worktrees.git(work, "for-each-ref", "refs/heads") == before
    assert worktrees.git(work, "branch", "--show-current") == b"feature\n"
    assert (work / "kept.txt").read_text() == "two\n"


def test_an_ignored_file_in_the_way_is_saved_first(work):
    (work / "data").write_text("then\n")
    target, _ = take(work)
    (work / "data").write_text("now\n")
    (work / ".gitignore").write_text("data\n")
    saved = rewind(work, target)
    assert (work / "data").read_text() == "then\n"
    rewind(work, saved)
    assert (work / "data").read_text() == "now\n"


def test_a_branch_of_another_work_tree_is_not_moved(work):
    target, _ = take(work)
    worktrees.git(work, "switch", "-qc", "feature")
    worktrees.git(work, "worktree", "add", "-q", str(work.parent / "linked"), "main")
    linked, _ = take(work.parent / "linked")
    assert (target.worktree, linked.worktree) == ("", "linked")
    with pytest.raises(WorkspaceError, match="main, which is checked out in work tree linked"):
        rewind(work, target)


def test_a_damaged_or_pruned_index_is_made_again(work):
    first, _ = take(work)
    snapshots = WorkSnapshots(work)
    snapshots._kept.index.write_bytes(b"DIRC\0\0\0\2\0\0\0\7short")
    (work / "new").write_text("new\n")
    second, _ = take(work)
    assert names_in(work, second) == {"kept.txt", ".gitignore", "new"}
    snapshots.remove([first, second])
    worktrees.git(work, "gc", "-q", "--prune=now")
    third, _ = take(work)
    assert names_in(work, third) == {"kept.txt", ".gitignore", "new"}
    worktrees.git(work, "fsck", "--strict")


def test_a_repository_without_a_commit_is_rewound(tmp_path):
    """An index that `git read-tree --empty` wrote would make `git fsck` fail."""
    folder = tmp_path / "new"
    folder.mkdir()
    worktrees.git(folder, "init", "-q", "-b", "main")
    (folder / "first").write_text("first\n")
    target, _ = take(folder)
    worktrees.git(folder, "add", "-A")
    worktrees.git(folder, "commit", "-qm", "one")
    (folder / "first").unlink()
    saved = rewind(folder, target)
    assert (folder / "first").read_text() == "first\n"
    assert worktrees.git(folder, "status", "--porcelain") == b"?? first\n"
    worktrees.git(folder, "fsck", "--strict")
    rewind(folder, saved)
    assert worktrees.git(folder, "log", "--format=%s") == b"one\n"


def test_expired_snapshots_are_removed(work):
    for _ in range(SNAPSHOTS_KEPT + 2):
        take(work)
    take(work, agent="docs")
    listed = WorkSnapshots(work).list()
    # Of those beyond the newest, the last one of the day stays.
    expected = [f"trades/{number}" for number in range(2, SNAPSHOTS_KEPT + 3)]
    assert [one.name for one in listed] == ["docs/1", *expected]


def test_a_folder_without_a_repository_and_a_slow_one_are_typed_errors(tmp_path, work):
    with pytest.raises(WorkspaceError) as outside:
        WorkSnapshots(tmp_path)
    assert outside.value.cause == "outside"
    with pytest.raises(WorkspaceError) as slow:
        WorkSnapshots(work, seconds=0)
    assert slow.value.cause == "slow"
    assert subprocess.run(["git", "-C", work, "status"], check=False).returncode == 0


def test_two_processes_do_not_use_the_index_at_once(work):
    with WorkSnapshots(work).hold(), pytest.raises(WorkspaceError) as busy:
        WorkSnapshots(work, seconds=0.2).take(label())
    assert busy.value.cause == "busy"
