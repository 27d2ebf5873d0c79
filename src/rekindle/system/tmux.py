"""tmux, driven by its own command: a window for each agent.

The socket is in the user's own Rekindle folder. The default one is in /tmp, where a sandboxed agent
can put a server of its own, which would be sent the operator's environment with the keys in it.
"""

import hashlib
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from rekindle.errors import AgentError, UsageError
from rekindle.system import host, programs, user_folder
from rekindle.thresholds.running import TMUX_SECONDS

_FOLDER = "tmux"
_SOCKET_BYTES = 103
"""Longest path of a socket that every system accepts: macOS 103, Linux 107."""
_INSTEAD = "start the agent yourself, with `rekindle run`"


def socket() -> Path:
    """Return the socket of the tmux server that has the agents' windows."""
    # Hosts can share a home: each of them has a server of its own.
    name = hashlib.blake2b(host.identify().encode(), digest_size=4).hexdigest()
    return user_folder.path() / _FOLDER / name


def attach_command(session: str) -> str:
    """Return what a person types in a shell to see the windows."""
    path = socket()
    try:
        shown = "~/" + shlex.quote(str(path.relative_to(Path.home())))
    except (ValueError, RuntimeError):  # HOME is elsewhere, or unknown
        shown = shlex.quote(str(path))
    return f"tmux -S {shown} attach -t {session}"


def new_window(
    session: str, name: str, folder: str, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run a program in a window of its own, and return its pid; the session is made if needed.

    Given as several words, tmux starts the program itself and no shell. Without an environment of
    its own, it would have what the tmux server was started with, by whomever and whenever. It goes
    there by a pipe: there are keys in it, and anybody can read a command line.
    """
    tmux = programs.find("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it, or leave --tmux out")
    path = socket()
    if len(bytes(path)) > _SOCKET_BYTES:
        raise UsageError(
            f"the path of the tmux socket is too long: {path}",
            hint="leave --tmux out; `rekindle events` shows what the agents do",
        )
    user_folder.make(_FOLDER)
    server = [tmux, "-S", str(path)]
    given = [word for pair in environment.items() for word in ("-e", "=".join(pair))]
    window = ["-P", "-F", "#{pane_pid}", "-n", name, "-c", folder, *given, *argv]
    if _run([*server, "has-session", "-t", f"={session}"]).returncode == 0:
        words = ["new-window", "-d", "-t", f"={session}:", *window]
    else:
        words = ["new-session", "-d", "-s", session, *window]
    ran = _run([*server, "start-server", ";", "source-file", "-"], " ".join(map(_quoted, words)))
    if ran.returncode != 0 or not ran.stdout.strip().isdigit():
        raise AgentError(
            f"tmux could not open a window: {ran.stderr.decode('utf-8', 'replace').strip()}",
            hint=_INSTEAD,
        )
    return int(ran.stdout)


def find_window(session: str, name: str, folder: str) -> str | None:
    """Return the id of the window in which a program was started in this folder, or None.

    Windows of several projects can have the same name.
    """
    tmux = programs.find("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it to use `attach`")
    shown = "#{window_id}\t#{window_name}\t#{pane_start_path}"
    listed = _run([tmux, "-S", str(socket()), "list-panes", "-s", "-t", f"={session}", "-F", shown])
    for line in listed.stdout.decode("utf-8", "replace").splitlines():
        window, window_name, path = line.split("\t", 2)
        # A tmux before 3.3 does not know the path: the name has to do.
        if window_name == name and path in {folder, ""}:
            return window
    return None


def attach(window: str, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a tmux that shows a window in its terminal."""
    tmux, path = programs.find("tmux") or "tmux", str(socket())
    if environment.get("TMUX", "").split(",")[0] == path:
        # The terminal is in a window of the same server: it is switched over.
        os.execve(tmux, [tmux, "-S", path, "switch-client", "-t", window], environment)  # noqa: S606 - no shell
    # Inside another server tmux refuses to attach as long as this variable is set.
    given = {key: value for key, value in environment.items() if key != "TMUX"}
    os.execve(tmux, [tmux, "-S", path, "attach-session", "-t", window], given)  # noqa: S606 - no shell


def _quoted(word: str) -> str:
    """As tmux reads it: within single quotes everything stands for itself."""
    return "'" + word.replace("'", "'\\''") + "'"


def _run(argv: Sequence[str], said: str = "") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - an argv of our own making
            list(argv),
            capture_output=True,
            check=False,
            timeout=TMUX_SECONDS,
            input=said.encode("utf-8", "surrogateescape"),
        )
    except subprocess.TimeoutExpired as error:
        raise AgentError(f"tmux did not answer within {TMUX_SECONDS} s", hint=_INSTEAD) from error
