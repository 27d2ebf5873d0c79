"""Run the main program to tell a new session about the state of the work."""

import os
import sys

from rekindle.hook.special_events import PRIMED_EVENTS
from rekindle.hook.timeouts import PRIMING_SECONDS, call_after, exit_now


def needs_primer(event: str, launch: str) -> bool:
    """Return whether to start the main program, to prime the session or write a checkpoint.

    A launch's prompt contains the state of the work, which only a compaction removes. A checkpoint
    is written before each compaction. A person's own session next to a supervised one is not
    primed. A resumed or forked session was primed before.
    """
    if launch == "visitor":
        return False
    if event == "PreCompact":
        return True
    if launch:
        return event == "SessionStart:compact"
    return event in PRIMED_EVENTS


def prime_session(folder: str, record: bytes) -> None:
    """Prime the session with the main program. Reading the log is too slow for a tool call."""
    start_program("rekindle.wiring.hook_primer", folder, record)


def start_program(module: str, argument: str, data: bytes) -> None:
    """Run one of Rekindle's modules when a session starts, with `data` as its input."""
    reader, writer = os.pipe()
    argv = [sys.executable, "-I", "-m", module, argument]
    dup = (os.POSIX_SPAWN_DUP2, reader, 0)
    close = (os.POSIX_SPAWN_CLOSE, writer)
    hush = (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)
    # Renew the timeout first. An older one could fire after the start and leave the program
    # running.
    call_after(PRIMING_SECONDS, exit_now)
    child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=[dup, close, hush])

    def give_up(*_: object) -> None:
        os.kill(child, 9)  # the child has not been waited for, so its pid is not reused
        os._exit(0)

    call_after(PRIMING_SECONDS, give_up)
    os.close(reader)
    os.write(writer, data)
    os.close(writer)
    os.waitpid(child, 0)
