"""Run a program in its own terminal, and connect that terminal to ours.

All input is passed to the program as bytes, including Ctrl-C and Ctrl-Z. The program's terminal
turns these into signals for the program, not for us.
"""

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import termios
import time
import tty
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Self

from rekindle.errors import AgentError
from rekindle.system.processes import (
    launch_processes,
    stop_signals,
)
from rekindle.system.processes.child_processes import (
    HostProcesses,
    explain_start_errors,
)
from rekindle.system.terminal import session_leader
from rekindle.thresholds.supervision import (
    STDERR_BYTES,
    TERMINAL_DRAIN_SECONDS,
)

_PIECE_BYTES = 64 * 1024
_SIZE_BYTES = 8  # struct winsize: rows, columns, and the size in pixels
_CALM = (
    b"\x1b[?47l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m"
)
"""Escape sequences that undo modes that a killed program left on: alternate screen, mouse, focus
and paste reports, hidden cursor, colours.
"""
_DRAWN = re.compile(r"\x1b\[[0-9;]*[A-HJKSTdf]")
"""Escape sequences that move the cursor or clear part of the screen."""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])")


class TerminalChild:
    """A program in its own terminal. It ends when this process exits."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        keep: Sequence[str] = (),
        adopts: bool = False,
    ) -> None:
        """Start the program. Processes that match `keep` are spared, and `adopts` reaps orphans."""
        self._adopts = adopts
        self._code: int | None = None
        self._ours = _open_terminal()
        self._before = termios.tcgetattr(self._ours)
        self._its, inside = os.openpty()
        try:
            os.set_blocking(self._its, False)
            termios.tcsetattr(inside, termios.TCSANOW, self._before)
            self._forward_size()
            with explain_start_errors(argv[0], folder):
                self._popen = subprocess.Popen(  # noqa: S603 - argv built here, no shell
                    list(argv),
                    stdin=inside,
                    stdout=inside,
                    stderr=inside,
                    env=dict(environment),
                    cwd=folder,
                    start_new_session=True,
                    preexec_fn=session_leader.make_session_leader(keep),  # noqa: PLW1509 - we have no other threads
                )
        except BaseException:
            self._close_terminal()
            raise
        finally:
            os.close(inside)
        self._typed = _ByteCopier(self._ours, self._its)
        self._shown = _ByteCopier(self._its, self._ours)

    @property
    def pid(self) -> int:
        """Pid of the session leader, which stops and exits with the program."""
        return self._popen.pid

    @property
    def code(self) -> int:
        if self._code is None:
            raise AgentError("the agent is still running")
        return self._code

    @property
    def errors(self) -> str:
        """The last text printed without cursor control, such as an error message.

        The rest of the screen is the conversation, which does not explain why the program failed.
        """
        tail = _DRAWN.split(self._shown.last.decode("utf-8", "replace"))[-1]
        return _ESCAPES.sub("", tail).replace("\r", "")

    def follow(self, every: float) -> Generator[None, None, None]:
        """Connect the program to our terminal, and yield None repeatedly until it exits."""
        try:
            with _SignalPipe() as noticed, self._lend_terminal():
                while not (status := session_leader.poll_child(self._popen.pid)) or _is_stopped(
                    status
                ):
                    if status:
                        self._suspend_with_child()
                    self._copy_bytes(noticed, every)
                    received = noticed.take()
                    if signal.SIGCONT in received:
                        self._take_terminal()  # another process may have changed the mode
                    if received & {signal.SIGCONT, signal.SIGWINCH}:
                        self._forward_size()
                    if received & noticed.ending:
                        self.ask_to_end()
                    if self._adopts:
                        launch_processes.reap_adopted(but=self._popen.pid)
                    yield None
                self._shown.drain(TERMINAL_DRAIN_SECONDS)
                if status.si_code != os.CLD_EXITED:
                    self._shown.say(_CALM, TERMINAL_DRAIN_SECONDS)
        finally:
            self._reap_child()

    def ask_to_end(self) -> None:
        self._signal_leader(session_leader.END_SIGNAL)

    def kill(self) -> None:
        self._signal_leader(session_leader.KILL_SIGNAL)

    def _copy_bytes(self, noticed: "_SignalPipe", every: float) -> None:
        ways = (self._typed, self._shown)
        # `poll` does not support terminals on macOS.
        readable, writable, _ = select.select(
            [noticed.pipe, *(way.source for way in ways if way.has_room_for_more)],
            [way.sink for way in ways if way.rest],
            [],
            every,
        )
        for way in ways:
            if way.source in readable:
                way.read()
            elif way.sink in writable:
                way.write()

    def _suspend_with_child(self) -> None:
        """Give the terminal back to our parent after Ctrl-Z, until `fg`."""
        self._shown.drain(TERMINAL_DRAIN_SECONDS)
        self._return_terminal()
        # Signal the whole group, as Ctrl-Z does, because a shell waits for every process in a job.
        # This process stops here. If nothing could continue us, the kernel ignores the signal and
        # the program keeps running.
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        self._take_terminal()
        self._forward_size()
        os.kill(self._popen.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def _lend_terminal(self) -> Iterator[None]:
        try:
            self._take_terminal()
            yield
        finally:
            self._return_terminal()

    def _take_terminal(self) -> None:
        """Switch our terminal to raw mode. In the background, this suspends us until `fg`."""
        with contextlib.suppress(termios.error):  # our terminal was closed, and SIGHUP will follow
            tty.setraw(self._ours, termios.TCSANOW)

    def _return_terminal(self) -> None:
        with contextlib.suppress(termios.error):  # our terminal was closed
            termios.tcsetattr(self._ours, termios.TCSANOW, self._before)

    def _forward_size(self) -> None:
        """Copy our terminal's size. The kernel notifies the program if it changes."""
        with contextlib.suppress(OSError):  # our terminal was closed
            size = fcntl.ioctl(self._ours, termios.TIOCGWINSZ, bytes(_SIZE_BYTES))
            fcntl.ioctl(self._its, termios.TIOCSWINSZ, size)

    def _signal_leader(self, number: signal.Signals) -> None:
        """Signal the leader, even if it is stopped.

        The leader has not been reaped, so its pid cannot have been reused.
        """
        if self._code is None:
            for to_send in (number, signal.SIGCONT):
                os.kill(self._popen.pid, to_send)

    def _reap_child(self) -> None:
        if self._code is None:
            self.kill()  # the caller may have stopped reading
            self._code = self._popen.wait()
            self._close_terminal()

    def _close_terminal(self) -> None:
        os.close(self._its)
        os.close(self._ours)


