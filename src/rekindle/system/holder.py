"""The process that holds a lock, told to stop by a signal."""

from pathlib import Path

from rekindle.system import kernel, orphans, signals


def signal_stop(process: str, lock: Path) -> bool:
    """Send the stop signal to `process` if it still lives and has the file `lock` open.

    Its number, start, boot and namespace must be those that were written down: numbers are used
    again, and another process must never be signalled in its place.
    """
    number = process.partition(".")[0]
    if not number.isdecimal():
        return False
    pid = int(number)
    return kernel.here.signal_if(
        pid,
        signals.STOP,
        lambda: orphans.identify(pid) == process and kernel.here.has_open(pid, lock),
    )
