"""Run the full program to give a new session the state of the work."""

import os
import sys

from rekindle.hook.special_events import PRIMED_EVENTS
from rekindle.hook.timeouts import PRIMING_SECONDS, call_after, exit_now


def needs_primer(event: str, launch: str) -> bool:
    """Return whether the session needs the state of the work, or must write a checkpoint first.

    A launch's prompt contains the state, which is lost only in a compaction. A checkpoint is
    written before a compaction. A person's own session does not need the state. A resumed or forked
    session has received it before.
    """
    if launch == "visitor":
        return False
    if event == "PreCompact":
        return True
    if launch:
        return event == "SessionStart:compact"
    return event in PRIMED_EVENTS


def prime_session(folder: str, record: bytes) -> None:
    """Prime the session with the full program. Reading the log takes too long for a tool call."""
    start_program("rekindle.wiring.hook_primer", folder, record)


def start_program(module: str, argument: str, data: bytes) -> None:
    """Run one of the package's modules for a starting session, with `data` as its input."""
    reader, writer = os.pipe()
    argv = [sys.executable, "-I", "-m", module, argument]
    dup = (os.POSIX_SPAWN_DUP2, reader, 0)
    close = (os.POSIX_SPAWN_CLOSE, writer)
    hush = (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)
    # Set this before the start, because a timeout after the start would leave the program running.
    call_after(PRIMING_SECONDS, exit_now)
    child = os.posix_spawn(sys.executable, argv, os.environ, file_actions=[dup, close, hush])

    def give_up(*_: object) -> None:
        os.kill(
            child, 9
        )  # our own child has not been waited for, so its pid cannot have been reused
        os._exit(0)

    call_after(PRIMING_SECONDS, give_up)
    os.close(reader)
    os.write(writer, data)
    os.close(writer)
    os.waitpid(child, 0)
