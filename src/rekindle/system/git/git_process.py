"""Start git with an allow-listed environment and settings that run no configured programs.

Only the modules in this package use this module; no other code starts git.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.formats.identifiers import to_one_line
from rekindle.system.processes import program_search
from rekindle.thresholds.storage import GIT_ERROR_CHARACTERS, GIT_KILL_SECONDS

ENVIRONMENT = (
    # Variables needed to find git and the user's choice of safe folders. GIT_DIR, GIT_INDEX_FILE
    # and similar variables must not be included, because a git hook that runs Rekindle would pass
    # them down.
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
"""Git's error message if a lock file already exists."""
OWN_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "Rekindle",
    "GIT_AUTHOR_EMAIL": "rekindle@localhost",
    "GIT_COMMITTER_NAME": "Rekindle",
    "GIT_COMMITTER_EMAIL": "rekindle@localhost",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # otherwise an older git would still fetch lazily
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
SAFE_SETTINGS = {
    "core.hooksPath": "/dev/null",  # update-ref runs the reference-transaction hook
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "color.ui": "false",
    # If a power loss left a ref to missing objects, the user's repository would be broken.
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
    stdin: bytes = b"",
) -> GitResult:
    """Run git and wait for it; raise TimeoutError, or OSError if it cannot be started."""
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    process = subprocess.Popen(  # noqa: S603 - argv, no shell, a program found beforehand
        [program, "--no-pager", *options, *arguments],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C must not interrupt git between taking its lock and moving its ref, and git must not
        # prompt on the terminal.
        start_new_session=True,
    )
    try:
        out, complaint = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired as late:
        _end_process(process)
        raise TimeoutError(f"git {arguments[0]} took longer than {timeout:g} s") from late
    return GitResult(process.returncode, out, complaint.decode(errors="replace"))


def inherit_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the variables of this process's environment that git receives."""
    inherited = {key: os.environ[key] for key in names if key in os.environ}
    return (
        {**inherited, "PATH": program_search.make_safe_path()} if "PATH" in inherited else inherited
    )


def render_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as environment variables, which can set names that `-c` cannot."""
    more = {"GIT_CONFIG_COUNT": str(len(settings))} if settings else {}
    for number, (name, value) in enumerate(settings.items()):
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return more


def find_reason(complaint: str) -> str:
    """Return the line that states why git failed, without the warnings and advice around it."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("error: ", "fatal: "))]
    stated = to_one_line([*failed, *lines, ""][0], GIT_ERROR_CHARACTERS)
    return stated or "it gave no reason"


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a hanging git without waiting long; send SIGTERM first, so that it removes its locks."""
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
