"""Being asked to end: by Ctrl-C, a `kill`, a terminal that closes."""

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP = signal.SIGUSR1
"""Sent by `rekindle stop` to a supervisor if the stop cannot be written to any disk.

Not SIGINT, which a shell's `&` ignores, and not SIGTERM, which says nothing of what is wanted.
"""


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Each of them raises KeyboardInterrupt, so that what is ours is cleaned up. Once is enough."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # nothing cuts the cleaning up short
        raise KeyboardInterrupt

    # What is ignored stays so: `nohup`, and a shell's `&`, mean it.
    before = {
        number: found
        for number in ENDING
        if (found := signal.getsignal(number)) is not signal.SIG_IGN
    }
    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found)


@contextmanager
def held_back() -> Iterator[None]:
    """What must not be left half done; a signal that comes meanwhile acts right afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_once() -> None:
    """In a child that has nothing to clean up: what its parent had arranged is not for it."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def end_when_closed(line: int) -> None:
    """Be asked to end when whoever has the other end of a pipe is gone, however that came about."""
    signal.signal(signal.SIGIO, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([line], [], [], 0)[0]:
        raise SystemExit(1)  # it was gone before we could ask
