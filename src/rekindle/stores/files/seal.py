"""The seal: how far the log goes and the hash of what it says, kept outside the workspace.

An agent can write to everything in its workspace, the log among it. The hash is a chain over the
log's lines, so that a reader that knows one place continues from there. Before an append the
writer records, durably, the place where the log ends and the place where it will end; after it,
that the append is done. A kill or a power loss in between leaves the log at one of the two, or
with a part of the append, which counts for nothing and is cut off by the next writer. Any other
log was changed by something else than Rekindle's writer: no line of it counts that the seal does
not cover, and the agent is in safe mode until the operator accepts the log.

    1 END CHAIN [END CHAIN] CHECK       one record; the last whole one counts
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.errors import OwnershipError, StoreError, storing
from rekindle.policy.settings import SEAL_COMPACT_BYTES
from rekindle.system import disk

_VERSION = "1"
_TAIL_BYTES = 4096
_CHECK_LENGTH = 8

Condition = Literal["new", "sealed", "unsealed", "appended", "rewritten", "missing"]
TAMPERED: frozenset[Condition] = frozenset({"unsealed", "appended", "rewritten", "missing"})
"""Conditions of a log that is not the one Rekindle wrote on this host."""


class Place(msgspec.Struct, frozen=True):
    """The end of a line of the log, and the chain of hashes up to it."""

    end: int = 0
    chain: str = ""


class Seal(msgspec.Struct, frozen=True):
    base: Place
    """Where the log ends."""
    then: Place | None = None
    """Where it ends once the append that was begun is done."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The places where an honest log may end, the later one first."""
        return (self.then, self.base) if self.then else (self.base,)


def extend(chain: str, lines: Iterable[bytes]) -> str:
    """Return the chain after more lines, each with its newline."""
    for line in lines:
        chain = sha256(chain.encode() + line).hexdigest()
    return chain


def load(path: Path) -> Seal | None:
    """Return the last whole record, or None if there is none."""
    with storing(path):
        try:
            fd = disk.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(fd).st_size
            start = max(0, size - _TAIL_BYTES)
            found = _last(os.pread(fd, size - start, start))
            # A power loss may leave more garbage than that behind the last record.
            return found or (_last(os.pread(fd, size, 0)) if start else None)
        finally:
            os.close(fd)


def places(path: Path) -> set[Place]:
    """Return every place that a record which is still in the file has."""
    lines = (disk.read(path) or b"").split(b"\n")
    return {place for line in lines if (seal := _parse(line)) for place in seal.places}


def promise(path: Path, base: Place, then: Place) -> None:
    """Record durably that the log is about to grow from one place to another."""
    before = load(path)
    if base not in (before.places if before else (Place(),)):
        raise OwnershipError(
            "another process wrote to the log at the same time",
            hint="leave the run folder alone while something works on the agent",
        )
    write(path, Seal(base, then))


def write(path: Path, seal: Seal) -> None:
    """Record a seal durably; replace the file once it has grown."""
    with storing(path):
        is_full = path.lstat().st_size > SEAL_COMPACT_BYTES
    if is_full:
        disk.replace(path, _render(seal))
        return
    is_first = load(path) is None
    _append(path, seal, durable=True)
    if is_first:
        disk.sync_folder(path.parent)


def confirm(path: Path, place: Place) -> None:
    """Record that the append is done, unless another host has taken the agent over meanwhile.

    Not durably, and without raising: lost, the two places of the promise still cover the log.
    """
    with suppress(StoreError):
        promised = load(path)
        if promised is not None and promised.then == place:
            _append(path, Seal(place), durable=False)


def _append(path: Path, seal: Seal, *, durable: bool) -> None:
    with storing(path):
        fd = disk.open_plain(path, os.O_WRONLY | os.O_APPEND)
        try:
            data = _render(seal)
            if os.write(fd, data) != len(data):
                raise StoreError(
                    str(path), "only a part was written", hint="free some space, then repeat"
                )
            if durable:
                disk.sync_descriptor(fd, path)
        finally:
            disk.close(fd)


def _render(seal: Seal) -> bytes:
    places = (seal.base, seal.then) if seal.then else (seal.base,)
    words = " ".join([_VERSION, *(f"{place.end} {place.chain or '-'}" for place in places)])
    # It opens with a newline: a torn record before it spoils only itself.
    return f"\n{words} {_check(words)}\n".encode()


def _last(data: bytes) -> Seal | None:
    whole = data.rpartition(b"\n")[0]
    for line in reversed(whole.split(b"\n")):
        if (found := _parse(line)) is not None:
            return found
    return None


def _parse(line: bytes) -> Seal | None:
    words, _, check = line.decode("ascii", "replace").rpartition(" ")
    version, *fields = words.split(" ")
    if version != _VERSION or check != _check(words) or len(fields) not in {2, 4}:
        return None
    pairs = zip(fields[::2], fields[1::2], strict=True)
    base, *then = [Place(int(end), "" if chain == "-" else chain) for end, chain in pairs]
    return Seal(base, then[0] if then else None)


def _check(words: str) -> str:
    return sha256(words.encode()).hexdigest()[:_CHECK_LENGTH]