class TerminalProcesses(HostProcesses):
    """Starts programs that use our terminal and get their prompt as an argument.

    Raises:
        AgentError: There is no terminal. This is raised before anything is started.
    """

    def __init__(self, *, keep: Sequence[str] = (), adopts: bool = False) -> None:
        super().__init__(keep=keep, adopts=adopts)
        os.close(_open_terminal())

    def start(
        self,
        argv: Sequence[str],
        *,
        prompt: str,  # noqa: ARG002 - see the class
        environment: Mapping[str, str],
        folder: str,
    ) -> TerminalChild:
        self._prepare()
        return TerminalChild(
            argv, environment=environment, folder=folder, keep=self._keep, adopts=self._adopts
        )


class _ByteCopier:
    """Copies bytes in one direction, never reading more than can be written."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.rest = b""
        self.last = b""
        self._is_over = False

    @property
    def has_room_for_more(self) -> bool:
        return not self.rest and not self._is_over

    def read(self) -> None:
        try:
            self.rest = os.read(self.source, _PIECE_BYTES)
            self._is_over = not self.rest
        except BlockingIOError:
            return
        except OSError:  # the other side is closed
            self._is_over = True
        self.last = (self.last + self.rest)[-STDERR_BYTES:]
        self.write()

    def write(self) -> None:
        try:
            self.rest = self.rest[os.write(self.sink, self.rest) :]
        except BlockingIOError:
            return
        except OSError:  # drop the bytes, because the terminal was closed
            self.rest = b""

    def drain(self, seconds: float) -> None:
        """Copy the remaining bytes, within the time limit."""
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 0:
            if self.rest:
                select.select([], [self.sink], [], remaining)
                self.write()
            elif self.has_room_for_more and select.select([self.source], [], [], 0)[0]:
                self.read()
            else:
                return

    def say(self, words: bytes, seconds: float) -> None:
        """Write Rekindle's own bytes after all other bytes."""
        self.rest += words
        self._is_over = True
        self.drain(seconds)


class _SignalPipe:
    """A pipe for received signals, so that `select` can wait for them too."""

    _ALWAYS = (signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT)

    def __enter__(self) -> Self:
        # Without a handler, these signals would kill us before the terminal is restored.
        self.ending = {
            number
            for number in stop_signals.ENDING_SIGNALS
            if signal.getsignal(number) is signal.SIG_DFL
        }
        self.pipe, self._write = os.pipe()
        for end in (self.pipe, self._write):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, lambda *_: None)
            for number in (*self._ALWAYS, *self.ending)
        }
        return self

    def __exit__(self, *exc: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self.pipe)
        os.close(self._write)

    def take(self) -> set[int]:
        try:
            return set(os.read(self.pipe, _PIECE_BYTES))
        except BlockingIOError:
            return set()


def _is_stopped(status: os.waitid_result) -> bool:
    return status.si_code == os.CLD_STOPPED


def _open_terminal() -> int:
    """Open our own non-blocking descriptor, because the inherited one is shared."""
    if os.isatty(0) and os.isatty(1):
        with contextlib.suppress(OSError):
            return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    raise AgentError(
        "an agent with `mode: stay` needs a terminal",
        hint="start it in a terminal or in a tmux window (`rekindle up --tmux`)",
    )
