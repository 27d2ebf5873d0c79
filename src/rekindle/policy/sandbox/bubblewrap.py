"""Render a sandbox as a bubblewrap command line."""

from collections.abc import Iterable, Sequence

from rekindle.policy.sandbox.mounts import EMPTY_FILE, Mount
from rekindle.policy.sandbox.sandbox_command import SandboxCommand

PROGRAM = "bwrap"
_OPTIONS = {
    "read": "--ro-bind",
    "write": "--bind",
    "mask": "--tmpfs",
    "close": "--remount-ro",
    "hide": "--ro-bind",
}
_SEPARATION = (
    "--die-with-parent",
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # bubblewrap lets root keep its capabilities in the sandbox, which are enough to undo every
    # mount.
    *("--cap-drop", "ALL"),
)
_PROC = ("--proc", "/proc")
_SHARED = "/dev/shm"  # noqa: S108 - private to the sandbox
_KERNEL_SETTINGS = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/sysrq-trigger")
"""Files that affect the whole host, and that root can write even without capabilities."""


def render_command(sandbox: SandboxCommand, argv: Sequence[str]) -> list[str]:
    """Return the command that runs a program in the sandbox."""
    words = [sandbox.program, *_SEPARATION]
    # Without its own session, a program could type into the supervisor's terminal. A CLI in a
    # terminal already has its own session leader and terminal.
    words += [] if sandbox.is_terminal else ["--new-session"]
    words += [] if sandbox.has_network else ["--unshare-net"]
    for link, target in sandbox.links.items():
        words += ["--symlink", target, link]
    size = [] if sandbox.memory is None else ["--size", str(sandbox.memory)]
    words += [*_PROC, *_render_kernel_settings(), "--dev", "/dev"]
    words += [*size, "--tmpfs", _SHARED, "--remount-ro", "/dev"] if size else []
    words += _render_mounts(sandbox.mounts, size)
    return [*words, "--chdir", sandbox.folder, "--", *sandbox.limits, *argv]


def _render_kernel_settings() -> list[str]:
    return [word for path in _KERNEL_SETTINGS for word in ("--ro-bind-try", path, path)]


def _render_mounts(mounts: Iterable[Mount], size: Sequence[str]) -> list[str]:
    words: list[str] = []
    for mount in mounts:
        source = EMPTY_FILE if mount.kind == "hide" else mount.path
        words += size if mount.kind == "mask" else []
        words += [_OPTIONS[mount.kind], source]
        words += [mount.path] if mount.kind in {"read", "write", "hide"} else []
    return words


def render_limits(program: str, memory: int | None, processes: int | None) -> tuple[str, ...]:
    """Return the `prlimit` command that sets these limits; empty if there are none.

    The memory limit covers what a process has allocated. A limit on the address space would also
    count memory that JavaScript engines only reserve.
    """
    sizes = {"data": memory, "nproc": processes}
    options = [f"--{name}={limit}" for name, limit in sizes.items() if limit is not None]
    return (program, *options, "--") if options else ()


def render_probe(program: str) -> list[str]:
    """Return a command that succeeds if sandboxes work on this host."""
    return [
        *(program, *_SEPARATION, "--unshare-net", "--ro-bind", "/", "/"),
        *(*_PROC, *_render_kernel_settings(), "--dev", "/dev", "--", "true"),
    ]
