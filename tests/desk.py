"""A terminal with a person at it, and a shell with job control and nothing else.

The shell never changes the terminal's modes, so the test sees the modes that a job leaves behind.
"""

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

SHELL = r"""
import fcntl, json, os, signal, sys, termios
told, asked, *argv = sys.argv[1:]
told, asked = int(told), int(asked)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGTSTP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGTSTP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    os.close(told), os.close(asked)
    os.execvp(argv[0], argv)
def tell(**facts):
    os.write(told, json.dumps(facts).encode() + b"\n")
tell(job=job)
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        tell(code=os.waitstatus_to_exitcode(status))
        break
    tell(stopped=os.WSTOPSIG(status))
    if not os.read(asked, 1):
        break
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
os.read(asked, 1)
"""
ALONE = r"""
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.close(int(sys.argv[1])), os.close(int(sys.argv[2]))
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""No shell: the job is the only program of its window."""


class Desk:
    """A job in the foreground of a terminal, started when this is entered."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int] = (80, 24),
        shell: str = SHELL,
    ) -> None:
        self._screen, self._line = os.openpty()
        self.resize(*size)
        self.modes_before = self.modes
        self.shown = b""
        self._seen = 0
        told, tell = os.pipe()
        asked, self._ask = os.pipe()
        self._told = os.fdopen(told, "rb")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", shell, str(tell), str(asked), *argv],
            stdin=self._line,
            stdout=self._line,
            stderr=self._line,
            start_new_session=True,
            pass_fds=(tell, asked),
            env={"REKINDLE_TRUST": "1", **env},
            cwd=cwd,
        )
        os.close(tell)
        os.close(asked)
        self.job = int(self.hear()["job"]) if shell is SHELL else self.process.pid

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._line)

    @property
    def is_raw(self) -> bool:
        return not self.modes[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def resize(self, columns: int, lines: int) -> None:
        """Change the window size; the kernel signals the foreground job."""
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, what: str | bytes) -> None:
        """Type as much as the terminal accepts, and read its output meanwhile."""
        rest = what.encode() if isinstance(what, str) else what
        while rest:
            readable, writable, _ = select.select([self._screen], [self._screen], [], 30)
            if readable:
                self._look()
            if writable:
                rest = rest[os.write(self._screen, rest[:256]) :]

    def wait_for(self, words: str | bytes | re.Pattern[bytes], timeout: float = 120) -> None:
        """Wait until this text is shown, after the text of the last wait."""
        if isinstance(words, re.Pattern):
            wanted = words
        else:
            wanted = re.compile(re.escape(words.encode() if isinstance(words, str) else words))
        deadline = time.monotonic() + timeout
        while not (found := wanted.search(self.shown, self._seen)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._screen], [], [], left)[0]:
                raise TimeoutError(f"{words!r} was not shown; {self.shown[self._seen :]!r} was")
            self._look()
        self._seen = found.end()

    def hear(self, timeout: float = 120) -> dict[str, Any]:
        """Return the shell's next report on its job, and read its output meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = select.select([self._told, self._screen], [], [], left)[0]
            assert ready, f"the shell says nothing; the screen: {self.shown!r}"
            if self._screen in ready:
                self._look()
            if self._told in ready:
                said: dict[str, Any] = json.loads(self._told.readline())
                if "code" in said or "stopped" in said:
                    self._look_at_the_rest()
                return said

    def foreground(self) -> None:
        os.write(self._ask, b"\n")

    def _look(self) -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            self.shown += os.read(self._screen, 65536)

    def _look_at_the_rest(self) -> None:
        while select.select([self._screen], [], [], 0)[0]:
            self._look()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the window, and kill the job's processes that survive that."""
        for each in (self._screen, self._line, self._ask):
            os.close(each)
        self._told.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
