"""Which host this is, so that a folder shared by two hosts has one owner."""

import os
import pwd
from pathlib import Path

from rekindle.errors import storing

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def identify() -> str:
    """A name that survives reboots and, where the system has a machine id, a new hostname."""
    for file in _MACHINE_IDS:
        # Where the id is there but cannot be read now, another name would be another host.
        with storing(file):
            try:
                found = file.read_text(encoding="ascii").strip()
            except (FileNotFoundError, NotADirectoryError, PermissionError, UnicodeDecodeError):
                continue
        if found:
            return found
    return os.uname().nodename


def name() -> str:
    """Return what people call this host."""
    return os.uname().nodename


def identify_user() -> str:
    """Return the name of the user that this process belongs to, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user that the system has no name for
        return str(os.getuid())
