"""Run a host's processes in their own namespace: a sweep there sees only the test's.

    unshare --pid --fork --mount-proc --kill-child python apart.py PROGRAM…

This is its first process: it starts the program, passes SIGTERM on, and exits with its code when
everything there has ended. So processes that the program leaves behind are seen.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def apart(argv: list[str]) -> list[str]:
    """Return the command that runs a program in this way."""
    return [*UNSHARE, sys.executable, "-I", __file__, *argv]


class Apart:
    """A program in its own namespace; it is signalled by its own pid, not by its namespace's."""

    def __init__(self, argv: list[str], **how) -> None:
        self._all = subprocess.Popen(apart(argv), **how)
        self.stdout = self._all.stdout
        self._pid = 0

    @property
    def pid(self) -> int:
        """Return its pid as seen from outside, once it has one."""
        if not self._pid:
            [first] = children(self._all.pid)
            self._pid = children(first)[0]
        return self._pid

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def poll(self) -> int | None:
        return self._all.poll()

    def wait(self, seconds: float | None = None) -> int:
        return self._all.wait(seconds)

    def close(self) -> None:
        """End it with everything that is left of it."""
        self._all.kill()
        self._all.wait()
        if self.stdout is not None:
            self.stdout.close()

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError, ValueError, IndexError):
                os.kill(self.pid, number)


def children(pid: int) -> list[int]:
    """Return the children of a process that the test started; none if it is gone."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(one) for thread in threads for one in (thread / "children").read_text().split()]
    except OSError:
        return []


def main(argv: list[str]) -> int:
    program = subprocess.Popen(argv)
    signal.signal(signal.SIGTERM, lambda *_: program.send_signal(signal.SIGTERM))
    code = program.wait()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
