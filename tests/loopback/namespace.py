"""A network that holds nothing but its own loopback.

A network namespace belongs to a thread, and a socket stays in the one it was created in. So one
short thread makes the namespace and opens the listening socket there; any thread of this process
may serve it afterwards, and the programs under test are started into the namespace by `argv`.

Sockets in the file system cross namespaces: a resolver that is asked over one would still answer.
"""

import ctypes
import fcntl
import functools
import os
import shutil
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Self, TypeVar

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_GET_FLAGS: Final = 0x8913  # SIOCGIFFLAGS
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_SET_ADDRESS: Final = 0x8916  # SIOCSIFADDR
_UP: Final = 0x1  # IFF_UP
_REQUEST: Final = struct.Struct("16sH22x")  # struct ifreq, as far as flags need it
_ADDRESS: Final = struct.Struct("16sH2x4s8x")  # the same, for an address

T = TypeVar("T")


class Namespace:
    """A fresh network namespace with `lo` up and a socket listening on 127.0.0.1."""

    def __init__(self) -> None:
        self._handle, self.listener = _in_a_thread_of_its_own(_make)

    @property
    def port(self) -> int:
        number: int = self.listener.getsockname()[1]
        return number

    @property
    def path(self) -> str:
        """Return the file by which other programs enter the namespace, while this one lives."""
        return f"/proc/{os.getpid()}/fd/{self._handle}"

    def argv(self, argv: list[str]) -> list[str]:
        """Return the command inside; nsenter replaces itself, so the pid is the command's."""
        return ["nsenter", f"--net={self.path}", "--", *argv]

    def listen(self, port: int, address: str = "127.0.0.1") -> socket.socket:
        """Open one more listening socket inside, at a port of the caller's choice."""

        def made() -> socket.socket:
            _enter(self._handle)
            return socket.create_server((address, port))

        return _in_a_thread_of_its_own(made)

    def add_address(self, address: str) -> None:
        """Give `lo` one more address."""
        family = socket.AF_INET
        request = _ADDRESS.pack(b"lo:1", family, socket.inet_pton(family, address))
        fcntl.ioctl(self.listener, _SET_ADDRESS, request)

    def cut(self) -> None:
        """Drop all packets; open connections do not notice."""
        _set_flags(self.listener, _flags(self.listener) & ~_UP)

    def restore(self) -> None:
        _set_flags(self.listener, _flags(self.listener) | _UP)

    def close(self) -> None:
        """Release the namespace; the kernel removes it with its last process and socket."""
        self.listener.close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@functools.cache
def obstacle() -> str | None:
    """Return why no namespace can be created here, or None if it can."""
    if sys.platform != "linux":
        return f"network namespaces need Linux, and this is {sys.platform}"
    if shutil.which("nsenter") is None:
        return "nsenter is not installed (util-linux)"
    try:
        Namespace().close()
    except OSError as error:
        return f"no network namespace can be made here: {error}"
    return None


def _in_a_thread_of_its_own(work: Callable[[], T]) -> T:
    # The thread ends with the work, so that no other work runs in its namespace by accident.
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(work).result()


def _make() -> tuple[int, socket.socket]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare: {os.strerror(error)}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _set_flags(control, _flags(control) | _UP)
    listener = socket.create_server(("127.0.0.1", 0))
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC), listener


def _enter(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _NEW_NETWORK) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


def _flags(inside: socket.socket) -> int:
    """Return the flags of `lo` in the namespace of the socket."""
    _, flags = _REQUEST.unpack(fcntl.ioctl(inside, _GET_FLAGS, _REQUEST.pack(b"lo", 0)))
    return int(flags)


def _set_flags(inside: socket.socket, flags: int) -> None:
    fcntl.ioctl(inside, _SET_FLAGS, _REQUEST.pack(b"lo", flags))
