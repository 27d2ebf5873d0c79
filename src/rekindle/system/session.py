"""A session of its own for a program on a terminal, and the process that leads it.

The leader stands between us and the program: were the program our own child, its group would have
nobody beside it in its session, and in such a group the kernel lets Ctrl-Z stop nobody. The leader
does what the program does, it stops when it stops and ends as it ended; so who waits for the
leader knows all that there is to know.
"""

import contextlib
import fcntl
import os
import resource
import signal
import termios
from collections.abc import Callable, Sequence
from typing import NoReturn

from rekindle.system import kernel, orphans, signals

END, KILL = signal.SIGTERM, signal.SIGUSR1
"""What the leader is told, so that the program is asked to end, or killed."""

_PASSED_ON = {END: signal.SIGTERM, signal.SIGHUP: signal.SIGHUP, KILL: signal.SIGKILL}
_AWAITED = frozenset({signal.SIGCHLD, *_PASSED_ON})


def led(keep: Sequence[str] = ()) -> Callable[[], None]:
    """For a child in a new session, before it becomes a program: it stays as the leader.

    What returns, and becomes the program, is a child of its own in the foreground of the terminal
    that its standard input is. `keep`: patterns of what no signal to its group is for.
    """
    end_with_us = _end_with_parent()

    def begin() -> None:
        end_with_us()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # Awaited, and not handled: what came between two instructions would else go unseen.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        end_with_leader = _end_with_parent()
        if program := os.fork():
            _lead(program, keep)
        signals.end_at_once()
        os.setpgid(0, 0)
        # It is in the background until it has said this, and would be stopped for saying it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        os.tcsetpgrp(0, os.getpgrp())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end_with_leader()

    return begin


def _end_with_parent() -> Callable[[], None]:
    return kernel.here.end_with_parent() or (lambda: None)


def look(child: int) -> os.waitid_result | None:
    """That it has ended, or that it was stopped since we looked; None where it just runs.

    An end is not waited for, so that the number stays its.
    """
    flags = os.WEXITED | os.WSTOPPED | os.WNOHANG
    found = os.waitid(os.P_PID, child, flags | os.WNOWAIT)
    if found and found.si_code == os.CLD_STOPPED:
        with contextlib.suppress(ChildProcessError):  # it was killed meanwhile: that is seen next
            os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG)
    return found


def _lead(program: int, keep: Sequence[str]) -> NoReturn:
    try:
        # Our locks among them: they must not outlive us. The terminal stays open: without anybody
        # who has it so, its other side would read its end while the program still lives.
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        # By default it is ignored, and not every system has one wait for what is ignored.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with contextlib.suppress(OSError):  # it did so itself, and may be the program already
            os.setpgid(program, program)
        while True:
            number = signal.sigwait(_AWAITED)
            if number in _PASSED_ON:
                _tell(program, _PASSED_ON[signal.Signals(number)], keep)
                _tell(program, signal.SIGCONT)  # what is stopped hears nothing else but a kill
            elif (found := look(program)) and found.si_code == os.CLD_STOPPED:
                os.kill(os.getpid(), signal.SIGSTOP)  # until we are continued
                _tell(program, signal.SIGCONT)
            elif found:
                # The rest of its group; while it has not been waited for, the number is surely its.
                _tell(program, signal.SIGKILL, keep)
                os.waitpid(program, 0)
                _end_like(found)
    finally:
        os._exit(1)


def _tell(program: int, number: signal.Signals, keep: Sequence[str] = ()) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        orphans.signal_group(program, number, keep)


def _end_like(ended: os.waitid_result) -> None:
    if ended.si_code == os.CLD_EXITED:
        os._exit(ended.si_status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left one, where it was to
    with contextlib.suppress(OSError):  # SIGKILL cannot be set, and is always this
        signal.signal(ended.si_status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {ended.si_status})
    os.kill(os.getpid(), ended.si_status)
