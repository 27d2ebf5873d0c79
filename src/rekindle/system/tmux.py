"""tmux, driven by its own command: a window for each agent."""

import subprocess
from collections.abc import Mapping, Sequence

from rekindle.errors import AgentError, UsageError
from rekindle.system import programs
from rekindle.thresholds.running import TMUX_SECONDS


def new_window(
    session: str, name: str, folder: str, argv: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run a program in a window of its own; the session is made where there is none.

    Given as several words, tmux starts the program itself and no shell. Without an environment of
    its own, it would have what the tmux server was started with, by whomever and whenever. It goes
    there by a pipe: there are keys in it, and anybody can read a command line.
    """
    tmux = programs.find("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it, or leave --tmux out")
    given = [word for pair in environment.items() for word in ("-e", "=".join(pair))]
    window = ["-n", name, "-c", folder, *given, *argv]
    if _run([tmux, "has-session", "-t", f"={session}"]).returncode == 0:
        words = ["new-window", "-d", "-t", f"={session}:", *window]
    else:
        words = ["new-session", "-d", "-s", session, *window]
    ran = _run([tmux, "start-server", ";", "source-file", "-"], " ".join(map(_quoted, words)))
    if ran.returncode != 0:
        raise AgentError(
            f"tmux could not open a window: {ran.stderr.decode('utf-8', 'replace').strip()}",
            hint="start the agent yourself, with `rekindle run`",
        )


def _quoted(word: str) -> str:
    """As tmux reads it: within single quotes everything stands for itself."""
    return "'" + word.replace("'", "'\\''") + "'"


def _run(argv: Sequence[str], said: str = "") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - an argv of our own making
        list(argv),
        capture_output=True,
        check=False,
        timeout=TMUX_SECONDS,
        input=said.encode("utf-8", "surrogateescape"),
    )
