"""Requests to end this process: Ctrl-C, `kill`, or a closed terminal."""

import fcntl
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_SIGNAL = signal.SIGUSR1
"""The signal that `rekindle stop` sends to a supervisor if it cannot write the stop to any disk.

SIGINT is not used, because background jobs of a shell (`&`) ignore it. SIGTERM is not used, because
it does not show that the operator requested the stop.
"""


@contextmanager
def raise_keyboard_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on the first ending signal, so that callers can clean up."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # no further signal interrupts the cleanup
        raise KeyboardInterrupt

    # Ignored signals stay ignored, because `nohup` and a shell's `&` ignore them on purpose.
    before = {
        number: handler
        for number in ENDING_SIGNALS
        if (handler := signal.getsignal(number)) is not signal.SIG_IGN
    }
    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Delay ending signals while the body is running; they take effect right afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def reset_signals() -> None:
    """Restore the default signal handlers in a child that has nothing to clean up."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


def end_with_pipe(line: int) -> None:
    """Send SIGTERM to this process when the other end of a pipe closes for any reason."""
    signal.signal(signal.SIGIO, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([line], [], [], 0)[0]:
        raise SystemExit(1)  # the pipe was closed before the request
