"""Commands on a real terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path


def run_on_terminal(
    *words: str, keys: bytes | None = None, cwd: Path | None = None
) -> tuple[int, bytes]:
    """Run a command on its own terminal; return its exit code and the terminal's output.

    Without `keys`, its standard input is empty.
    """
    controller, terminal = pty.openpty()
    os.write(controller, keys or b"")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "rekindle", *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL if keys is None else terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    received = b""
    try:
        while piece := os.read(controller, 65536):
            received += piece
    except OSError:
        pass  # Linux reports the end of a terminal as EIO
    finally:
        os.close(controller)
    return process.wait(timeout=20), received
