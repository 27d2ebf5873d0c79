"""Write a command's output to a file that the user named."""

from pathlib import Path

from rekindle.errors import UsageError, translate_os_errors
from rekindle.system.files import durable_files

_FOR_ALL = 0o644
"""File mode. All users can read the file, so a web server or an exporter can serve it."""


def write_output(path: Path, data: bytes) -> None:
    """Replace the file atomically. The user's path may be a symbolic link or a device."""
    with translate_os_errors(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
    path = path.resolve()
    if not path.parent.is_dir():
        raise UsageError(
            f"folder {path.parent} does not exist", hint="create it, or choose another file"
        )
    durable_files.replace_file(path, data, mode=_FOR_ALL)
