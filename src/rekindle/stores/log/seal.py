"""The seal: the log's length and hash, stored outside the workspace.

An agent can write to everything in its workspace, including the log. The hash is a chain over the
log's lines, so a reader can continue from any known position. Before an append, the writer durably
records the log's current end and the end that it will have; after the append, it records that the
append is done. After a kill or power loss in between, the log ends at one of these two positions,
or has a partial append, which does not count and which the next writer cuts off. Any other log was
changed by something other than Rekindle's writer: lines that the seal does not cover do not count,
and the agent is in safe mode until the operator accepts the log.

    1 END CHAIN [END CHAIN] CHECK       one record; the last complete record counts
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.errors import (
    OwnershipError,
    StoreError,
    translate_os_errors,
)
from rekindle.policy.settings.runtime_settings import SEAL_COMPACT_BYTES
from rekindle.system.files import durable_files

_VERSION = "1"
_TAIL_BYTES = 4096
_CHECK_LENGTH = 8

LogCondition = Literal["new", "sealed", "unsealed", "appended", "rewritten", "missing"]
TAMPERED_CONDITIONS: frozenset[LogCondition] = frozenset(
    {"unsealed", "appended", "rewritten", "missing"}
)
"""Conditions in which the log differs from the one that Rekindle wrote on this host."""


class ChainPosition(msgspec.Struct, frozen=True):
    """End offset of a line in the log, with the hash chain up to it."""

    end: int = 0
    chain: str = ""


class Seal(msgspec.Struct, frozen=True):
    base: ChainPosition
    """End of the log when the record was written."""
    then: ChainPosition | None = None
    """End of the log after the pending append."""

    @property
    def places(self) -> tuple[ChainPosition, ...]:
        """Positions at which an intact log may end, the later one first."""
        return (self.then, self.base) if self.then else (self.base,)


def extend_chain(chain: str, lines: Iterable[bytes]) -> str:
    """Extend the hash chain with more lines, including their newlines."""
    for line in lines:
        chain = sha256(chain.encode() + line).hexdigest()
    return chain


def read_seal(path: Path) -> Seal | None:
    """Return the last complete record of the seal, or None."""
    with translate_os_errors(path):
        try:
            with durable_files.hold_plain(path, os.O_RDONLY) as fd:
                size = os.fstat(fd).st_size
                start = max(0, size - _TAIL_BYTES)
                seal = _find_last(os.pread(fd, size - start, start))
                # A power loss can leave more than `_TAIL_BYTES` of garbage after the last record.
                return seal or (_find_last(os.pread(fd, size, 0)) if start else None)
        except FileNotFoundError:
            return None


def read_positions(path: Path) -> set[ChainPosition]:
    """Return all positions recorded in the seal."""
    lines = (durable_files.read_bytes(path) or b"").split(b"\n")
    return {position for line in lines if (seal := _parse_seal(line)) for position in seal.places}


def promise_append(path: Path, base: ChainPosition, then: ChainPosition) -> None:
    """Record durably that the log is about to grow from one position to another."""
    before = read_seal(path)
    if base not in (before.places if before else (ChainPosition(),)):
        raise OwnershipError(
            "another process wrote to the log at the same time",
            hint="do not change the run folder while the agent is in use",
        )
    write_seal(path, Seal(base, then))


def write_seal(path: Path, seal: Seal) -> None:
    """Append a record to the seal durably. Replace the file if it has grown too large."""
    with translate_os_errors(path):
        is_full = path.lstat().st_size > SEAL_COMPACT_BYTES
    if is_full:
        durable_files.replace_file(path, _render_seal(seal))
        return
    is_first = read_seal(path) is None
    _append_seal(path, seal, durable=True)
    if is_first:
        durable_files.sync_folder(path.parent)


def confirm_append(path: Path, place: ChainPosition) -> None:
    """Record that the append is complete, unless another host has taken over.

    The write is not synced and errors are ignored, because the record from before the append
    already covers both positions.
    """
    with suppress(StoreError):
        promised = read_seal(path)
        if promised is not None and promised.then == place:
            _append_seal(path, Seal(place), durable=False)


def _append_seal(path: Path, seal: Seal, *, durable: bool) -> None:
    with (
        translate_os_errors(path),
        durable_files.hold_plain(path, os.O_WRONLY | os.O_APPEND) as fd,
    ):
        data = _render_seal(seal)
        if os.write(fd, data) != len(data):
            raise StoreError(
                str(path),
                "only part of the data was written",
                hint="free some disk space, then retry",
            )
        if durable:
            durable_files.sync_descriptor(fd, path)


def _render_seal(seal: Seal) -> bytes:
    positions = (seal.base, seal.then) if seal.then else (seal.base,)
    words = " ".join(
        [_VERSION, *(f"{position.end} {position.chain or '-'}" for position in positions)]
    )
    # The leading newline separates this record from a torn one.
    return f"\n{words} {_compute_check(words)}\n".encode()


def _find_last(data: bytes) -> Seal | None:
    complete = data.rpartition(b"\n")[0]
    for line in reversed(complete.split(b"\n")):
        if (seal := _parse_seal(line)) is not None:
            return seal
    return None


def _parse_seal(line: bytes) -> Seal | None:
    words, _, check = line.decode("ascii", "replace").rpartition(" ")
    version, *fields = words.split(" ")
    if version != _VERSION or check != _compute_check(words) or len(fields) not in {2, 4}:
        return None
    pairs = zip(fields[::2], fields[1::2], strict=True)
    base, *then = [ChainPosition(int(end), "" if chain == "-" else chain) for end, chain in pairs]
    return Seal(base, then[0] if then else None)


def _compute_check(words: str) -> str:
    return sha256(words.encode()).hexdigest()[:_CHECK_LENGTH]
