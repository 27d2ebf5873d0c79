"""Open tmux windows for agents with the `tmux` command.

The socket is in the user's Rekindle folder. The default socket is in /tmp, where a sandboxed agent
could run its own server and receive the operator's environment, including keys.
"""

import hashlib
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from rekindle.errors import AgentError, UsageError
from rekindle.system import host
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.thresholds.supervision import TMUX_SECONDS

_FOLDER = "tmux"
_SOCKET_BYTES = 103
"""Maximum length of a socket path in bytes that works on every system (macOS: 103, Linux: 107)."""
_INSTEAD = "start the agent yourself with `rekindle run`"


def find_socket() -> Path:
    """Return the tmux server's socket for the agents' windows."""
    # Hosts may share a home directory, but not a server.
    name = hashlib.blake2b(host.identify_host().encode(), digest_size=4).hexdigest()
    return user_folder.find_user_folder() / _FOLDER / name


def render_attach_command(session: str) -> str:
    """Return the shell command that shows the agents' windows."""
    path = find_socket()
    try:
        shown = "~/" + shlex.quote(str(path.relative_to(Path.home())))
    except (ValueError, RuntimeError):  # the socket is not in HOME, or HOME is unknown
        shown = shlex.quote(str(path))
    return f"tmux -S {shown} attach -t {session}"


def open_window(
    session: str, name: str, folder: str, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run a program in a new window and return its pid. Create the session if needed.

    The command is passed as separate words, so that tmux runs it without a shell. The environment
    is passed explicitly, because the server's own may be outdated. It goes through a pipe, because
    it contains keys and every user can read command lines.
    """
    tmux = program_search.find_executable("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it, or omit --tmux")
    path = find_socket()
    if len(bytes(path)) > _SOCKET_BYTES:
        raise UsageError(
            f"the path of the tmux socket is too long: {path}",
            hint="omit --tmux; `rekindle events` shows what the agents do",
        )
    user_folder.make_user_folder(_FOLDER)
    server = [tmux, "-S", str(path)]
    options = [word for pair in environment.items() for word in ("-e", "=".join(pair))]
    window = ["-P", "-F", "#{pane_pid}", "-n", name, "-c", folder, *options, *argv]
    if _run_tmux([*server, "has-session", "-t", f"={session}"]).returncode == 0:
        tmux_command = ["new-window", "-d", "-t", f"={session}:", *window]
    else:
        tmux_command = ["new-session", "-d", "-s", session, *window]
    result = _run_tmux(
        [*server, "start-server", ";", "source-file", "-"], " ".join(map(_quote_word, tmux_command))
    )
    if result.returncode != 0 or not result.stdout.strip().isdigit():
        raise AgentError(
            f"tmux could not open a window: {result.stderr.decode('utf-8', 'replace').strip()}",
            hint=_INSTEAD,
        )
    return int(result.stdout)


def find_window(session: str, name: str, folder: str) -> str | None:
    """Return the id of the window whose program was started in this folder, or None.

    Windows of different projects may have the same name.
    """
    tmux = program_search.find_executable("tmux")
    if tmux is None:
        raise UsageError("tmux is not installed", hint="install it to use `attach`")
    shown = "#{window_id}\t#{window_name}\t#{pane_start_path}"
    listed = _run_tmux(
        [tmux, "-S", str(find_socket()), "list-panes", "-s", "-t", f"={session}", "-F", shown]
    )
    for line in listed.stdout.decode("utf-8", "replace").splitlines():
        window, window_name, path = line.split("\t", 2)
        # tmux before 3.3 does not report the path, so compare only the name.
        if window_name == name and path in {folder, ""}:
            return window
    return None


def attach_window(window: str, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process with a tmux client that shows a window."""
    tmux, path = program_search.find_executable("tmux") or "tmux", str(find_socket())
    if environment.get("TMUX", "").split(",")[0] == path:
        # We are inside a window of the same server, so switch to the other window.
        os.execve(tmux, [tmux, "-S", path, "switch-client", "-t", window], environment)  # noqa: S606 - no shell
    # In a window of another server, tmux refuses to attach while TMUX is set.
    outer = {key: value for key, value in environment.items() if key != "TMUX"}
    os.execve(tmux, [tmux, "-S", path, "attach-session", "-t", window], outer)  # noqa: S606 - no shell


def _quote_word(word: str) -> str:
    """Quote a word for tmux, where single quotes make everything literal."""
    return "'" + word.replace("'", "'\\''") + "'"


def _run_tmux(argv: Sequence[str], commands: str = "") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - argv built here, no shell
            list(argv),
            capture_output=True,
            check=False,
            timeout=TMUX_SECONDS,
            input=commands.encode("utf-8", "surrogateescape"),
        )
    except subprocess.TimeoutExpired as error:
        raise AgentError(f"tmux did not answer within {TMUX_SECONDS} s", hint=_INSTEAD) from error
