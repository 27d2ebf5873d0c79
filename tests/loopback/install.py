"""The real Claude Code, installed once for all tests, as pinned in `claude/package-lock.json`."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PINNED: Final = Path(__file__).parent / "claude"
LIMIT_S: Final = 240.0
"""npm's, under the limit of a test; about ten seconds were seen."""

_FOR_NPM: Final = re.compile(
    r"PATH|HOME|XDG_\w+|NPM_CONFIG_\w+|(HTTPS?|NO|ALL)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+",
    re.IGNORECASE,
)
"""What npm may see of the environment: how to reach a registry, and nobody's keys."""

_UNREACHABLE: Final = re.compile(r"\b(ENOTFOUND|EAI_AGAIN|ECONN\w+|ENETUNREACH|ETIMEDOUT|E5\d\d)\b")


class InstallError(Exception):
    """The installation went wrong."""


class UnavailableError(InstallError):
    """Nothing is wrong but this machine: no npm, or no way to a registry."""


def claude() -> Path:
    """The native program; installs it first where that has not been done.

    Raises:
        UnavailableError: There is no npm, or it reaches no registry.
        InstallError: npm failed for another reason, such as a wrong hash.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rekindle-tests"
    return install(cache, os.environ)


def install(cache: Path, environ: Mapping[str, str]) -> Path:
    """The program in this cache, for this environment."""
    digest = hashlib.sha256((PINNED / "package-lock.json").read_bytes()).hexdigest()[:16]
    home = cache / f"claude-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    # Workers of one run, and other runs, may come here at the same time: one installs, all wait.
    with (cache / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _install(home, environ)
    return _program(home)


def _install(home: Path, environ: Mapping[str, str]) -> None:
    partial = home.with_name(f"{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed: the lock is ours
    shutil.copytree(PINNED, partial, ignore=shutil.ignore_patterns("node_modules"))
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise UnavailableError("npm is not installed; it comes with node, 20 or newer")
    argv = [npm, "ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    kept = {name: value for name, value in environ.items() if _FOR_NPM.fullmatch(name)}
    try:
        done = subprocess.run(
            argv,
            cwd=partial,
            env=kept,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"npm did not finish in {LIMIT_S} s") from error
    if done.returncode != 0:
        kind = UnavailableError if _UNREACHABLE.search(done.stderr) else InstallError
        raise kind(f"npm ci failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    _program(partial)  # a folder with the final name is a whole one
    partial.rename(home)


def _program(home: Path) -> Path:
    # npm takes the one optional package that is for this platform; its launcher is not needed.
    found = list((home / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude"))
    if len(found) != 1:
        raise InstallError(f"one native program was expected under {home}, not {len(found)}")
    return found[0]
