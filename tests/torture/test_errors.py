"""Every file operation of a command fails, once and for good, with every error that disks have.

The calls of a real command are listed; then, one trial each, the n-th of them is not made and
answers an error instead, through ptrace, so that all of Python above it is the real one. Each time:
the command succeeds, or ends with an error of ours, its exit code and a hint; what was there is
there; what was acknowledged happened; and once the fault is gone the next command heals.

CI tries a seeded sample; `just torture` tries all of it.
"""

import contextlib
import errno
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import prerequisites
from rekindle import config
from rekindle.cli import main
from rekindle.errors import StoreError
from rekindle.stores.files import FileStore
from rekindle.system.files import durable_files
from rekindle.wiring.open_store import open_store
from torture import tracing
from torture.test_kill import SCENARIOS, WHOLE, examine, happened, relay_text, restore
from torture.tracing import Call, Fault, Say, fail, trace

pytestmark = pytest.mark.torture

SAMPLE = 100
"""Trials of each command that CI makes."""
SEED = 20260409
FOR_GOOD = 1_000_000
INTERRUPTIONS = 20
"""A call that is interrupted for ever would be retried for ever: so often must be enough."""

COMMANDS = {
    "relay commit": ["relay", "set", "new.md"],
    "relay commit with trimming and archive": ["relay", "set", "long.md"],
    "loops add": ["loops", "add", "new", "A new loop"],
    "resolve": ["resolve", "known", "done"],
    "fold": ["doctor", "--fix"],
}
OPENING = {"open", "openat"}
SYNCING = {"fsync", "fdatasync"}
CHANGING = {
    *("write", "pwrite64", "ftruncate", "fchmod", "chmod", "rename", "renameat", "renameat2"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
}
READING = {"read", "pread64", "getdents64", "fstat", "newfstatat", "stat", "lstat", "statx"}
OPERATIONS = OPENING | SYNCING | CHANGING | READING | {"flock", "close"}
STRIKES = {
    errno.ENOSPC: OPENING | SYNCING | CHANGING,
    errno.EDQUOT: OPENING | SYNCING | CHANGING,
    errno.EROFS: OPENING | CHANGING,
    errno.EMFILE: OPENING,
    errno.EIO: OPERATIONS,
    errno.EINTR: OPERATIONS,
}
"""Which calls go on failing, where the fault is not over after one."""


class Trial(NamedTuple):
    at: int
    error: int | None
    """None: writes that take only a half"""
    times: int

    def __str__(self) -> str:
        name = errno.errorcode[self.error] if self.error else "a short write"
        return f"{name} at call {self.at}, {'once' if self.times == 1 else 'again and again'}"


class Ended(NamedTuple):
    code: int
    words: str


@pytest.fixture
def project(in_memory) -> Path:
    return in_memory / "project"


@pytest.fixture(autouse=True)
def _possible(monkeypatch, tmp_path):
    """Skip without ptrace; fail in CI, where an unnoticed skip would remove these tests."""
    prerequisites.require(tracing.obstacle_to_faults())
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a crash would leave its report


def running(name: str, project: Path) -> Callable[[Say], None]:
    """The command; it says its exit code and its words."""

    def work(say: Say) -> None:
        os.chdir(project)
        words = os.memfd_create("words")
        for descriptor in (1, 2):
            os.dup2(words, descriptor)
        # Not the inherited streams: the test runner keeps their output.
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = main.run(COMMANDS[name])
        say(b"%d " % code + os.pread(words, os.fstat(words).st_size, 0))

    return work


def is_ours(call: Call, project: Path) -> bool:
    """An operation on a file of the project, or on what tells us which host this is."""
    if call.name not in OPERATIONS or not call.path:
        return False
    if not call.path.startswith("/"):
        return call.name in OPENING  # click itself looks whether the file that it was given exists
    return call.path.startswith(str(project)) or call.path == "/etc/machine-id"


def trials(name: str, original: Path, project: Path) -> list[Trial]:
    for _warm in range(2):
        restore(original, project)
        outcome, calls = trace(running(name, project), paths=True)
    assert outcome.said.startswith(b"0 "), outcome.said
    found = [(n, call) for n, call in enumerate(calls, 1) if is_ours(call, project)]
    assert {call.name for _, call in found} >= {"openat", "write", "fsync", "renameat", "flock"}
    once = [Trial(n, error, 1) for n, _ in found for error in STRIKES]
    for_good = [
        Trial(n, error, INTERRUPTIONS if error == errno.EINTR else FOR_GOOD)
        for n, call in found
        for error, struck in STRIKES.items()
        if call.name in struck
    ]
    short = [
        Trial(n, None, times)
        for n, call in found
        if call.name == "write"
        for times in (1, FOR_GOOD)
    ]
    return once + for_good + short


@pytest.mark.parametrize("name", COMMANDS)
def test_no_error_of_the_disk_loses_anything(prepared, project, name):
    """Any file operation fails: a typed error or success, nothing lost, no false promise."""
    original = prepared(name)
    wanted = trials(name, original, project)
    everything = len(wanted)
    if not WHOLE:
        wanted = random.Random(f"{SEED}{name}").sample(wanted, SAMPLE)
    wrong = [problem for trial in wanted if (problem := attempt(name, original, project, trial))]
    print(f"\n{name}: {len(wanted)} of {everything} faults, {len(wrong)} not as promised")
    assert not wrong, "\n".join(wrong[:60])


def test_the_check_sees_a_second_fsync_of_a_failed_descriptor(prepared, project, monkeypatch):
    """A store that asks the disk once more, and believes it then, is caught."""
    ask = durable_files._sync_file

    def ask_twice(fd: int, path: Path) -> None:
        try:
            ask(fd, path)
        except StoreError:
            ask(fd, path)

    monkeypatch.setattr(durable_files, "_sync_file", ask_twice)
    assert "was tried again" in failing_fsync(prepared, project)


def test_the_check_sees_an_unexpected_error(prepared, project, monkeypatch):
    """An error of the disk that reaches the user raw is caught."""
    monkeypatch.setattr(durable_files, "_sync_file", lambda fd, _path: os.fsync(fd))
    monkeypatch.setattr(
        durable_files, "translate_os_errors", lambda _path: contextlib.nullcontext()
    )
    assert "exit 1" in failing_fsync(prepared, project)


def failing_fsync(prepared: Callable[[str], Path], project: Path) -> str:
    """Return the complaint of the check about a command whose first fsync fails.

    The fault is chosen by the name of the call: the number of calls before it can differ between
    two runs of one command, and another call would then fail.
    """
    trial = Trial(1, errno.EIO, 1)
    return attempt("loops add", prepared("loops add"), project, trial, only="fsync")


def attempt(name: str, original: Path, project: Path, trial: Trial, *, only: str = "") -> str:
    """Make one trial; what was wrong with it, or nothing."""
    restore(original, project)
    before = Before(open_store(config.load_project(project)))
    where = f"{name}, {trial}"
    calls: list[Call] = []
    try:
        outcome, calls = fail(running(name, project), fault_of(trial, project, only))
        assert outcome.struck, "the fault did not happen"
        code, _, words = outcome.said.decode().partition(" ")
        ended = Ended(int(code or -1), words)
        says_what_happened(ended)
        never_asks_a_failed_descriptor_again(calls)
        before.still_holds(open_store(config.load_project(project)))
        if ended.code == 0:
            assert happened(SCENARIOS[name], project), "acknowledged, but not there"
            is_confirmed(calls)
        examine(where, SCENARIOS[name], project, b"acknowledged" if ended.code == 0 else b"")
    except Exception as problem:  # noqa: BLE001 - all of them are told at once
        struck = next((call for call in calls[trial.at - 1 :]), None)
        return f"{where} ({struck and struck.name} {struck and struck.path}): {problem!r}"
    return ""


def fault_of(trial: Trial, project: Path, only: str) -> Fault:
    lasting = STRIKES.get(trial.error or 0, {"write"})
    struck = {only} if only else (OPERATIONS if trial.times == 1 else lasting)
    return Fault(
        trial.at,
        trial.error,
        trial.times,
        lambda call: call.name in struck and is_ours(call, project),
    )


class Before:
    """The state before the fault."""

    def __init__(self, store: FileStore) -> None:
        self.log = store.folder("trades").log.read_bytes()
        self.loops = store.read("trades").projection.loops
        self.has_relay = bool(store.read("trades").committed.documents)

    def still_holds(self, store: FileStore) -> None:
        assert store.folder("trades").log.read_bytes().startswith(self.log), "the log was changed"
        assert set(self.loops) <= set(store.read("trades").projection.loops), "a loop is lost"
        assert not self.has_relay or relay_text(store), "the relay is lost"


def says_what_happened(ended: Ended) -> None:
    """An error is one of ours: its own exit code, what happened, what to do."""
    assert ended.code in {0, 3, 4, 5, 8}, f"exit {ended.code}: {ended.words}"
    assert "Traceback" not in ended.words, ended.words
    assert "a bug in Rekindle" not in ended.words, ended.words
    if ended.code not in {0, 8}:
        assert "Error: " in ended.words, ended.words
        assert "→ " in ended.words, f"no hint: {ended.words}"


def never_asks_a_failed_descriptor_again(calls: list[Call]) -> None:
    """After a failed fsync the kernel may call lost pages clean: a second would be believed."""
    failed: set[int] = set()
    for call in calls:
        descriptor = call.args[0]
        if call.name == "close" or call.name in OPENING:
            failed.discard(descriptor if call.name == "close" else call.result or 0)
        elif call.name in SYNCING:
            assert descriptor not in failed, f"fsync of {call.path} was tried again"
            if (call.result or 0) < 0 and call.result != -errno.EINTR:
                failed.add(descriptor)


def is_confirmed(calls: list[Call]) -> None:
    """After the last write to the inbox and to the log comes an fsync that succeeded."""
    for end in (".seg", "ops.jsonl"):
        written = [n for n, call in enumerate(calls) if wrote(call, end)]
        synced = [n for n, call in enumerate(calls) if was_synced(call, end)]
        assert not written or (synced and synced[-1] > written[-1]), f"{end} was not confirmed"


def wrote(call: Call, end: str) -> bool:
    return call.name == "write" and str(call.path).endswith(end) and (call.result or 0) > 0


def was_synced(call: Call, end: str) -> bool:
    return call.name in SYNCING and str(call.path).endswith(end) and call.result == 0
