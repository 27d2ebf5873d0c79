"""A file system of our own, whose power can be cut.

Its image lies on a tmpfs, and both are mounted in a mount namespace of one thread: no other process
ever sees them.

A cut is the file system's own emergency stop (FS_IOC_SHUTDOWN, by which the kernel's file systems
are crash-tested): from then on nothing reaches the image, and what was not written is gone. It
comes in two kinds, for a real one may come at any moment between them. Then the image is mounted
again, which replays its journal.
"""

import ctypes
import enum
import fcntl
import functools
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

_NEW_MOUNTS: Final = 0x20000  # CLONE_NEWNS
_SHUTDOWN: Final = 0x8004587D  # FS_IOC_SHUTDOWN
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Cut(enum.IntEnum):
    """The data that still reaches the disk; the numbers are the kernel's."""

    JOURNAL_WRITTEN = 1
    """The journal, but no data: names arrive before their bytes."""
    NOTHING_WRITTEN = 2
    """Nothing at all: what was not confirmed is gone, names and bytes."""


@dataclass(frozen=True)
class Kind:
    make: tuple[str, ...]
    megabytes: int
    options: str = "loop"


KINDS: Final = {
    "ext4": Kind(("mkfs.ext4", "-q", "-F"), 64),
    "ext4 noauto_da_alloc": Kind(("mkfs.ext4", "-q", "-F"), 64, "loop,noauto_da_alloc"),
    "xfs": Kind(("mkfs.xfs", "-q", "-f"), 300),
}


class Image:
    """A mounted file system; made and used inside `with_image` only."""

    def __init__(self, kind: Kind, below: Path) -> None:
        self._kind = kind
        self._file = below / "image"
        self.folder = below / "mounted"
        self.folder.mkdir()
        with self._file.open("wb") as file:
            file.truncate(kind.megabytes * 1024 * 1024)
        _run(*kind.make, str(self._file))
        self._mount()

    def sync(self) -> None:
        """Have everything written, as if a long time had passed."""
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            if _libc.syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), "syncfs")
        finally:
            os.close(fd)

    def lose_power(self, cut: Cut) -> None:
        """Cut the power, and start again."""
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", cut))
        finally:
            os.close(fd)
        self.unmount()
        self._mount()

    def unmount(self) -> None:
        _run("umount", str(self.folder))

    def _mount(self) -> None:
        _run("mount", "-o", self._kind.options, str(self._file), str(self.folder))


def with_image(kind: str, work: Callable[[Image], T]) -> T:
    """Run the work, with an image of its own, in a thread that alone sees it."""

    def in_namespace(place: Path) -> T:
        _leave_the_mounts_of_others()
        _run("mount", "-t", "tmpfs", "-o", "size=256m", "none", str(place))
        try:
            image = Image(KINDS[kind], place)
            try:
                return work(image)
            finally:
                # Without it the kernel may keep the loop device for good, even though the
                # namespace is gone.
                image.unmount()
        finally:
            _run("umount", str(place))

    with (
        tempfile.TemporaryDirectory(prefix="rekindle-power-") as folder,
        ThreadPoolExecutor(max_workers=1) as threads,
    ):
        return threads.submit(in_namespace, Path(folder)).result()


@functools.cache
def obstacle() -> str | None:
    """Why no power can be cut here, or None if it can."""
    if sys.platform != "linux":
        return f"images are mounted on Linux, and this is {sys.platform}"
    for program in ("mount", "umount", "mkfs.ext4", "mkfs.xfs"):
        if shutil.which(program) is None:
            return f"{program} is not installed (e2fsprogs, xfsprogs)"
    for kind in KINDS:
        try:
            with_image(kind, lambda image: image.lose_power(Cut.NOTHING_WRITTEN))
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "")
            return f"no {kind} image can be mounted and shut down here: {error} {said}"
    return None


def _leave_the_mounts_of_others() -> None:
    if _libc.unshare(_NEW_MOUNTS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no mount namespace can be made: {os.strerror(number)}")
    _run("mount", "--make-rprivate", "/")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True)
