"""Run a program as the only child of a container's first process.

    python -I -S container_init.py LIMITS PROGRAM...

The program's environment is in file descriptor 3, so that keys are never in a file. This process
passes signals on, reaps orphans, and exits like the program, which ends all others. If the program
failed and files in the folder LIMITS show that it reached a limit, it explains that on stderr. It
imports only what loads quickly.
"""

import os
import signal
import sys

_ENVIRONMENT = 3
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_KILLED_BY = 128
"""Added to a signal's number in an exit code."""
_REASONS = {
    "memory": (
        "oom_kill",
        "the agent reached the memory limit of its sandbox, so the kernel ended a process",
    ),
    "processes": ("max", "the agent reached the limit on processes of its sandbox"),
}
"""Counters in the files of a control group, and what they mean."""


def main(arguments: list[str]) -> None:
    limits, *program = arguments
    environment = read_environment()
    child = os.fork()
    if child == 0:
        try:
            os.execvpe(program[0], program, environment)  # noqa: S606 - the entry of the sandbox, no shell
        finally:
            os._exit(127)
    for name in _FORWARDED:
        signal.signal(getattr(signal, name), lambda number, _: os.kill(child, number))
    code = wait_for(child)
    reasons = list_reached(limits) if code else []
    for reason in reasons:
        sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    # After a signal, the supervisor would only report the signal, and not the reason.
    os._exit(1 if reasons and code > _KILLED_BY else code)


def read_environment() -> dict[bytes, bytes]:
    data = b""
    while piece := os.read(_ENVIRONMENT, 65_536):
        data += piece
    os.close(_ENVIRONMENT)
    pairs = (one.partition(b"=") for one in data.split(b"\0") if one)
    return {name: value for name, _, value in pairs}


def wait_for(child: int) -> int:
    """Reap all processes until the child ends, and return its exit code."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _KILLED_BY - code


def list_reached(folder: str) -> list[str]:
    """Return an explanation for each limit that was reached."""
    reached = []
    for name, (counter, reason) in _REASONS.items():
        try:
            with open(f"{folder}/{name}", encoding="ascii") as file:  # noqa: PTH123 - pathlib slows the start
                counts = dict(line.split() for line in file)
        except (OSError, ValueError):  # this limit is not set, or the host has no such counter
            continue
        if counts.get(counter, "0") != "0":
            reached.append(reason)
    return reached


if __name__ == "__main__":
    main(sys.argv[1:])
