"""Record the folders that the user accepted on this host, and their agents' accepted settings.

A cloned or copied repository may contain its own `rekindle.yaml` and `.rekindle`. Neither is used
until the user has accepted the folder on this host. The record is stored outside the folder and
identifies it by path, device and inode, so that another folder at the same path is not trusted.
"""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from rekindle.errors import (
    DocumentError,
    StoreError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.stores.folders import private_files
from rekindle.stores.folders.private_files import (
    PrivateProject,
    render_path,
)
from rekindle.system.files import durable_files, file_status

SCHEMA = 1


class TrustRecord(msgspec.Struct, frozen=True):
    """The identity of a folder that the user accepted."""

    path: str
    device: int
    inode: int
    boot: str
    """Id of the boot in which the device number was read; the number may change after a reboot."""
    at: datetime
    born: int = 0
    """Creation time of the folder in nanoseconds; 0 if the file system does not record it.

    Inodes are reused: if a folder is removed and cloned again, it can get the same inode.
    """
    v: int = SCHEMA


class AcceptedSettings(msgspec.Struct, frozen=True):
    """Controlled settings of an agent, or the project's fleet, as accepted by the operator."""

    settings: dict[str, Any]
    at: datetime
    v: int = SCHEMA


def identify_folder(folder: Path, now: datetime) -> TrustRecord:
    """Return a record that identifies the folder in its current state."""
    from rekindle.system.processes import launch_processes  # noqa: PLC0415 - slows every start

    with translate_os_errors(folder):
        status = os.stat(folder)  # noqa: PTH116 - follows links
    boot, born = launch_processes.identify_boot(), file_status.read_birth_time(folder)
    return TrustRecord(render_path(folder), status.st_dev, status.st_ino, boot, now, born)


def is_trusted(project: PrivateProject, now: datetime) -> bool:
    """Return whether the folder that is currently at the path is the one that the user accepted."""
    record: TrustRecord | None = _read(project.record, TrustRecord)
    if record is None:
        return False
    current = identify_folder(project.project, now)
    same = (record.path, record.inode, record.born) == (current.path, current.inode, current.born)
    if not same:
        return False
    return record.device == current.device or record.boot != current.boot


def list_recorded() -> list[Path]:
    """Return the paths that the user accepted on this host, whether or not they still exist."""
    folders = []
    for path in private_files.list_records():
        record: TrustRecord | None = _read(path, TrustRecord)
        # A path that is not valid UTF-8 cannot be restored from JSON.
        if record and private_files.find_private_project(Path(record.path)).record == path:
            folders.append(Path(record.path))
    return folders


def read_recorded_identity(project: PrivateProject) -> tuple[int, int] | None:
    """Return the device and inode that the folder had when the user accepted it."""
    record: TrustRecord | None = _read(project.record, TrustRecord)
    return (record.device, record.inode) if record else None


def list_trusted(now: datetime) -> list[Path]:
    """Return the folders that the user accepted and that have not been replaced since."""
    folders = []
    for folder in list_recorded():
        with suppress(StoreError):  # the folder was removed, or its disk is not mounted
            if is_trusted(private_files.find_private_project(folder), now):
                folders.append(folder)
    return folders


def remove_replaced(project: PrivateProject, now: datetime) -> None:
    """Remove the records of another folder that was at the same path.

    The commands in them were not meant for this folder.
    """
    if durable_files.path_exists(project.record) and not is_trusted(project, now):
        project.remove_agents()
        durable_files.remove_file(project.fleet)


def record_trust(project: PrivateProject, now: datetime) -> None:
    """Record that the user trusts the folder that is currently at the path."""
    project.make()
    durable_files.replace_file(project.record, _encode(identify_folder(project.project, now)))


def read_settings(record: Path) -> dict[str, Any] | None:
    """Return the settings that the operator accepted, or None if none were accepted."""
    accepted: AcceptedSettings | None = _read(record, AcceptedSettings)
    return accepted.settings if accepted else None


def record_settings(record: Path, settings: dict[str, Any], now: datetime) -> None:
    durable_files.replace_file(record, _encode(AcceptedSettings(settings, now)))


def _encode(record: TrustRecord | AcceptedSettings) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record)) + b"\n"


def _read(path: Path, kind: type[Any]) -> Any:
    data = durable_files.read_bytes(path)
    if data is None:
        return None
    try:
        json_codec.decode_object(data, path.name, schema=SCHEMA)
        return msgspec.json.decode(data, type=kind)
    except (DocumentError, msgspec.MsgspecError):
        return None  # an unreadable record counts as never accepted
