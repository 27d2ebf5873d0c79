"""A user folder that only the tests see."""

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Final

from rekindle.system.files import user_folder

_NEW_MOUNTS: Final = 0x00020000  # CLONE_NEWNS
_RECURSIVE: Final = 0x4000  # MS_REC
_PRIVATE: Final = 0x40000  # MS_PRIVATE


def isolate_user_folder() -> None:
    """Mount an empty file system over the user folder, for this process and its children."""
    kernel = ctypes.CDLL(None, use_errno=True)
    folder = user_folder.make_user_folder()
    _require(kernel.unshare(_NEW_MOUNTS), "unshare")
    _require(kernel.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "make / private")
    _mount_memory(kernel, folder, "256m")
    for shared in (user_folder.find_workspaces_folder(), user_folder.find_outputs_folder()):
        shared.mkdir(parents=True, exist_ok=True)
        _mount_memory(kernel, shared, "1g")
    if os.environ.get("REKINDLE_TESTS_IN_MEMORY") and "PYTEST_XDIST_WORKER" not in os.environ:
        # A real disk takes milliseconds to confirm each write, a busy one much longer. Only tests
        # that cut the power need one, and they have their own.
        folder = Path(tempfile.gettempdir(), "rk")  # short, because sockets are created below it
        folder.mkdir(exist_ok=True)
        _mount_memory(kernel, folder, "6g")
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)


def _mount_memory(kernel: ctypes.CDLL, folder: Path, size: str) -> None:
    options = f"mode=0700,size={size}".encode()
    _require(kernel.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options), "mount")


def _require(result: int, call: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
