"""Identify this host and its user."""

import os
import pwd
from contextlib import suppress
from pathlib import Path

from rekindle.errors import translate_os_errors

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))

_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files with the memory limit of a container, for both versions of control groups."""


def identify_host() -> str:
    """Return a name for this host that survives reboots and, with a machine id, renaming."""
    for file in _MACHINE_IDS:
        # Do not suppress read errors: with a fallback name, this would look like another host.
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


def identify_author() -> str:
    """Return the user who runs this process and this host's name, as USER@HOST."""
    return f"{identify_user()}@{os.uname().nodename}"


def identify_user() -> str:
    """Return the name of the user who runs this process, ignoring the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # this user id has no name
        return str(os.getuid())


def find_memory() -> int:
    """Return this host's memory in bytes, or the limit of the container that it runs in."""
    amounts = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # there is no limit
            amounts.append(int(file.read_text(encoding="ascii")))
    return min(amounts)
