"""A program on a terminal of its own, shown on ours: the person who sits there talks to it alone.

What is typed goes to the program as bytes, Ctrl-C and Ctrl-Z among them: its own terminal makes
signals of them, for it and not for us.
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

from rekindle.errors import AgentError, NoTerminalError
from rekindle.system import orphans, session, signals
from rekindle.system.processes import Processes, starting
from rekindle.thresholds.running import STDERR_BYTES, TERMINAL_DRAIN_SECONDS

_PIECE_BYTES = 64 * 1024
_SIZE_BYTES = 8  # struct winsize: rows, columns, and both in pixels
_CALM = (
    b"\x1b[?47l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m"
)
"""What a program that was killed could not take back: another screen, reports of the mouse, of the
focus and of what is pasted, a hidden cursor, colours."""
_DRAWN = re.compile(r"\x1b\[[0-9;]*[A-HJKSTdf]")
"""The cursor is moved, or a part of the screen is cleared."""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])")


class TerminalChild:
    """A program in the foreground of a terminal of its own; it ends when we do."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        keep: Sequence[str] = (),
        adopts: bool = False,
    ) -> None:
        """`keep`: patterns of what no signal to its group is for; `adopts`: we get its orphans."""
        self._adopts = adopts
        self._code: int | None = None
        self._ours = _our_terminal()
        self._before = termios.tcgetattr(self._ours)
        self._its, inside = os.openpty()
        try:
            os.set_blocking(self._its, False)
            termios.tcsetattr(inside, termios.TCSANOW, self._before)
            self._pass_size_on()
            with starting(argv[0], folder):
                self._popen = subprocess.Popen(  # noqa: S603 - an argv of our own making
                    list(argv),
                    stdin=inside,
                    stdout=inside,
                    stderr=inside,
                    env=dict(environment),
                    cwd=folder,
                    start_new_session=True,
                    preexec_fn=session.led(keep),  # noqa: PLW1509 - we have no other threads
                )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(inside)
        self._typed = _Way(self._ours, self._its)
        self._shown = _Way(self._its, self._ours)

    @property
    def pid(self) -> int:
        """Of the leader, who does what the program does."""
        return self._popen.pid

    @property
    def code(self) -> int:
        if self._code is None:
            raise AgentError("the agent still runs")
        return self._code

    @property
    def errors(self) -> str:
        """What it wrote behind all that it drew: so a program says why it cannot start, or go on.

        What it has drawn is a conversation, and no account of how it ended.
        """
        said = _DRAWN.split(self._shown.last.decode("utf-8", "replace"))[-1]
        return _ESCAPES.sub("", said).replace("\r", "")

    def follow(self, every: float) -> Generator[None, None, None]:
        """None, again and again, until it has ended; meanwhile our terminal is the program's."""
        try:
            with _Noticed() as noticed, self._lent():
                while not (found := session.look(self._popen.pid)) or _is_stopped(found):
                    if found:
                        self._stop_too()
                    self._copy(noticed, every)
                    came = noticed.take()
                    if signal.SIGCONT in came:
                        self._take()  # whoever had the terminal meanwhile has set it for itself
                    if came & {signal.SIGCONT, signal.SIGWINCH}:
                        self._pass_size_on()
                    if came & noticed.ending:
                        self.ask_to_end()
                    if self._adopts:
                        orphans.reap_adopted(but=self._popen.pid)
                    yield None
                self._shown.drain(TERMINAL_DRAIN_SECONDS)
                if found.si_code != os.CLD_EXITED:
                    self._shown.say(_CALM, TERMINAL_DRAIN_SECONDS)
        finally:
            self._reap()

    def ask_to_end(self) -> None:
        self._tell(session.END)

    def kill(self) -> None:
        self._tell(session.KILL)

    def _copy(self, noticed: "_Noticed", every: float) -> None:
        ways = (self._typed, self._shown)
        # Not a poll: of terminals, macOS tells nothing to who asks another way.
        readable, writable, _ = select.select(
            [noticed.pipe, *(way.source for way in ways if way.wants_more)],
            [way.sink for way in ways if way.rest],
            [],
            every,
        )
        for way in ways:
            if way.source in readable:
                way.read()
            elif way.sink in writable:
                way.write()

    def _stop_too(self) -> None:
        """Stopped, by Ctrl-Z: whoever started us is to have the terminal, until `fg`."""
        self._shown.drain(TERMINAL_DRAIN_SECONDS)
        self._give_back()
        # The whole group, as Ctrl-Z would: a shell waits for all of a job. Here we stand still.
        # Where nobody could continue us the kernel passes it over, and the program just goes on.
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        self._take()
        self._pass_size_on()
        os.kill(self._popen.pid, signal.SIGCONT)

    @contextlib.contextmanager
    def _lent(self) -> Iterator[None]:
        try:
            self._take()
            yield
        finally:
            self._give_back()

    def _take(self) -> None:
        """Every byte as it is typed. In the background we are stopped here, until `fg`."""
        with contextlib.suppress(termios.error):  # our terminal is gone: SIGHUP tells us
            tty.setraw(self._ours, termios.TCSANOW)

    def _give_back(self) -> None:
        with contextlib.suppress(termios.error):  # as above
            termios.tcsetattr(self._ours, termios.TCSANOW, self._before)

    def _pass_size_on(self) -> None:
        """The kernel tells the program, where it has changed."""
        with contextlib.suppress(OSError):  # as above
            size = fcntl.ioctl(self._ours, termios.TIOCGWINSZ, bytes(_SIZE_BYTES))
            fcntl.ioctl(self._its, termios.TIOCSWINSZ, size)

    def _tell(self, number: signal.Signals) -> None:
        """To its leader, also a stopped one; before we have waited the number is surely its."""
        if self._code is None:
            for each in (number, signal.SIGCONT):
                os.kill(self._popen.pid, each)

    def _reap(self) -> None:
        if self._code is None:
            self.kill()  # whoever followed may have given up
            self._code = self._popen.wait()
            self._close()

    def _close(self) -> None:
        os.close(self._its)
        os.close(self._ours)


