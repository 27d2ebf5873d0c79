"""Signals to the process that holds a lock."""

import signal
from pathlib import Path

from rekindle.system import kernel, orphans


def send(process: str, lock: Path, number: signal.Signals) -> bool:
    """Signal `process` if it still lives and has the file `lock` open; return whether it was.

    Its number, start, boot and namespace must be those that were written down: numbers are used
    again, and another process must never be signalled in its place.
    """
    first = process.partition(".")[0]
    if not first.isdecimal():
        return False
    pid = int(first)
    return kernel.here.signal_if(
        pid,
        number,
        lambda: orphans.identify(pid) == process and kernel.here.has_open(pid, lock),
    )
