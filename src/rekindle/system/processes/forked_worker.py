"""Fork children that report line by line and can be killed at any time.

A child is killed by pid only before it is reaped, while the pid cannot be reused.
"""

import os
import select
import signal
import time
from collections.abc import Callable

from rekindle.system.processes import stop_signals

LineReporter = Callable[[str], None]
_ERROR = "!"


class ForkedChild:
    """A child process that performs one task and reports its progress."""

    def __init__(self, work: Callable[[LineReporter], None]) -> None:
        self._pipe, report = os.pipe()
        self._received = b""
        self._pid = os.fork()
        if self._pid == 0:
            _run_child(work, report)
        os.close(report)

    def read_lines(self, lines: int, wait: float) -> list[str]:
        """Wait for this many lines, the child's exit or the timeout. Return all lines so far."""
        deadline = time.monotonic() + wait
        while self._received.count(b"\n") < lines and (rest := deadline - time.monotonic()) > 0:
            if not select.select([self._pipe], [], [], rest)[0]:
                break
            piece = os.read(self._pipe, 65536)
            if not piece:
                break
            self._received += piece
        complete = self._received.decode(errors="replace").split("\n")[:-1]
        return [line for line in complete if not line.startswith(_ERROR)]

    @property
    def error(self) -> str:
        """Return the message of the error that stopped the child, or ""."""
        return self._read_stop_cause()[1]

    @property
    def errno(self) -> int:
        """Return the errno that stopped the child, or 0."""
        return self._read_stop_cause()[0]

    def _read_stop_cause(self) -> tuple[int, str]:
        lines = self._received.decode(errors="replace").split("\n")[:-1]
        cause = next((line[1:] for line in lines if line.startswith(_ERROR)), "0 ")
        number, _, message = cause.partition(" ")
        return int(number), message

    def kill(self) -> None:
        """Kill the child if it is still running."""
        # If a signal arrived between reaping the child and forgetting its pid, the cleanup would
        # kill that pid again, although another process may have it by then.
        with stop_signals.defer_signals():
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                self._pid = 0

    def is_over(self) -> bool:
        with stop_signals.defer_signals():
            if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
                self._pid = 0
        return not self._pid

    def close(self) -> None:
        self.kill()
        os.close(self._pipe)


def _run_child(work: Callable[[LineReporter], None], report: int) -> None:
    """Run the child's task and exit. Never returns to the parent's code."""

    def report_line(line: str) -> None:
        os.write(report, f"{line}\n".encode())

    try:
        stop_signals.reset_signals()
        work(report_line)
    except BaseException as error:  # noqa: BLE001 - the parent reports every error
        message = " ".join(str(error).split()) or type(error).__name__
        report_line(f"{_ERROR}{getattr(error, 'errno', None) or 0} {message}")
    finally:
        os._exit(0)
