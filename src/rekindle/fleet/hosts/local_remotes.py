"""Keep a host from git remotes on its own disk that an agent could have created.

git runs a local remote's hooks with the worker's permissions, outside every sandbox.
"""

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from rekindle.errors import EngineError
from rekindle.policy.sandbox.mounts import is_inside
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.system.files import user_folder
from rekindle.wiring.open_store import HARNESSES

_URL = re.compile(r"([A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_SERVER = re.compile(r"[^/]*:")
"""How an address of ssh starts. Without this, git takes an address for a path."""
_PROCESSES = "/proc"
"""Contains links that the kernel resolves in the sandbox of another process."""


def check_remote(remote: str, root: Path, floor: SandboxFloor | None) -> None:
    """Refuse a remote in a folder where agents write, or in the home of the worker's user.

    Raises:
        EngineError: The remote is in such a folder, and the host contains its agents.
    """
    path = _find_path(remote)
    if floor is None or path is None:
        return
    closed = (root, Path.home(), user_folder.find_user_folder(), *_list_states())
    folders = [_PROCESSES, *(os.path.realpath(one) for one in closed)]
    is_plain = path.startswith("/") and "\0" not in path
    places = [os.path.normpath(path), os.path.realpath(path)] if is_plain else []
    if not places or any(is_inside(one, folder) for one in places for folder in folders):
        raise EngineError(
            "agent",
            "its git remote is in the home directory, in the folder with this host's agents, or "
            "not an absolute path",
            hint="use a server, or a folder elsewhere, such as /srv/git; then run the agent again",
        )


def _find_path(remote: str) -> str | None:
    """Return the path that git reads a remote as, or None if the remote is on a server."""
    if url := _URL.match(remote):
        if url[1].lower() != "file":
            return None
        # git also decodes %2f, and reads file://folder as a path.
        path = "/" + os.fsdecode(unquote_to_bytes(os.fsencode(url[2])))
    elif _SERVER.match(remote):
        return None
    else:
        path = remote
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _list_states() -> list[Path]:
    """Return the folders of the CLIs, where agents may write."""
    files = [harness.HOOK_FILES for harness in HARNESSES.values()]
    home = str(Path.home())
    return [Path(one.find_own_folder(os.environ, home)) for one in files if one is not None]
