"""Identify this host, so that a folder shared by two hosts has one owner."""

import os
import pwd
from pathlib import Path

from rekindle.errors import translate_os_errors

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def identify_host() -> str:
    """Return a name that survives reboots and, if the host has a machine id, renaming the host."""
    for file in _MACHINE_IDS:
        # A read error is raised, because another name would look like another host.
        with translate_os_errors(file):
            try:
                machine_id = file.read_text(encoding="ascii").strip()
            except (FileNotFoundError, NotADirectoryError, PermissionError, UnicodeDecodeError):
                continue
        if machine_id:
            return machine_id
    return os.uname().nodename


def name() -> str:
    """Return the hostname."""
    return os.uname().nodename


def identify_user() -> str:
    """Return the name of the user that runs this process, regardless of the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # the user id has no name
        return str(os.getuid())
