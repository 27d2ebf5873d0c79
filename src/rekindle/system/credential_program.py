"""Run a host's credential helper, a program that prints short-lived credentials for a launch."""

import errno
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rekindle.errors import CredentialsError
from rekindle.system.processes import launch_processes, program_search
from rekindle.thresholds.credential_limits import CREDENTIAL_BYTES, CREDENTIAL_SECONDS


def run_helper(program: str, request: bytes, environment: Mapping[str, str]) -> bytes:
    """Return the helper's output. Its error output goes to that of this process.

    Raises:
        CredentialsError: The helper cannot be started, failed, took too long or printed too much.
    """
    try:
        _check_program(program)
        with launch_processes.START_LOCK:
            child = subprocess.Popen(  # noqa: S603 - the operator's program, no shell
                [*program_search.find_end_with_parent(), program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=dict(environment),
                start_new_session=True,
            )
            launch_processes.UNRELATED_CHILDREN.add(child.pid)
    except OSError as error:
        reason = f"cannot be started: {error.strerror or error}"
        raise CredentialsError(
            program, reason, hint="check that the file exists and is executable"
        ) from error
    try:
        return _read_output(program, child, request)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        launch_processes.UNRELATED_CHILDREN.discard(child.pid)


def _check_program(program: str) -> None:
    """Check that a program can be executed, which `setpriv` would only report with its exit code.

    Raises:
        OSError: It cannot be executed.
    """
    if Path(program).is_dir() or not os.access(program, os.X_OK):
        number = errno.EACCES if Path(program).exists() else errno.ENOENT
        raise OSError(number, os.strerror(number))


def _read_output(program: str, child: "subprocess.Popen[bytes]", request: bytes) -> bytes:
    if child.stdin is None or child.stdout is None:
        raise CredentialsError(program, "has no output")
    with suppress(BrokenPipeError):  # it need not read the request
        child.stdin.write(request)
        child.stdin.close()
    deadline = time.monotonic() + CREDENTIAL_SECONDS
    data = b""
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        if not select.select([child.stdout], [], [], left)[0]:
            raise CredentialsError(program, f"took longer than {CREDENTIAL_SECONDS:g} s")
        piece = os.read(child.stdout.fileno(), CREDENTIAL_BYTES)
        data += piece
        if len(data) > CREDENTIAL_BYTES:
            raise CredentialsError(program, f"printed more than {CREDENTIAL_BYTES:,} bytes")
        if not piece:
            break
    try:
        code = child.wait(max(deadline - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired as error:
        words = f"took longer than {CREDENTIAL_SECONDS:g} s"
        raise CredentialsError(program, words) from error
    if code:
        raise CredentialsError(program, f"failed with exit code {code}")
    return data
