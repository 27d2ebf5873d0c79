"""Run a program in a separate session, under a leader process.

If the program were our direct child, its process group would be alone in its session, and the
kernel does not let Ctrl-Z stop such an orphaned group. The leader mirrors the program: it stops
when the program stops, and exits the way the program exits, so waiting for the leader is enough.
"""

import contextlib
import fcntl
import os
import resource
import signal
import termios
from collections.abc import Callable, Sequence
from typing import NoReturn

from rekindle.system.processes import (
    launch_processes,
    process_api,
    stop_signals,
)

END_SIGNAL, KILL_SIGNAL = signal.SIGTERM, signal.SIGUSR1
"""Signals that make the leader end or kill the program."""

_PASSED_ON = {END_SIGNAL: signal.SIGTERM, signal.SIGHUP: signal.SIGHUP, KILL_SIGNAL: signal.SIGKILL}
_AWAITED = frozenset({signal.SIGCHLD, *_PASSED_ON})


def make_session_leader(keep: Sequence[str] = ()) -> Callable[[], None]:
    """Return a function that a child in a new session calls before it runs the program.

    The child stays as the leader. The function returns in a grandchild, which becomes the program
    in the foreground of the terminal. `keep` lists patterns for processes that signals to the group
    must spare.
    """
    end_with_us = _end_with_parent()

    def become_leader() -> None:
        end_with_us()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # Block signals and wait for them: a handler could miss one that arrives just before the
        # wait.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        end_with_leader = _end_with_parent()
        if program := os.fork():
            _run_leader(program, keep)
        stop_signals.reset_signals()
        os.setpgid(0, 0)
        # The program is still in the background, and calling tcsetpgrp would stop it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        os.tcsetpgrp(0, os.getpgrp())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end_with_leader()

    return become_leader


def _end_with_parent() -> Callable[[], None]:
    return process_api.here.end_with_parent() or (lambda: None)


def poll_child(child: int) -> os.waitid_result | None:
    """Return the state of a child that has exited or stopped, or None if it is running.

    An exited child is not reaped, so that its pid stays reserved.
    """
    flags = os.WEXITED | os.WSTOPPED | os.WNOHANG
    status = os.waitid(os.P_PID, child, flags | os.WNOWAIT)
    if status and status.si_code == os.CLD_STOPPED:
        with contextlib.suppress(
            ChildProcessError
        ):  # the child was just killed; the next call reports that
            os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG)
    return status


def _run_leader(program: int, keep: Sequence[str]) -> NoReturn:
    try:
        # Close inherited descriptors, including our locks, which must not outlive us. Keep the
        # terminal open: otherwise its other side would see end-of-file while the program is
        # running.
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        # SIGCHLD is ignored by default, and some systems cannot wait for an ignored signal.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with contextlib.suppress(OSError):  # the child may have done this already
            os.setpgid(program, program)
        while True:
            number = signal.sigwait(_AWAITED)
            if number in _PASSED_ON:
                _send_signal(program, _PASSED_ON[signal.Signals(number)], keep)
                _send_signal(program, signal.SIGCONT)  # a stopped program would not react
            elif (status := poll_child(program)) and status.si_code == os.CLD_STOPPED:
                os.kill(os.getpid(), signal.SIGSTOP)  # wait here until continued
                _send_signal(program, signal.SIGCONT)
            elif status:
                # Kill the rest of the group. The program has not been reaped, so its pid is still
                # ours.
                _send_signal(program, signal.SIGKILL, keep)
                os.waitpid(program, 0)
                _end_like(status)
    finally:
        os._exit(1)


def _send_signal(program: int, number: signal.Signals, keep: Sequence[str] = ()) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        launch_processes.signal_group(program, number, keep)


def _end_like(ended: os.waitid_result) -> None:
    if ended.si_code == os.CLD_EXITED:
        os._exit(ended.si_status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has already dumped core
    with contextlib.suppress(OSError):  # SIGKILL cannot have a handler
        signal.signal(ended.si_status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {ended.si_status})
    os.kill(os.getpid(), ended.si_status)
