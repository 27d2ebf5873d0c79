"""Find the user's Rekindle folder, which is outside every workspace.

An agent can write anywhere in its workspace. Files that control the agent (locks, trust, the
operator's commands, hook programs) are stored here instead, where a sandboxed agent cannot write.

The path depends only on the user id. HOME and XDG_STATE_HOME differ between a login shell, cron,
ssh and systemd, so two supervisors would look for the same lock in two places, and both would find
it free.
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
_SHARED = Path(".local", "share", "rekindle")


def find_user_folder() -> Path:
    """Return the user's Rekindle folder. It may not exist yet."""
    user = os.getuid()
    home = _find_home(user)
    try:
        if home.is_absolute() and home.is_dir() and home.stat().st_uid == user:
            return home / _BELOW_HOME
    except OSError:
        pass
    # A service user's home may not exist, or may belong to root.
    return Path(f"/var/tmp/rekindle-{user}")  # noqa: S108 - make_user_folder() verifies its owner


def find_workspaces_folder() -> Path:
    """Return the folder for agents' clones and work trees. It may not exist yet.

    It is not in the user's Rekindle folder, because agents must not write there. It is not in the
    project either, because many programs search the folders above for their settings.
    """
    return _find_shared_folder("workspaces")


def find_outputs_folder() -> Path:
    """Return the folder for pipeline outputs, which agents may read. It may not exist yet."""
    return _find_shared_folder("outputs")


def _find_shared_folder(name: str) -> Path:
    own = find_user_folder()
    if own.is_relative_to(_find_home(os.getuid())):
        return own.parents[len(_BELOW_HOME.parts) - 1] / _SHARED / name
    return own.with_name(f"{own.name}-{name}")


@cache
def _find_home(user: int) -> Path:
    """Return the home directory from the user database, or "." if there is none.

    Cached, because the database may be on another host.
    """
    try:
        return Path(pwd.getpwuid(user).pw_dir)
    except KeyError:
        return Path()


def make_user_folder(*parts: str) -> Path:
    """Create the user's folder and the subfolders `parts`, and return the innermost one.

    Another user's folder is refused, because every user can write to /var/tmp.
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
