"""The user's Rekindle folder, outside every workspace.

An agent can write to everything in its workspace. Files that control the agent (locks, trust, the
operator's commands, hook programs) are stored here instead, where a sandboxed agent cannot write.

The path depends only on the user id. A path from HOME or XDG_STATE_HOME would differ between a
login shell, cron, ssh and systemd: two supervisors would look for one lock in two places, and both
would find it free.
"""

import os
import pwd
import stat
from functools import cache
from pathlib import Path

from rekindle.errors import (
    UnsafePathError,
    translate_os_errors,
)
from rekindle.system.files import durable_files

_BELOW_HOME = Path(".local", "state", "rekindle")


def find_user_folder() -> Path:
    """Return the user's Rekindle folder, which may not exist yet."""
    user = os.getuid()
    home = _find_home(user)
    try:
        if home.is_absolute() and home.is_dir() and home.stat().st_uid == user:
            return home / _BELOW_HOME
    except OSError:
        pass
    # Service users often have a home that does not exist, or that belongs to root.
    return Path(f"/var/tmp/rekindle-{user}")  # noqa: S108 - make_user_folder() verifies its owner


@cache
def _find_home(user: int) -> Path:
    """Return the home directory from the system's user database, or "." if there is none.

    The result is cached in the process, because the database may be on another host.
    """
    try:
        return Path(pwd.getpwuid(user).pw_dir)
    except KeyError:
        return Path()


def make_user_folder(*parts: str) -> Path:
    """Create the user's folder and the folders `parts` below it, and return the innermost one.

    A folder that belongs to another user is refused, because every user can write to /var/tmp.
    """
    root = find_user_folder()
    for above in (*reversed(root.parents), root):
        if not above.exists():
            durable_files.make_folder(above)
    durable_files.refuse_link(root)
    with translate_os_errors(root):
        status = root.lstat()
        if status.st_uid != os.getuid():
            raise UnsafePathError(
                str(root), "belongs to another user", hint="ask its owner to remove it"
            )
        if stat.S_IMODE(status.st_mode) != durable_files.FOLDER_MODE:
            root.chmod(durable_files.FOLDER_MODE)
    inner = root
    for part in parts:
        inner /= part
        durable_files.make_folder(inner)
    return inner
