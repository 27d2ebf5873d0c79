"""The user's own Rekindle folder, outside every workspace.

An agent can write to everything in its workspace. What decides over the agent (locks, trust, the
operator's commands, hook programs) is kept here instead, where a sandboxed agent cannot write.

The path depends on the user id alone. A path from HOME or XDG_STATE_HOME would differ between a
login shell, cron, ssh and systemd: two supervisors would look for one lock in two places, and both
would find it free.
"""

import os
import pwd
import stat
from functools import cache
from pathlib import Path

from rekindle.errors import UnsafePathError, storing
from rekindle.system import disk

_BELOW_HOME = Path(".local", "state", "rekindle")


def path() -> Path:
    """Return the folder, which may not exist yet."""
    user = os.getuid()
    home = _home_of(user)
    try:
        if home.is_absolute() and home.is_dir() and home.stat().st_uid == user:
            return home / _BELOW_HOME
    except OSError:
        pass
    # Service users often have a home that does not exist, or that belongs to root.
    return Path(f"/var/tmp/rekindle-{user}")  # noqa: S108 - make() verifies its owner


@cache
def _home_of(user: int) -> Path:
    """Return the home that the system's database of users names; "." if it names none.

    Asked once in a process: the database may be on another host.
    """
    try:
        return Path(pwd.getpwuid(user).pw_dir)
    except KeyError:
        return Path()


def make(*parts: str) -> Path:
    """Make the folder and the folders `parts` below it, and return the innermost one.

    Refuse a folder of another user: /var/tmp is open to all of them.
    """
    root = path()
    for above in (*reversed(root.parents), root):
        if not above.exists():
            disk.make_folder(above)
    disk.refuse_link(root)
    with storing(root):
        found = root.lstat()
        if found.st_uid != os.getuid():
            raise UnsafePathError(
                str(root), "belongs to another user", hint="have its owner remove it"
            )
        if stat.S_IMODE(found.st_mode) != disk.FOLDER_MODE:
            root.chmod(disk.FOLDER_MODE)
    inner = root
    for part in parts:
        inner /= part
        disk.make_folder(inner)
    return inner
