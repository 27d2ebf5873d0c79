"""The user's crontab, read and written by its own command."""

import subprocess

from rekindle.errors import StoreError
from rekindle.system import programs
from rekindle.thresholds.running import CRONTAB_SECONDS


def read() -> list[str]:
    """Return the lines of the user's crontab; none if there is none, or no cron."""
    program = programs.find("crontab")
    if program is None:
        return []
    ran = _run([program, "-l"])
    return ran.stdout.decode("utf-8", "surrogateescape").splitlines() if not ran.returncode else []


def write(lines: list[str]) -> None:
    """Replace the user's crontab; without lines, remove it."""
    program = programs.find("crontab")
    if program is None:
        return
    text = "".join(f"{line}\n" for line in lines)
    ran = _run([program, "-"], text) if lines else _run([program, "-r"])
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip()
        raise StoreError("crontab", said or "was refused", hint="edit it with `crontab -e`")


def _run(argv: list[str], text: str = "") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - found outside every workspace
            argv,
            input=text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=CRONTAB_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError("crontab", str(error), hint="edit it with `crontab -e`") from error
