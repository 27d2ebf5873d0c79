"""A program that goes on without us: in its own session, nobody's child, its words in a file."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rekindle.errors import AgentError, storing
from rekindle.system import disk
from rekindle.system.children import Child, Say
from rekindle.thresholds.running import DETACHED_START_SECONDS, OUTPUT_BYTES, OUTPUT_KEPT_BYTES


def start(argv: Sequence[str], *, environment: Mapping[str, str], folder: str, output: Path) -> int:
    """Start it and return its number, once it has become the program; OSError: it could not.

    A child of a child: when that has ended, which is at once, the system's first process waits for
    it. Its end leaves no entry behind here, however long we live.
    """
    words = open_output(output)

    def become(say: Say) -> None:
        started = subprocess.Popen(  # noqa: S603 - an argv of our own making
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        say(str(started.pid))
        os._exit(0)  # before Python complains that nobody waits for it

    try:
        between = Child(become)
    finally:
        os.close(words)
    try:
        said = between.hear(1, DETACHED_START_SECONDS)
        if said:
            return int(said[0])
        if between.errno:
            raise OSError(between.errno, os.strerror(between.errno))
        raise AgentError(
            f"{argv[0]} could not be started: {between.error or 'it did not answer'}",
            hint="look at `env:` and `command:` in rekindle.yaml",
        )
    finally:
        between.close()


def open_output(path: Path) -> int:
    """Open a file for what a program prints, cut to its end if it is long."""
    with storing(path):
        fd = disk.open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            os.fchmod(fd, disk.FILE_MODE)
            _cut(fd)
        except BaseException:
            os.close(fd)
            raise
    return fd


def _cut(fd: int) -> None:
    """Keep the end, from the beginning of a line on.

    In its place, so that whoever still writes into it goes on there; what it writes between the
    reading and the cutting is lost. These are words for people: the truth stands in the log.
    """
    size = os.fstat(fd).st_size
    if size > OUTPUT_BYTES:
        kept = os.pread(fd, OUTPUT_KEPT_BYTES, size - OUTPUT_KEPT_BYTES)
        os.ftruncate(fd, 0)
        os.write(fd, kept[kept.find(b"\n") + 1 :])
