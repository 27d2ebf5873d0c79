"""Render a sandbox as the configuration of an OCI container.

The container shows the same files as a bubblewrap sandbox. In addition, it refuses system calls
that agents do not need, and hides parts of /proc.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.policy.sandbox.mounts import EMPTY_FILE, ROOT, Mount
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.resource_limits import find_quota
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.policy.sandbox.syscall_filter import render_filter

_SEPARATION = ("pid", "ipc", "uts", "mount", "user", "cgroup")
_HIDDEN = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/acpi")
_KERNEL_SETTINGS = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger")
_PLAIN = ["nosuid", "nodev"]
_SHARED = "/dev/shm"  # noqa: S108 - private to the container
_DEVICES: list[dict[str, Any]] = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {
        "destination": "/dev",
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
    },
    {
        "destination": "/dev/pts",
        "type": "devpts",
        "source": "devpts",
        "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
    },
]


class ContainerUser(msgspec.Struct, frozen=True):
    """The user who runs the container, with the same ids inside and outside."""

    uid: int
    gid: int


def render_bundle(
    sandbox: SandboxCommand,
    argv: Sequence[str],
    *,
    root: str,
    user: ContainerUser,
    environment: Mapping[str, str],
    files: Collection[str] = (),
    places: Mapping[str, str] = {},
    group: str = "",
    limits: SandboxProfile | None = None,
) -> dict[str, Any]:
    """Return a container's `config.json`.

    `root` is an empty folder, in which the runtime creates mount points. `files` are the mounted
    paths that are not folders. `places` has the paths in the container for mounts that appear
    elsewhere. With a `group`, the runtime enforces the limits in this control group.
    """
    size = [] if sandbox.memory is None else [f"size={sandbox.memory}"]
    shared = _render_mount(_SHARED, "tmpfs", "shm", [*_PLAIN, "mode=1777", *size])
    linux: dict[str, Any] = {
        "namespaces": [
            {"type": kind}
            for kind in (*_SEPARATION, *(() if sandbox.has_network else ("network",)))
        ],
        "uidMappings": [{"containerID": user.uid, "hostID": user.uid, "size": 1}],
        "gidMappings": [{"containerID": user.gid, "hostID": user.gid, "size": 1}],
        "maskedPaths": list(_HIDDEN),
        "readonlyPaths": list(_KERNEL_SETTINGS),
        "seccomp": render_filter(),
    }
    if group:
        linux |= {"cgroupsPath": group, "resources": _render_resources(limits or SandboxProfile())}
    return {
        "ociVersion": "1.0.0",
        "process": {
            "terminal": False,
            "user": {"uid": user.uid, "gid": user.gid},
            "args": [*sandbox.limits, *argv],
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": sandbox.folder,
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": root, "readonly": Mount("close", ROOT) in sandbox.mounts},
        "mounts": [*_DEVICES, shared, *_render_mounts(sandbox.mounts, files, places, size)],
        "linux": linux,
    }


def _render_mounts(
    mounts: Sequence[Mount],
    files: Collection[str],
    places: Mapping[str, str],
    size: Sequence[str],
) -> list[dict[str, Any]]:
    # The runtime makes an empty folder read-only only after it has created all other mounts.
    closed = {mount.path for mount in mounts if mount.kind == "close"}
    rendered = []
    for mount in mounts:
        if mount.kind == "mask":
            options = [*_PLAIN, "mode=755", *(["ro"] if mount.path in closed else []), *size]
            rendered.append(_render_mount(mount.path, "tmpfs", "tmpfs", options))
        elif mount.kind != "close":
            is_hidden = mount.kind == "hide"
            # crun 1.8 cannot make a file read-only recursively.
            read_only = "ro" if mount.path in files else "rro"
            options = ["rbind", *_PLAIN, *([read_only] if mount.kind != "write" else [])]
            place = places.get(mount.path, mount.path)
            source = EMPTY_FILE if is_hidden else mount.path
            rendered.append(_render_mount(place, "none", source, options))
    return rendered


def _render_mount(path: str, kind: str, source: str, options: Sequence[str]) -> dict[str, Any]:
    return {"destination": path, "type": kind, "source": source, "options": list(options)}


def _render_resources(limits: SandboxProfile) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if limits.memory is not None:
        # With an equal limit for both together, the processes cannot use swap.
        resources["memory"] = {"limit": limits.memory, "swap": limits.memory}
    if limits.processes is not None:
        resources["pids"] = {"limit": limits.processes}
    if limits.cpu is not None:
        quota, period = find_quota(limits.cpu)
        resources["cpu"] = {"quota": quota, "period": period}
    return resources
