"""tmux, driven by its own command: a window for each agent."""

import shutil
import subprocess
from collections.abc import Sequence

from rekindle.errors import AgentError, UsageError

_SECONDS = 10.0


def new_window(session: str, name: str, folder: str, argv: Sequence[str]) -> None:
    """Run a program in a window of its own; the session is made where there is none.

    Given as several words, tmux starts the program itself and no shell.
    """
    tmux = shutil.which("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it, or leave --tmux out")
    window = ["-n", name, "-c", folder, *argv]
    if _run([tmux, "has-session", "-t", f"={session}"]).returncode == 0:
        ran = _run([tmux, "new-window", "-d", "-t", f"={session}:", *window])
    else:
        ran = _run([tmux, "new-session", "-d", "-s", session, *window])
    if ran.returncode != 0:
        raise AgentError(
            f"tmux could not open a window: {ran.stderr.decode('utf-8', 'replace').strip()}",
            hint="start the agent yourself, with `rekindle run`",
        )


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - an argv of our own making
        list(argv), capture_output=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL
    )
