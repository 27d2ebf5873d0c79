"""How git is started: from an allow-listed environment, with settings that run nobody's program.

Only for the modules beside this one that speak to git; nothing else starts it.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents.identity import one_line
from rekindle.system import programs
from rekindle.thresholds.storage import GIT_ERROR_CHARACTERS, GIT_KILL_SECONDS

ENVIRONMENT = (
    # Where git finds itself, and the user's own word on which folders are safe. Above all not
    # GIT_DIR, GIT_INDEX_FILE and their like, which a hook that runs us hands down.
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
OWN_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "Rekindle",
    "GIT_AUTHOR_EMAIL": "rekindle@localhost",
    "GIT_COMMITTER_NAME": "Rekindle",
    "GIT_COMMITTER_EMAIL": "rekindle@localhost",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # what an older git would fetch lazily all the same
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
SETTINGS = {
    "core.hooksPath": "/dev/null",  # update-ref runs reference-transaction
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "color.ui": "false",
    # A ref that outlives the objects it names breaks the user's repository after a power loss.
    "core.fsync": "loose-object,reference",
}


class Ended(msgspec.Struct, frozen=True):
    code: int
    out: bytes
    complaint: str

    @property
    def reason(self) -> str:
        return reason(self.complaint)


def find() -> str | None:
    """Where git is installed; None: it is not."""
    return programs.find("git")


def run(
    program: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
) -> Ended:
    """Start it and wait; raises TimeoutError, or OSError where it cannot be started at all."""
    given = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    process = subprocess.Popen(  # noqa: S603 - argv, no shell, a program found beforehand
        [program, "--no-pager", *given, *arguments],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C ends us, not a git between its lock and its ref; and no terminal to ask on.
        start_new_session=True,
    )
    try:
        out, complaint = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired as late:
        _end(process)
        raise TimeoutError(f"git {arguments[0]} took longer than {timeout:g} s") from late
    return Ended(process.returncode, out, complaint.decode(errors="replace"))


def inherited(names: Sequence[str]) -> dict[str, str]:
    """What of our own environment git is given."""
    found = {key: os.environ[key] for key in names if key in os.environ}
    return {**found, "PATH": programs.safe_path()} if "PATH" in found else found


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as an environment; a name may hold what no `-c` could."""
    more = {"GIT_CONFIG_COUNT": str(len(settings))} if settings else {}
    for number, (name, value) in enumerate(settings.items()):
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return more


def reason(complaint: str) -> str:
    """The first line that says what failed, without warnings before it and advice after it."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("error: ", "fatal: "))]
    said = one_line([*failed, *lines, ""][0], GIT_ERROR_CHARACTERS)
    return said or "it did not say why"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a git that hangs: asked first, for then it removes its lock files; never waited for."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # it leads a session of its own: its children too
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=GIT_KILL_SECONDS)
            return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
