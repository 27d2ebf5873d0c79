"""Try out whether a file system keeps what Rekindle's promises rest on.

Everything happens with the store's own code, in a folder that is thrown away, by processes that
are started here and killed by their number. A power loss cannot be tried from here: whether a disk
has kept what it confirmed is seen only afterwards.
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

from rekindle.documents import event as events
from rekindle.errors import RekindleError, StoreError, storing
from rekindle.policy.settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.private import of_project
from rekindle.system import clock, disk, signals
from rekindle.system.children import Child, Say

AGENT = "tortured"
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
"""How many acknowledgements a writer may give before it is killed."""


class Finding(msgspec.Struct, frozen=True):
    """What was tried, how often, and whether it held."""

    promise: str
    tried: str
    broken: str = ""
    """What happened instead; empty where it held."""
    means: str = ""
    """What that means for whoever keeps an agent there."""


class _BrokenError(Exception):
    """A promise that was seen not to hold."""


class _Trial(msgspec.Struct, frozen=True):
    promise: str
    means: str
    attempt: Callable[[Path], str]
    """Returns what was tried; raises where it did not hold."""


def torture(folder: Path, *, seconds: float, seed: int) -> Iterator[Finding]:
    """Try one promise after another; the last, by killing, takes what is left of the time.

    A full disk breaks no promise, and lets none be tried: it ends the whole with a StoreError.
    """
    deadline = time.monotonic() + seconds
    rng = random.Random(seed)  # noqa: S311 - a moment to kill at is no secret

    def kills(place: Path) -> str:
        return _killed_writers(place, rng, deadline)

    for number, trial in enumerate((*_TRIALS, _Trial(_KEPT, _MEANS_LOSS, kills))):
        place = folder / str(number)
        try:
            disk.make_folder(place)
            try:
                tried = trial.attempt(place)
            finally:
                shutil.rmtree(of_project(place).path, ignore_errors=True)
        except (_BrokenError, RekindleError) as broken:
            if isinstance(broken, StoreError) and broken.errno in DISK_FULL:
                raise
            yield Finding(trial.promise, "", str(broken), trial.means)
        else:
            yield Finding(trial.promise, tried)


def _confirmed_writes(place: Path) -> str:
    for number in range(_FILES):
        disk.replace(place / f"file-{number % 3}", b"%d" % number)
        disk.append(place / "lines", b"%d\n" % number)
    return f"{_FILES} files replaced and {_FILES} lines appended, each confirmed by the disk"


def _excluding_locks(place: Path) -> str:
    path = place / "lock"

    def hold(say: Say) -> None:
        with disk.locked(path, _PATIENCE_SECONDS) as lock:
            say("held" if lock else "not held")
            time.sleep(_PATIENCE_SECONDS)

    for _ in range(_LOCKS):
        with _children([hold]) as (holder,):
            _require(_hear(holder, 1) == ["held"], "a lock that nobody holds was not given")
            with disk.locked(path, 0) as second:
                _require(second is None, "two processes held the same lock at once")
            holder.kill()
        with disk.locked(path, _PATIENCE_SECONDS) as free:
            _require(free is not None, "the lock of a killed process was not freed")
    return f"{_LOCKS} locks held by one process, refused to another, freed by a kill"


def _whole_renames(place: Path) -> str:
    path = place / "file"
    disk.replace(path, bytes(_BLOCK))

    def keep_replacing(_say: Say) -> None:
        for number in range(_REPLACEMENTS):
            disk.replace(path, bytes([number % 256]) * _BLOCK)

    reads = 0
    with _children([keep_replacing]) as (writer,):
        while not writer.is_over():
            found = disk.read(path)
            if found is None:
                raise _BrokenError("a file was missing while it was replaced")
            _require(
                len(found) == _BLOCK and len(set(found)) == 1,
                "a reader saw a file that was half old and half new",
            )
            reads += 1
        _hear(writer, 1)
    return f"{_REPLACEMENTS} replacements under the eyes of {reads} readings"


def _whole_appends(place: Path) -> str:
    path = place / "lines"

    def appender(name: int) -> Callable[[Say], None]:
        def work(_say: Say) -> None:
            with storing(path):
                fd = disk.open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                for number in range(_LINES):
                    line = b"%d-%d %s\n" % (name, number, b"." * 200)
                    while line:  # a disk that is full takes a part, and refuses only the rest
                        line = line[os.write(fd, line) :]

        return work

    with _children([appender(name) for name in range(_WRITERS)]) as writers:
        for writer in writers:
            _hear(writer, 1)
    wanted = {b"%d-%d %s" % (w, n, b"." * 200) for w in range(_WRITERS) for n in range(_LINES)}
    found = (disk.read(path) or b"").splitlines()
    _require(set(found) == wanted, "lines that were appended at the same time overwrote each other")
    _require(len(found) == len(wanted), "a line was appended twice")
    return f"{len(wanted)} lines by {_WRITERS} processes at once"


def _crowded_store(place: Path) -> str:
    store = _store(place)
    store.create(AGENT)

    def writer(name: int) -> Callable[[Say], None]:
        def work(say: Say) -> None:
            for number in range(_LOOPS):
                say(_submit(store, f"{name}-{number}"))

        return work

    acknowledged: set[str] = set()
    with _children([writer(name) for name in range(_WRITERS)]) as writers:
        for child in writers:
            acknowledged |= set(_hear(child, _LOOPS))
    _examine(store, acknowledged)
    _require(len(acknowledged) == _WRITERS * _LOOPS, "a writer never came to its end")
    return f"{len(acknowledged)} records by {_WRITERS} processes at once"


def _killed_writers(place: Path, rng: random.Random, deadline: float) -> str:
    store = _store(place)
    store.create(AGENT)
    kills = 0
    acknowledged: set[str] = set()

    def keep_writing(say: Say) -> None:
        for number in range(10_000):
            say(_submit(store, f"{kills}-{number}"))

    while kills < _LEAST_KILLS or time.monotonic() < deadline:
        with _children([keep_writing]) as (child,):
            wanted = rng.randrange(_MOST_ACKNOWLEDGED)
            took = time.monotonic()
            _hear(child, wanted)
            took = (time.monotonic() - took) / max(1, wanted)
            time.sleep(rng.random() * min(took, 0.05))  # some moment of the next record
            child.kill()
            acknowledged |= set(_hear(child, 10_000))
        kills += 1
        _examine(store, acknowledged)
        _require(_submit(store, f"after-{kills}") != "", "the next command did not heal")
        acknowledged.add(f"after-{kills}")
    return f"{kills} writers killed; {len(acknowledged)} acknowledged records, all there"


def _store(place: Path) -> FileStore:
    return FileStore(place, host="here", settings=Settings(), clock=clock.now)


def _submit(store: FileStore, identity: str) -> str:
    store.submit(AGENT, events.LoopAdded(ts=clock.now(), id=identity, text="tortured"))
    return identity


def _examine(store: FileStore, acknowledged: set[str]) -> None:
    seen = store.read(AGENT)
    lost = acknowledged - set(seen.projection.loops)
    _require(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged records are lost")
    _require(not seen.bad, "the log holds a torn line")


def _hear(child: Child, lines: int) -> list[str]:
    said = child.hear(lines, _PATIENCE_SECONDS)
    if child.errno in DISK_FULL:
        raise StoreError("a process", os.strerror(child.errno), errno=child.errno)
    if child.error:
        raise _BrokenError(child.error)
    return said


def _require(held: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not held:
        raise _BrokenError(otherwise)


@contextmanager
def _children(works: list[Callable[[Say], None]]) -> Iterator[list[Child]]:
    """Children that do not outlive the trial, however it ends."""
    begun: list[Child] = []
    try:
        with signals.held_back():  # between a child's begin and our knowing of it
            for work in works:
                begun.append(Child(work))  # noqa: PERF401 - those begun are ended if the next fails
        yield begun
    finally:
        with signals.held_back():
            for child in begun:
                child.close()


_KEPT = "what was acknowledged survives kill -9"
_MEANS_LOSS = "a crash of a process can cost what you were told is kept"
_TRIALS = (
    _Trial(
        "writes are confirmed",
        "every command would fail here, for nothing could be promised",
        _confirmed_writes,
    ),
    _Trial(
        "a lock keeps others out",
        "two writers could work on one agent at once and spoil its log",
        _excluding_locks,
    ),
    _Trial("a file is replaced whole", "readers could see half a relay", _whole_renames),
    _Trial(
        "lines appended at once stay whole",
        "records that hooks and commands hand in at the same time could be lost",
        _whole_appends,
    ),
    _Trial(
        "many writers lose nothing",
        "commands that run at the same time could lose what they were told is kept",
        _crowded_store,
    ),
)
