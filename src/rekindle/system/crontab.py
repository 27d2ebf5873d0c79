"""Read and write the user's crontab with the `crontab` command."""

import subprocess

from rekindle.errors import StoreError
from rekindle.system.processes import program_search
from rekindle.thresholds.supervision import CRONTAB_SECONDS


def read_crontab() -> list[str]:
    """Return the lines of the user's crontab; empty if there is no crontab or no cron."""
    program = program_search.find_executable("crontab")
    if program is None:
        return []
    result = _run_crontab([program, "-l"])
    return (
        result.stdout.decode("utf-8", "surrogateescape").splitlines()
        if not result.returncode
        else []
    )


def write_crontab(lines: list[str]) -> None:
    """Replace the user's crontab with these lines, or remove it if there are none."""
    program = program_search.find_executable("crontab")
    if program is None:
        return
    text = "".join(f"{line}\n" for line in lines)
    result = _run_crontab([program, "-"], text) if lines else _run_crontab([program, "-r"])
    if result.returncode:
        complaint = result.stderr.decode("utf-8", "replace").strip()
        raise StoreError("crontab", complaint or "was refused", hint="edit it with `crontab -e`")


def _run_crontab(argv: list[str], text: str = "") -> subprocess.CompletedProcess[bytes]:
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
