"""Handle requests to end this process: Ctrl-C, `kill`, or a closed terminal."""

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SIGNAL = signal.SIGUSR1
"""Signal that `rekindle stop` sends to a supervisor if it cannot record the stop on disk.

It is not SIGINT, which a shell's background jobs (`&`) ignore, and not SIGTERM, which does not show
that the operator requested the stop.
"""


@contextmanager
def raise_keyboard_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on the first signal, so that callers can clean up."""

    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # nothing may interrupt the cleanup
        raise KeyboardInterrupt

    # Leave ignored signals alone: `nohup` and a shell's `&` ignore them on purpose.
    before = {
        number: handler
        for number in ENDING_SIGNALS
        if (handler := signal.getsignal(number)) is not signal.SIG_IGN
    }
    try:
        for number in before:
            signal.signal(number, raise_interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Delay signals that would end this process until the block is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def reset_signals() -> None:
    """Restore the default signal handlers in a child process."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


def end_with_pipe(line: int) -> None:
    """Send SIGTERM to this process when the other end of a pipe is closed."""
    signal.signal(signal.SIGIO, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([line], [], [], 0)[0]:
        raise SystemExit(1)  # the pipe is already closed
