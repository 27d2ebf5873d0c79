"""Test whether a file system provides the guarantees that Rekindle relies on.

The tests run the store's own code in a temporary folder, with child processes that are killed. They
cannot simulate a power loss: only a real one shows whether the disk keeps the writes that it has
confirmed.
"""

import errno
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rekindle.documents import events
from rekindle.errors import RekindleError, StoreError, translate_os_errors
from rekindle.formats.counts import render_count
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks
from rekindle.system.processes import stop_signals
from rekindle.system.processes.forked_worker import ForkedChild, LineReporter

TORTURE_AGENT = "tortured"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_WRITERS = 4
_FILES = 20
_LOCKS = 10
_REPLACEMENTS = 100
_LINES = 250
_LOOPS = 10
_BLOCK = 64 * 1024
_PATIENCE_SECONDS = 20.0
_LEAST_KILLS = 10
_MOST_ACKNOWLEDGED = 6
"""Maximum number of acknowledgements before a writer is killed."""


class PromiseResult(msgspec.Struct, frozen=True):
    """Result of the trials for one guarantee."""

    promise: str
    tried: str
    broken: str = ""
    """Description of the violation; empty if the guarantee held."""
    means: str = ""
    """Effect of a violation on agents on this file system."""


class _BrokenError(Exception):
    """A guarantee did not hold."""


class _PromiseTrial(msgspec.Struct, frozen=True):
    promise: str
    means: str
    attempt: Callable[[Path], str]
    """Runs the trial and returns a description; raises _BrokenError on a violation."""


def try_promises(folder: Path, *, seconds: float, seed: int) -> Iterator[PromiseResult]:
    """Test each guarantee. The last test kills writers until the time is up.

    A full disk is not a violation, but it prevents the test and raises StoreError.
    """
    deadline = time.monotonic() + seconds
    rng = random.Random(seed)  # noqa: S311 - not used for security

    def kill_writers(place: Path) -> str:
        return _try_killed_writers(place, rng, deadline)

    for number, trial in enumerate((*_TRIALS, _PromiseTrial(_KEPT, _MEANS_LOSS, kill_writers))):
        place = folder / str(number)
        try:
            durable_files.make_folder(place)
            try:
                outcome = trial.attempt(place)
            finally:
                shutil.rmtree(find_private_project(place).path, ignore_errors=True)
        except (_BrokenError, RekindleError) as broken:
            if isinstance(broken, StoreError) and broken.errno in DISK_FULL:
                raise
            yield PromiseResult(trial.promise, "", str(broken), trial.means)
        else:
            yield PromiseResult(trial.promise, outcome)


def _try_confirmed_writes(place: Path) -> str:
    for number in range(_FILES):
        durable_files.replace_file(place / f"file-{number % 3}", b"%d" % number)
        durable_files.append_durably(place / "lines", b"%d\n" % number)
    return f"{_FILES} files replaced and {_FILES} lines appended, each confirmed by the disk"


def _try_locks(place: Path) -> str:
    path = place / "lock"

    def hold_path(say: LineReporter) -> None:
        with file_locks.hold_lock(path, _PATIENCE_SECONDS) as lock:
            say("held" if lock else "not held")
            time.sleep(_PATIENCE_SECONDS)

    for _ in range(_LOCKS):
        with _start_children([hold_path]) as (holder,):
            _require_held(_read_lines(holder, 1) == ["held"], "a free lock was not granted")
            with file_locks.hold_lock(path, 0) as second:
                _require_held(second is None, "two processes held the same lock at once")
            holder.kill()
        with file_locks.hold_lock(path, _PATIENCE_SECONDS) as free:
            _require_held(free is not None, "the lock of a killed process was not freed")
    return f"{_LOCKS} locks held by one process, refused to another, and freed by a kill"


def _try_renames(place: Path) -> str:
    path = place / "file"
    durable_files.replace_file(path, bytes(_BLOCK))

    def keep_replacing(_say: LineReporter) -> None:
        for number in range(_REPLACEMENTS):
            durable_files.replace_file(path, bytes([number % 256]) * _BLOCK)

    reads = 0
    with _start_children([keep_replacing]) as (writer,):
        while not writer.is_over():
            content = durable_files.read_bytes(path)
            if content is None:
                raise _BrokenError("a file was missing while it was replaced")
            _require_held(
                len(content) == _BLOCK and len(set(content)) == 1,
                "a reader saw a file that was half old and half new",
            )
            reads += 1
        _read_lines(writer, 1)
    return f"{_REPLACEMENTS} replacements during {reads} reads"


