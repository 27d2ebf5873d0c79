"""Start a program that outlives this process, in its own session and with its output in a file."""

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
    """Start a program and return its pid once it is running; raise OSError if it cannot start.

    The program is started by a child that exits at once, so that the system's first process becomes
    its parent and reaps it. It never becomes a zombie of this process.
    """
    output_fd = open_output(output)

    def become(say: LineReporter) -> None:
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
        os._exit(0)  # before Python warns about a child that was not waited for

    try:
        between = ForkedChild(become)
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
    """Open a file for a program's output; if the file is long, keep only its end."""
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
    """Cut the file to its end, starting at a complete line.

    The file is cut in place, so that a program that is still writing can continue to use it; output
    written between the read and the truncation is lost. That is acceptable, because this output is
    only for people, and the log is authoritative.
    """
    size = os.fstat(fd).st_size
    if size > OUTPUT_BYTES:
        tail = os.pread(fd, OUTPUT_KEPT_BYTES, size - OUTPUT_KEPT_BYTES)
        os.ftruncate(fd, 0)
        os.write(fd, tail[tail.find(b"\n") + 1 :])
