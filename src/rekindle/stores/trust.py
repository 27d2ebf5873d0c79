"""What the user accepted on this host: a folder, and the settings of each agent in it.

A cloned or copied repository may bring its own `rekindle.yaml` and `.rekindle`. Neither counts
until the user has accepted the folder here. The record is kept outside of it and names the folder
by path, device and inode, so that another folder at the same path is not trusted.
"""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from rekindle.documents import jsontext
from rekindle.errors import DocumentError, StoreError, storing
from rekindle.stores import private
from rekindle.stores.private import PrivateProject, render_path
from rekindle.system import disk

SCHEMA = 1


class TrustRecord(msgspec.Struct, frozen=True):
    """The folder that the user accepted."""

    path: str
    device: int
    inode: int
    boot: str
    """The boot at which the device was read: after the next one it may have another number."""
    at: datetime
    born: int = 0
    """When the folder was made, in nanoseconds; 0 if the file system does not keep it.

    An inode is used again: a folder that is removed and cloned again can have the same one.
    """
    v: int = SCHEMA


class AcceptedSettings(msgspec.Struct, frozen=True):
    """Controlled settings of an agent, or the project's fleet, as the operator accepted them."""

    settings: dict[str, Any]
    at: datetime
    v: int = SCHEMA


def identify(folder: Path, now: datetime) -> TrustRecord:
    """Return the record of a folder as it is now."""
    from rekindle.system import orphans  # noqa: PLC0415 - every start would pay for it

    with storing(folder):
        found = os.stat(folder)  # noqa: PTH116 - a record of what the path leads to
    boot, born = orphans.this_boot(), disk.born(folder)
    return TrustRecord(render_path(folder), found.st_dev, found.st_ino, boot, now, born)


def is_trusted(project: PrivateProject, now: datetime) -> bool:
    """Return whether the user accepted the folder that is there now."""
    record: TrustRecord | None = _read(project.record, TrustRecord)
    if record is None:
        return False
    current = identify(project.project, now)
    same = (record.path, record.inode, record.born) == (current.path, current.inode, current.born)
    if not same:
        return False
    return record.device == current.device or record.boot != current.boot


def list_recorded() -> list[Path]:
    """Return the folders that the user accepted on this host, whatever is at their paths now."""
    found = []
    for path in private.list_records():
        record: TrustRecord | None = _read(path, TrustRecord)
        # A path that is not text cannot be read back from JSON.
        if record and private.of_project(Path(record.path)).record == path:
            found.append(Path(record.path))
    return found


def recorded_identity(project: PrivateProject) -> tuple[int, int] | None:
    """Return device and inode of the folder as it was when the user accepted it."""
    record: TrustRecord | None = _read(project.record, TrustRecord)
    return (record.device, record.inode) if record else None


def list_trusted(now: datetime) -> list[Path]:
    """Return the folders that the user accepted, and that are still the same folders."""
    found = []
    for folder in list_recorded():
        with suppress(StoreError):  # it is gone, or on a disk that is not there
            if is_trusted(private.of_project(folder), now):
                found.append(folder)
    return found


def record_trust(project: PrivateProject, now: datetime) -> None:
    """Record that the user trusts the folder that is there now.

    What was recorded for another folder at the same path goes: its commands were not for this one.
    """
    if disk.exists(project.record) and not is_trusted(project, now):
        project.remove_agents()
        disk.remove(project.fleet)
    project.make()
    disk.replace(project.record, _encode(identify(project.project, now)))


def read_settings(record: Path) -> dict[str, Any] | None:
    """Return the settings that the operator accepted, or None if there was no such command."""
    found: AcceptedSettings | None = _read(record, AcceptedSettings)
    return found.settings if found else None


def record_settings(record: Path, settings: dict[str, Any], now: datetime) -> None:
    disk.replace(record, _encode(AcceptedSettings(settings, now)))


def _encode(record: TrustRecord | AcceptedSettings) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record)) + b"\n"


def _read(path: Path, kind: type[Any]) -> Any:
    data = disk.read(path)
    if data is None:
        return None
    try:
        jsontext.decode_object(data, path.name, schema=SCHEMA)
        return msgspec.json.decode(data, type=kind)
    except (DocumentError, msgspec.MsgspecError):
        return None  # unreadable: as if it had never been accepted
