"""Remember which folders the user trusts on this host, and which settings were accepted.

A cloned repository may come with its own `rekindle.yaml` and `.rekindle`. Rekindle ignores both
until the user trusts the folder on this host. The record is stored outside the folder and
identifies it by path, device and inode, so another folder at the same path is not trusted.
"""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from rekindle.errors import (
    DocumentError,
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
    """Identity of a folder that the user trusts."""

    path: str
    device: int
    inode: int
    boot: str
    """Id of the boot in which the device number was read. The number may change after a reboot."""
    at: datetime
    born: int = 0
    """Creation time of the folder in nanoseconds; 0 if unknown.

    Inodes are reused: a folder that is removed and cloned again may get the same one.
    """
    v: int = SCHEMA


class AcceptedSettings(msgspec.Struct, frozen=True):
    """Settings of an agent, a pipeline or a fleet that the operator has accepted."""

    settings: dict[str, Any]
    at: datetime
    v: int = SCHEMA


def identify_folder(folder: Path, now: datetime) -> TrustRecord:
    """Return the identity of the folder as it is now."""
    from rekindle.system.processes import launch_processes  # noqa: PLC0415 - would slow down every command

    with translate_os_errors(folder):
        status = os.stat(folder)  # noqa: PTH116 - follows links
    boot, born = launch_processes.identify_boot(), file_status.read_birth_time(folder)
    return TrustRecord(render_path(folder), status.st_dev, status.st_ino, boot, now, born)


def is_trusted(project: PrivateProject, now: datetime) -> bool:
    """Return whether the folder at this path is the one that the user trusts."""
    record: TrustRecord | None = _read_record(project.record, TrustRecord)
    if record is None:
        return False
    current = identify_folder(project.project, now)
    same = (record.path, record.inode, record.born) == (current.path, current.inode, current.born)
    if not same:
        return False
    return record.device == current.device or record.boot != current.boot


def list_recorded() -> list[Path]:
    """Return all paths that the user trusts on this host, even if they no longer exist."""
    folders = []
    for path in private_files.list_records():
        record: TrustRecord | None = _read_record(path, TrustRecord)
        # Paths that are not valid UTF-8 cannot be restored from JSON.
        if record and private_files.find_private_project(Path(record.path)).record == path:
            folders.append(Path(record.path))
    return folders


def list_former_paths(project: PrivateProject, now: datetime) -> list[Path]:
    """Return the paths at which the user trusted this folder before it was moved or renamed."""
    current = identify_folder(project.project, now)
    former = []
    for folder in list_recorded():
        record: TrustRecord | None = _read_record(
            private_files.find_private_project(folder).record, TrustRecord
        )
        if record is None or folder == project.project or durable_files.path_exists(folder):
            continue
        is_same_disk = record.device == current.device or record.boot != current.boot
        if is_same_disk and (record.inode, record.born) == (current.inode, current.born):
            former.append(folder)
    return former


def read_recorded_identity(project: PrivateProject) -> tuple[int, int] | None:
    """Return the device and inode that the folder had when the user trusted it."""
    record: TrustRecord | None = _read_record(project.record, TrustRecord)
    return (record.device, record.inode) if record else None


def remove_replaced(project: PrivateProject, now: datetime) -> None:
    """Remove the records of a different folder that used to be at this path.

    Their commands were not meant for the current folder.
    """
    if durable_files.path_exists(project.record) and not is_trusted(project, now):
        project.remove_agents()
        durable_files.remove_file(project.fleet)
        for name in project.list_pipelines():
            durable_files.remove_file(project.pipeline_settings(name))


def record_trust(project: PrivateProject, now: datetime) -> None:
    """Record that the user trusts the folder at this path."""
    project.make()
    durable_files.replace_file(
        project.record, _encode_record(identify_folder(project.project, now))
    )


def read_settings(record: Path) -> dict[str, Any] | None:
    """Return the settings that the operator accepted, or None."""
    accepted: AcceptedSettings | None = _read_record(record, AcceptedSettings)
    return accepted.settings if accepted else None


def read_accepted(record: Path) -> AcceptedSettings | None:
    """Return the settings in a record and when they were accepted, or None."""
    accepted: AcceptedSettings | None = _read_record(record, AcceptedSettings)
    return accepted


def record_settings(record: Path, settings: dict[str, Any], now: datetime) -> None:
    durable_files.replace_file(record, _encode_record(AcceptedSettings(settings, now)))


def _encode_record(record: TrustRecord | AcceptedSettings) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record)) + b"\n"


def _read_record(path: Path, kind: type[Any]) -> Any:
    data = durable_files.read_bytes(path)
    if data is None:
        return None
    try:
        json_codec.decode_object(data, path.name, schema=SCHEMA)
        return msgspec.json.decode(data, type=kind)
    except (DocumentError, msgspec.MsgspecError):
        return None  # ignore an unreadable record
