"""Read, write and remove a CLI's settings file without following links in a project."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rekindle.documents.hooks import hook_settings
from rekindle.documents.hooks.hook_settings import InstalledHook
from rekindle.errors import (
    DocumentError,
    StoreError,
    UnsafePathError,
    UsageError,
    translate_os_errors,
)
from rekindle.flows.hooks.hook_locations import HookLocation
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import EDIT_LOCK_SECONDS
from rekindle.system.files import durable_files, file_locks

_SHARED_MODE = 0o644
_SHARED_FOLDER_MODE = 0o755


def read_settings(place: HookLocation) -> tuple[str, bytes | None]:
    """Return a settings file as text and bytes. The bytes are None if there is no file."""
    data = durable_files.read_bytes(place.target)
    try:
        return (data or b"").decode(), data
    except UnicodeDecodeError as error:
        raise DocumentError(
            place.shown, f"is not UTF-8 text (byte {error.start})", hint="save it as UTF-8"
        ) from error


def find_installed(place: HookLocation, text: str) -> list[InstalledHook]:
    return hook_settings.find_installed(text, place.shown, comments=place.files.comments)


@contextmanager
def hold_lock(place: HookLocation) -> Iterator[None]:
    """Hold the lock on the settings file, because concurrent edits would overwrite each other.

    Raises:
        UnsafePathError: The project's settings file is a link to a file outside the project.
    """
    target, _ = _find_target(place)
    with translate_os_errors(place.home):
        place.home.parent.mkdir(parents=True, exist_ok=True)
    durable_files.make_folder(place.home)
    with file_locks.hold_lock(place.home / "lock", EDIT_LOCK_SECONDS) as lock:
        if lock is None:
            raise UsageError("another process is changing the hooks", hint="repeat the command")
        durable_files.sweep_temporary(place.home, of=f"-{place.record.name}")
        if target.parent.is_dir():
            durable_files.sweep_temporary(target.parent, of=f"-{target.name}")
        yield


def write_settings(place: HookLocation, data: bytes) -> None:
    target, root = _find_target(place)
    new = _SHARED_MODE if place.level == "project" else durable_files.FILE_MODE
    with translate_os_errors(target):
        mode = target.stat().st_mode & 0o777 if target.exists() else new
        if target.exists() and not os.access(target, os.W_OK):
            # The folder's permissions allow replacing the file, but its owner made the file
            # read-only.
            raise StoreError(
                str(target), "is read-only", hint=f"chmod u+w {shlex.quote(str(target))}"
            )
    durable_files.replace_file(target, data, mode=mode, root=root)


def make_settings_folder(place: HookLocation) -> bool:
    """Create the settings folder if it is missing. Return whether it was missing."""
    folder = place.settings.parent
    with translate_os_errors(folder):
        if folder.is_dir():
            return False
        if place.folder and not place.folder.is_dir():
            shown = to_one_line(str(place.folder))
            raise UsageError(f"there is no folder {shown}", hint="create it, or correct `dir:`")
        mode = durable_files.FOLDER_MODE if place.level == "user" else _SHARED_FOLDER_MODE
        folder.mkdir(mode, parents=True)
    durable_files.sync_folder(folder.parent)
    return True


def remove_settings(place: HookLocation, *, made_folder: bool) -> None:
    target, root = _find_target(place)
    durable_files.remove_file(target, root=root)
    durable_files.sync_folder(target.parent)
    if made_folder:
        with suppress(OSError):  # keep the folder if it has other files
            place.settings.parent.rmdir()


def _find_target(place: HookLocation) -> tuple[Path, Path | None]:
    """Return the file to write, and the folder in which links must not be followed."""
    target = place.target
    root = place.root_of(target)
    if root is None and place.level != "user":
        raise UnsafePathError(
            place.shown,
            f"is a link to {to_one_line(str(target))}, outside the project",
            hint="replace the link with a file, or use --for user",
        )
    return target, root