class OnTerminal(Processes):
    """The same processes, but what is started gets our terminal; its prompt is in its words.

    Raises:
        NoTerminalError: There is none; said before anything is begun.
    """

    def __init__(self, *, keep: Sequence[str] = (), adopts: bool = False) -> None:
        super().__init__(keep=keep, adopts=adopts)
        os.close(_our_terminal())

    def start(
        self,
        argv: Sequence[str],
        *,
        prompt: str,  # noqa: ARG002 - as said above
        environment: Mapping[str, str],
        folder: str,
    ) -> TerminalChild:
        self._prepare()
        return TerminalChild(
            argv, environment=environment, folder=folder, keep=self._keep, adopts=self._adopts
        )


class _Way:
    """Bytes in one direction; no more are taken than the other side has room for."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self.rest = b""
        self.last = b""
        self._is_over = False

    @property
    def wants_more(self) -> bool:
        return not self.rest and not self._is_over

    def read(self) -> None:
        try:
            self.rest = os.read(self.source, _PIECE_BYTES)
            self._is_over = not self.rest
        except BlockingIOError:
            return
        except OSError:  # nobody is at the other side any more
            self._is_over = True
        self.last = (self.last + self.rest)[-STDERR_BYTES:]
        self.write()

    def write(self) -> None:
        try:
            self.rest = self.rest[os.write(self.sink, self.rest) :]
        except BlockingIOError:
            return
        except OSError:  # a terminal that is gone: what was for it is for nobody
            self.rest = b""

    def drain(self, seconds: float) -> None:
        """What is there already, and no more than there is time for."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.rest:
                select.select([], [self.sink], [], left)
                self.write()
            elif self.wants_more and select.select([self.source], [], [], 0)[0]:
                self.read()
            else:
                return

    def say(self, words: bytes, seconds: float) -> None:
        """Something of our own, behind all else."""
        self.rest += words
        self._is_over = True
        self.drain(seconds)


class _Noticed:
    """Signals that came, as something that can be waited for together with terminals."""

    _ALWAYS = (signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT)

    def __enter__(self) -> Self:
        # Those that would end us and leave the terminal as it is; who handles them is told by us.
        self.ending = {
            number for number in signals.ENDING if signal.getsignal(number) is signal.SIG_DFL
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


def _is_stopped(found: os.waitid_result) -> bool:
    return found.si_code == os.CLD_STOPPED


def _our_terminal() -> int:
    """Opened anew, so that it need not block us: others have the one that we were given, too."""
    if os.isatty(0) and os.isatty(1):
        with contextlib.suppress(OSError):
            return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    raise NoTerminalError
