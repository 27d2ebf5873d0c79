"""Create the control group of a container before its runtime does, to watch the group's limits.

The runtime sets the limits and removes the group with the container. Therefore a process inside the
container reads the counters.
"""

import contextlib
import errno
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
PARENT = "rekindle"
"""Control group that contains the groups of all containers."""
_FILES_V1 = {"memory": "memory.oom_control", "processes": "pids.events"}
_FILES_V2 = {"memory": "memory.events", "processes": "pids.events"}
_IN_USE = (errno.EBUSY, errno.ENOTEMPTY)
_CONTROLLERS = "+memory +pids +cpu"


def make_group(name: str) -> tuple[str, dict[str, str]]:
    """Return the path of a new group, and the files with its counters by limit."""
    group = f"/{PARENT}/{name}"
    files: dict[str, str] = {}
    is_unified = (_MOUNT / "cgroup.controllers").exists()
    for limit, file in (_FILES_V2 if is_unified else _FILES_V1).items():
        root = _MOUNT if is_unified else _MOUNT / file.partition(".")[0]
        folder = root / group[1:]
        with contextlib.suppress(OSError):  # the runtime reports that it cannot create the group
            folder.parent.mkdir(exist_ok=True)
            if is_unified:
                for above in (root, folder.parent):
                    (above / "cgroup.subtree_control").write_text(_CONTROLLERS, encoding="ascii")
            folder.mkdir(exist_ok=True)
            if (folder / file).exists():
                files[limit] = str(folder / file)
    return group, files


def remove_group(name: str) -> bool:
    """Remove the parts of a group that its runtime left, and return whether none is in use."""
    is_free = True
    for folder in (_MOUNT, *(_MOUNT / one.partition(".")[0] for one in _FILES_V1.values())):
        try:
            (folder / PARENT / name).rmdir()
        except OSError as error:
            is_free = is_free and error.errno not in _IN_USE
    return is_free
