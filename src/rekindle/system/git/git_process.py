"""Run git with an allow-listed environment and settings that disable external programs.

Only modules in this package import this one; nothing else in Rekindle runs git.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from rekindle.formats.identifiers import to_one_line
from rekindle.system.processes import program_search
from rekindle.thresholds.storage import GIT_ERROR_CHARACTERS, GIT_KILL_SECONDS

ENVIRONMENT = (
    # Enough to find git and the user's `safe.directory` setting. Leave out GIT_DIR, GIT_INDEX_FILE
    # and similar variables: Rekindle would inherit them when a git hook runs it.
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "SUDO_UID",
    "TMPDIR",
)
LOCKED = re.compile(r"Unable to create '([^']+\.lock)': File exists")
"""Matches git's error message about an existing lock file."""
OWN_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "Rekindle",
    "GIT_AUTHOR_EMAIL": "rekindle@localhost",
    "GIT_COMMITTER_NAME": "Rekindle",
    "GIT_COMMITTER_EMAIL": "rekindle@localhost",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # older versions of git ignore GIT_NO_LAZY_FETCH
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
SAFE_SETTINGS = {
    "core.hooksPath": "/dev/null",  # update-ref would run the reference-transaction hook
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "color.ui": "false",
    # After a power loss, a ref to missing objects would break the user's repository.
    "core.fsync": "loose-object,reference",
}


class GitResult(msgspec.Struct, frozen=True):
    code: int
    out: bytes
    complaint: str

    @property
    def reason(self) -> str:
        return find_reason(self.complaint)


def find_git() -> str | None:
    """Return the path of git, or None if git is not installed."""
    return program_search.find_executable("git")


def run_git(
    program: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    timeout: float,
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
) -> GitResult:
    """Run git and wait for it to exit. Its output goes to the file `stdout`, or to the result.

    Raises TimeoutError, or OSError if git cannot be started.
    """
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    process = subprocess.Popen(  # noqa: S603 - argv, no shell, a program found beforehand
        [program, "--no-pager", *options, *arguments],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Keep Ctrl-C from interrupting git halfway through a ref update, and keep git from
        # prompting on the terminal.
        start_new_session=True,
    )
    try:
        out, complaint = process.communicate(stdin if isinstance(stdin, bytes) else None, timeout)
    except subprocess.TimeoutExpired as late:
        _end_process(process)
        raise TimeoutError(f"git {arguments[0]} took longer than {timeout:g} s") from late
    return GitResult(process.returncode, out or b"", complaint.decode(errors="replace"))


def inherit_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the named environment variables that are set, with a safe PATH."""
    inherited = {key: os.environ[key] for key in names if key in os.environ}
    return (
        {**inherited, "PATH": program_search.make_safe_path()} if "PATH" in inherited else inherited
    )


def render_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Render settings as environment variables, for names that `-c` does not accept."""
    more = {"GIT_CONFIG_COUNT": str(len(settings))} if settings else {}
    for number, (name, value) in enumerate(settings.items()):
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return more


def quote_path(path: str) -> str:
    """Quote a path for a colon-separated list of object folders."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def find_reason(complaint: str) -> str:
    """Return the line in git's output that explains the failure, without warnings and advice."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("error: ", "fatal: "))]
    stated = to_one_line([*failed, *lines, ""][0], GIT_ERROR_CHARACTERS)
    return stated or "no reason given"


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """Stop a git process that hangs. SIGTERM comes first, so that git can remove its lock files."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(
                process.pid, number
            )  # git leads its own session, so this includes its children
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=GIT_KILL_SECONDS)
            return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
