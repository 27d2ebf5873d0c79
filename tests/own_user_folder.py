"""A user folder that only the tests see."""

import ctypes
import os
from typing import Final

from rekindle.system import user_folder

_NEW_MOUNTS: Final = 0x00020000  # CLONE_NEWNS
_RECURSIVE: Final = 0x4000  # MS_REC
_PRIVATE: Final = 0x40000  # MS_PRIVATE


def isolate_user_folder() -> None:
    """Mount an empty file system over the user folder, for this process and its children."""
    kernel = ctypes.CDLL(None, use_errno=True)
    folder = user_folder.make()
    _require(kernel.unshare(_NEW_MOUNTS), "unshare")
    _require(kernel.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "make / private")
    target = os.fsencode(folder)
    _require(kernel.mount(b"tmpfs", target, b"tmpfs", 0, b"mode=0700,size=256m"), "mount")


def _require(result: int, call: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