def _try_appends(place: Path) -> str:
    path = place / "lines"

    def make_appender(name: int) -> Callable[[LineReporter], None]:
        def append_lines(_say: LineReporter) -> None:
            with translate_os_errors(path):
                fd = durable_files.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for number in range(_LINES):
                    line = b"%d-%d %s\n" % (name, number, b"." * 200)
                    while line:  # a full disk may accept only part of the line
                        line = line[os.write(fd, line) :]

        return append_lines

    with _start_children([make_appender(name) for name in range(_WRITERS)]) as writers:
        for writer in writers:
            _read_lines(writer, 1)
    expected = {b"%d-%d %s" % (w, n, b"." * 200) for w in range(_WRITERS) for n in range(_LINES)}
    lines = (durable_files.read_bytes(path) or b"").splitlines()
    _require_held(
        set(lines) == expected, "lines that were appended at the same time overwrote each other"
    )
    _require_held(len(lines) == len(expected), "a line was appended twice")
    return f"{len(expected)} lines from {_WRITERS} processes at once"


def _try_crowded_store(place: Path) -> str:
    store = _open_store(place)
    store.create(TORTURE_AGENT)

    def make_writer(name: int) -> Callable[[LineReporter], None]:
        def submit_loops(say: LineReporter) -> None:
            for number in range(_LOOPS):
                say(_submit_loop(store, f"{name}-{number}"))

        return submit_loops

    acknowledged: set[str] = set()
    with _start_children([make_writer(name) for name in range(_WRITERS)]) as writers:
        for child in writers:
            acknowledged |= set(_read_lines(child, _LOOPS))
    _examine_store(store, acknowledged)
    _require_held(len(acknowledged) == _WRITERS * _LOOPS, "a writer did not finish")
    return f"{len(acknowledged)} records from {_WRITERS} processes at once"


def _try_killed_writers(place: Path, rng: random.Random, deadline: float) -> str:
    store = _open_store(place)
    store.create(TORTURE_AGENT)
    kills = 0
    acknowledged: set[str] = set()

    def keep_writing(say: LineReporter) -> None:
        for number in range(10_000):
            say(_submit_loop(store, f"{kills}-{number}"))

    while kills < _LEAST_KILLS or time.monotonic() < deadline:
        with _start_children([keep_writing]) as (child,):
            count = rng.randrange(_MOST_ACKNOWLEDGED)
            took = time.monotonic()
            _read_lines(child, count)
            took = (time.monotonic() - took) / max(1, count)
            time.sleep(rng.random() * min(took, 0.05))  # kill it during the next write
            child.kill()
            acknowledged |= set(_read_lines(child, 10_000))
        kills += 1
        _examine_store(store, acknowledged)
        _require_held(
            _submit_loop(store, f"after-{kills}") != "", "the next command did not repair the log"
        )
        acknowledged.add(f"after-{kills}")
    records = render_count(len(acknowledged), "acknowledged record")
    return f"{render_count(kills, 'writer')} killed; {records}, all found"


def _open_store(place: Path) -> FileStore:
    return FileStore(place, host="here", settings=Settings(), clock=clock.read_clock)


def _submit_loop(store: FileStore, identity: str) -> str:
    store.submit(
        TORTURE_AGENT, events.LoopAdded(ts=clock.read_clock(), id=identity, text="tortured")
    )
    return identity


def _examine_store(store: FileStore, acknowledged: set[str]) -> None:
    agent_view = store.read(TORTURE_AGENT)
    lost = acknowledged - set(agent_view.projection.loops)
    _require_held(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged records are lost")
    _require_held(not agent_view.bad, "the log contains an incomplete line")


def _read_lines(child: ForkedChild, lines: int) -> list[str]:
    reported = child.read_lines(lines, _PATIENCE_SECONDS)
    if child.errno in DISK_FULL:
        raise StoreError("a process", os.strerror(child.errno), errno=child.errno)
    if child.error:
        raise _BrokenError(child.error)
    return reported


def _require_held(held: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not held:
        raise _BrokenError(otherwise)


@contextmanager
def _start_children(works: list[Callable[[LineReporter], None]]) -> Iterator[list[ForkedChild]]:
    """Start child processes, and end them when the block exits."""
    begun: list[ForkedChild] = []
    try:
        with stop_signals.defer_signals():  # a signal must not leave a child running
            for work in works:
                begun.append(ForkedChild(work))  # noqa: PERF401 - on an error, the children in the list are ended
        yield begun
    finally:
        with stop_signals.defer_signals():
            for child in begun:
                child.close()


_KEPT = "acknowledged records survive kill -9"
_MEANS_LOSS = "a crash of a process can lose acknowledged records"
_TRIALS = (
    _PromiseTrial(
        "writes are confirmed",
        "every command would fail here, because no write could be confirmed",
        _try_confirmed_writes,
    ),
    _PromiseTrial(
        "a lock excludes other processes",
        "two writers could write to one agent at once and damage its log",
        _try_locks,
    ),
    _PromiseTrial(
        "files are replaced atomically", "a reader could see an incomplete relay", _try_renames
    ),
    _PromiseTrial(
        "concurrent appends stay complete",
        "records that hooks and commands write at the same time could be lost",
        _try_appends,
    ),
    _PromiseTrial(
        "concurrent writers lose nothing",
        "commands that run at the same time could lose acknowledged records",
        _try_crowded_store,
    ),
)
