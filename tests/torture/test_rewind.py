"""Random work trees: a snapshot, damage, a rewind, and the rewind undone."""

import random
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import worktrees
from rekindle.documents.commits.snapshot_commit import SnapshotLabel
from rekindle.system.git.work_snapshots import WorkSnapshots
from sampling import WHOLE, in_ci

LARGE = 20_000
SEEDS = range(200 if WHOLE else 10)


def snapshots_of(folder):
    return WorkSnapshots(folder, file_bytes=LARGE, seconds=60)


def label(reason):
    return SnapshotLabel("trades", reason, datetime.now(UTC), 1)


def rewind(folder, target):
    """Restore a snapshot, and return the one of the state before, with what is not restored."""
    snapshots = snapshots_of(folder)
    with snapshots.hold() as held:
        saved = held.save(label("rewind"), target)
        unrestored = snapshots.list_unrestored(target, saved)
        held.restore(target, saved)
    return saved, unrestored


@pytest.mark.torture
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rewind_restores_every_file_that_it_promises(tmp_path, seed):
    dice, folder = random.Random(seed), tmp_path / "work"
    worktrees.make_tree(folder, dice, LARGE)
    files, before = worktrees.promised(folder, LARGE), worktrees.own_state(folder)
    position = worktrees.head_of(folder)
    target, is_new = snapshots_of(folder).take(label("start"))
    assert is_new
    assert worktrees.own_state(folder) == before, "a snapshot changes nothing of the user's"
    assert worktrees.promised(folder, LARGE) == files
    again, is_new = snapshots_of(folder).take(label("end"), reuse=True)
    assert (again.commit, is_new) == (target.commit, False)
    assert ("large" in {one.path for one in target.left_out}) == (
        (folder / "large").exists() and "large" not in files
    )
    has_module = (folder / "module/.git").exists()
    worktrees.damage(folder, dice)
    damaged, damaged_position = worktrees.promised(folder, LARGE), worktrees.head_of(folder)
    saved, unrestored = rewind(folder, target)
    assert worktrees.read_files(folder, files) == files
    assert worktrees.head_of(folder) == position
    assert {one.path for one in target.left_out} <= {one.path for one in unrestored.left_out}
    if has_module:
        assert "module" in unrestored.repositories
    rewind(folder, saved)
    assert worktrees.read_files(folder, damaged) == damaged
    assert worktrees.head_of(folder) == damaged_position


REWIND = """\
import os, random, subprocess, sys, time
from pathlib import Path
tests, folder, call, how = sys.argv[1:]
sys.path.insert(0, tests)
from rekindle.system.git import git_process
from torture.test_rewind import rewind, snapshots_of
target = next(one for one in snapshots_of(Path(folder)).list() if one.name == "trades/1")
run_git, calls = git_process.run_git, []
communicate = subprocess.Popen.communicate

def die():
    os.kill(os.getpid(), 9)

def run(program, arguments, **more):
    calls.append(arguments[0])
    is_last = len(calls) == int(call)
    if is_last and how == "before":
        die()
    ended = run_git(program, arguments, **more)
    if is_last and how == "after":
        die()
    return ended

def end_both(process, *given):
    if len(calls) == int(call) and how == "during":
        time.sleep(random.Random(call).random() * 0.02)
        os.killpg(process.pid, 9)
        die()
    return communicate(process, *given)

git_process.run_git, subprocess.Popen.communicate = run, end_both
rewind(Path(folder), target)
"""
CALLS = 36
"""A rewind starts git fewer times than this."""
KILLS = [(call, how) for call in range(1, CALLS) for how in ("before", "after", "during")]


@pytest.mark.torture
@pytest.mark.parametrize(("call", "how"), in_ci(KILLS, 40, 65, 72, 77, 80))
def test_a_rewind_that_is_killed_is_completed_by_the_next(tmp_path, call, how):
    """The process is killed before, after or with one of its calls of git; nothing is lost."""
    dice, folder = random.Random(f"{call} {how}"), tmp_path / "work"
    worktrees.make_tree(folder, dice, LARGE)
    for number in range(200):
        (folder / f"many-{number}").write_bytes(dice.randbytes(200))
    files, position = worktrees.promised(folder, LARGE), worktrees.head_of(folder)
    target, _ = snapshots_of(folder).take(label("start"))
    worktrees.damage(folder, dice)
    damaged, damaged_position = worktrees.promised(folder, LARGE), worktrees.head_of(folder)
    program = [sys.executable, "-c", REWIND, str(Path(__file__).parents[1]), str(folder)]
    killed = subprocess.run([*program, str(call), how], check=False, capture_output=True)
    assert killed.returncode in {0, -signal.SIGKILL}, killed.stderr.decode()
    rewind(folder, target)
    assert worktrees.read_files(folder, files) == files
    assert worktrees.head_of(folder) == position
    saved = [one for one in snapshots_of(folder).list() if one.label.reason == "rewind"]
    rewind(folder, saved[0])
    assert worktrees.read_files(folder, damaged) == damaged
    assert worktrees.head_of(folder) == damaged_position
    worktrees.git(folder, "fsck")
