"""Find out whether bubblewrap works on this host."""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rekindle.errors import SandboxError
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.sandbox import bubblewrap
from rekindle.policy.sandbox.obstacle import HostFacts, SandboxObstacle, explain_obstacle
from rekindle.system.processes import launch_processes, program_search
from rekindle.thresholds.sandbox_limits import PROBE_SECONDS

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_SWITCHES = {"kernel.unprivileged_userns_clone": "1", "user.max_user_namespaces": "15000"}
"""Kernel settings that forbid user namespaces if 0, each with a value that allows them."""
_LIMITER = "prlimit"
_works: set[str] = set()


def require_sandbox() -> str:
    """Return the path of bubblewrap. Each process probes the host only once.

    Raises:
        SandboxError: A sandbox cannot be created on this host.
    """
    program = program_search.find_executable(bubblewrap.PROGRAM) or ""
    if program not in _works:
        if obstacle := find_obstacle():
            raise SandboxError(obstacle.words, hint=obstacle.hint)
        _works.add(program)
    return program


def find_obstacle() -> SandboxObstacle | None:
    """Return why a sandbox cannot be created here, or None if it can."""
    program = program_search.find_executable(bubblewrap.PROGRAM)
    if sys.platform != "linux" or program is None:
        return explain_obstacle(HostFacts(is_linux=sys.platform == "linux", is_installed=False))
    return explain_obstacle(
        HostFacts(
            error=try_command(bubblewrap.render_probe(program)),
            apparmor_restricts=_read_switch(_APPARMOR) == "1",
            namespaces_off=next(
                (f"{name}={on}" for name, on in _SWITCHES.items() if _read_switch(name) == "0"), ""
            ),
        )
    )


def find_limits(memory: int | None, processes: int | None) -> tuple[str, ...]:
    """Return the command that limits a program.

    Raises:
        SandboxError: A limit is set, but `prlimit` is not installed.
    """
    program = program_search.find_executable(_LIMITER)
    limits = bubblewrap.render_limits(program or _LIMITER, memory, processes)
    if limits and program is None:
        raise SandboxError(
            "`memory:` and `processes:` of a sandbox need prlimit, which is not installed",
            hint="install util-linux, or remove them from `sandbox:`",
        )
    return limits


def find_end_with_parent() -> tuple[str, ...]:
    """Return the command that makes a container end with its runtime.

    Raises:
        SandboxError: `setpriv` is not installed.
    """
    command = program_search.find_end_with_parent()
    if not command:
        raise SandboxError(
            "`sandbox: container` needs setpriv, which is not installed",
            hint="install util-linux, or write `sandbox: on`",
        )
    return command


def try_command(argv: Sequence[str]) -> str:
    """Return the error from a command that starts an empty sandbox, or "" if it works."""
    try:
        with launch_processes.START_LOCK:
            child = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            launch_processes.UNRELATED_CHILDREN.add(child.pid)
        try:
            _, errors = child.communicate(timeout=PROBE_SECONDS)
        finally:
            child.kill()
            child.wait()
            if child.stderr is not None:
                child.stderr.close()
            launch_processes.UNRELATED_CHILDREN.discard(child.pid)
    except (OSError, subprocess.TimeoutExpired) as error:
        return to_one_line(str(error))
    if child.returncode == 0:
        return ""
    text = to_one_line(errors.decode("utf-8", "replace")).removeprefix("bwrap: ")
    return text or f"exit code {child.returncode}"


@cache
def _read_switch(name: str) -> str:
    try:
        return Path("/proc/sys", *name.split(".")).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
