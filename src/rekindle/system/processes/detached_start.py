"""Start a program that keeps running after this process exits, with its output in a file."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rekindle.errors import (
    AgentError,
    translate_os_errors,
)
from rekindle.system.files import durable_files
from rekindle.system.processes.forked_worker import (
    ForkedChild,
    LineReporter,
)
from rekindle.thresholds.supervision import (
    DETACHED_START_SECONDS,
    OUTPUT_BYTES,
    OUTPUT_KEPT_BYTES,
)


def start_detached_program(
    argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path
) -> int:
    """Start a program and return its pid.

    Raises OSError if the program cannot be started. An intermediate child starts it and exits, so
    that init becomes its parent and reaps it.
    """
    output_fd = open_output(output)

    def become_program(say: LineReporter) -> None:
        started = subprocess.Popen(  # noqa: S603 - argv built here, no shell
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output_fd,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        say(str(started.pid))
        os._exit(0)  # avoids Python's warning about a child that was not waited for

    try:
        between = ForkedChild(become_program)
    finally:
        os.close(output_fd)
    try:
        lines = between.read_lines(1, DETACHED_START_SECONDS)
        if lines:
            return int(lines[0])
        if between.errno:
            raise OSError(between.errno, os.strerror(between.errno))
        raise AgentError(
            f"{argv[0]} could not be started: {between.error or 'it did not answer'}",
            hint="check `env:` and `command:` in rekindle.yaml",
        )
    finally:
        between.close()


def open_output(path: Path) -> int:
    """Open a file for a program's output. If the file is long, keep only its end."""
    with translate_os_errors(path):
        fd = durable_files.open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            os.fchmod(fd, durable_files.FILE_MODE)
            _keep_end(fd)
        except BaseException:
            os.close(fd)
            raise
    return fd


def _keep_end(fd: int) -> None:
    """Truncate a file to its last complete lines.

    The file is changed in place, because a program may still be writing to it. Output that arrives
    in between is lost, which is acceptable: the log has everything important.
    """
    size = os.fstat(fd).st_size
    if size > OUTPUT_BYTES:
        tail = os.pread(fd, OUTPUT_KEPT_BYTES, size - OUTPUT_KEPT_BYTES)
        os.ftruncate(fd, 0)
        os.write(fd, tail[tail.find(b"\n") + 1 :])
