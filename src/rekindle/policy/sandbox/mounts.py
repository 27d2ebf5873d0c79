"""Decide which files a sandboxed agent can see, and which of them it may write.

Later mounts cover earlier ones, so the order is part of the decision: the system, additions, the
work, the CLI's state, files that stay read-only inside all of these, and finally Rekindle's own
folders, so no other mount can expose them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from rekindle.policy.sandbox.profile import SandboxProfile

MountKind = Literal["read", "write", "mask", "close", "hide"]
"""How a path appears in the sandbox. `read` and `write` show the host's files, `mask` shows an
empty folder, and `close` makes an earlier mask read-only, so that writes fail instead of vanishing.
`hide` shows an empty file in place of a secret.
"""
ROOT = "/"
TEMPORARY = "/tmp"  # noqa: S108 - private to the sandbox
EMPTY_FILE = "/dev/null"
"""Shown in place of a hidden file."""
GIT_FOLDER = ".git"
"""Name that marks a repository, whose settings the sandbox must protect."""
_GIT_PROGRAMS = ("config", "config.worktree", "hooks", "modules")
"""Entries in a repository's git folder that can make git start programs."""


class Mount(msgspec.Struct, frozen=True):
    kind: MountKind
    path: str
    is_optional: bool = False
    """Whether to skip the mount if the path is missing, is a link, or contains one."""


class StatePaths(msgspec.Struct, frozen=True):
    """Paths to a CLI's own state on this host."""

    folder: str
    is_closed: bool
    """Whether the folder itself is read-only, in which case no entries can be added to it."""
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


class SandboxPaths(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's paths on this host, absolute and with links resolved."""

    folder: str
    """The agent's working directory."""
    rekindle: str
    """The project's `.rekindle` folder."""
    own: str
    """The agent's folder in `.rekindle`."""
    run: str
    draft: str
    """The folder for the relay draft."""
    relay: str = ""
    """The agent's own relay file, if it has one."""
    user: str
    """The user's Rekindle folder, which contains the operator's channel."""
    hooks: str
    scratch: str
    marks: str
    """The folder in which hooks leave marks for the supervisor."""
    manifest: str
    system: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    """Rekindle's own interpreter and package, which hooks need."""
    programs: tuple[str, ...] = ()
    """Folders on the PATH, and the CLI's files."""
    protected: tuple[str, ...] = ()
    """Files that stay read-only wherever they are."""
    neighbours: tuple[str, ...] = ()
    """Folders of the project's other agents."""
    secrets: tuple[str, ...] = ()
    """Files of the host that stay hidden in folders that the sandbox shows."""
    state: StatePaths | None = None


def make_mounts(paths: SandboxPaths, profile: SandboxProfile) -> list[Mount]:
    """Return a sandbox's mounts, in order."""
    roots = (paths.folder, *profile.write)
    needed = dict.fromkeys((*paths.runtime, *paths.programs))
    visible = (*paths.system, *roots, *profile.read, *needed)
    chosen = [
        *(
            Mount("read", one, is_optional=True)
            for one in needed
            if not any(is_inside(one, other) for other in visible if other != one)
            and one not in paths.system
        ),
        *(Mount("read", one) for one in profile.read),
        *(Mount("write", one) for one in roots),
    ]
    shown = [
        *(Mount("read", one) for one in paths.system),
        Mount("mask", TEMPORARY),
        *_list_project("mask", paths),
        *sorted(chosen, key=lambda mount: _depth(mount.path)),
        *_list_state(paths.state),
        *_list_protected(paths, roots),
        *_list_own(paths),
    ]
    return [
        *shown,
        *_list_hidden(paths.secrets, shown),
        *_list_project("close", paths),
        Mount("close", ROOT),
    ]


def _list_project(kind: MountKind, paths: SandboxPaths) -> Iterator[Mount]:
    """Yield a mount for the project, unless it is in the agent's folder.

    Without this mount, writes next to the agent's folder would vanish in a project below /tmp.
    """
    project = paths.manifest.rpartition(ROOT)[0]
    if not is_inside(project, paths.folder):
        yield Mount(kind, project)


def _list_state(state: StatePaths | None) -> Iterator[Mount]:
    if state is None:
        return
    yield Mount("read" if state.is_closed else "write", state.folder)
    for path in state.write:
        yield Mount("write", path, is_optional=True)
    for path in state.read:
        yield Mount("read", path, is_optional=True)


def _list_protected(paths: SandboxPaths, roots: Sequence[str]) -> Iterator[Mount]:
    """Yield the mounts that stay read-only inside writable folders."""
    for path in (*paths.runtime, *paths.protected, paths.manifest, *paths.neighbours):
        is_git = path.rpartition(ROOT)[2] == GIT_FOLDER
        is_in_root = any(is_inside(path, root) for root in roots)
        if is_in_root and not is_git and not is_inside(paths.folder, path):
            yield Mount("read", path, is_optional=True)
    for root in roots:
        git = (
            root if root.rpartition(ROOT)[2] == GIT_FOLDER else f"{root.rstrip(ROOT)}/{GIT_FOLDER}"
        )
        # Mount it separately, because a folder that only contains mounts could be renamed.
        yield Mount("write", git, is_optional=True)
        for name in _GIT_PROGRAMS:
            yield Mount("read", f"{git}/{name}", is_optional=True)


def _list_hidden(secrets: Iterable[str], shown: Sequence[Mount]) -> Iterator[Mount]:
    """Yield a mount for each secret that an earlier mount shows."""
    folders = [mount.path for mount in shown if mount.kind in {"read", "write"}]
    for path in secrets:
        if any(is_inside(path, folder) for folder in folders):
            yield Mount("hide", path)


def _list_own(paths: SandboxPaths) -> Iterator[Mount]:
    yield Mount("mask", paths.rekindle)
    yield Mount("read", paths.own)
    yield Mount("write", paths.run)
    yield Mount("write", paths.draft)
    yield Mount("close", paths.rekindle)
    if paths.relay:
        yield Mount("write", paths.relay, is_optional=True)
    yield Mount("mask", paths.user)
    yield Mount("read", paths.hooks)
    yield Mount("read", paths.scratch)
    yield Mount("write", paths.marks)
    yield Mount("close", paths.user)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is `folder` or inside it."""
    return path == folder or path.startswith(f"{folder.rstrip(ROOT)}/")


def _depth(path: str) -> int:
    return len([part for part in path.split(ROOT) if part])


def drop_absent(mounts: Iterable[Mount], present: Iterable[str]) -> list[Mount]:
    """Return the mounts, without optional ones whose path does not exist."""
    found = frozenset(present)
    return [mount for mount in mounts if not mount.is_optional or mount.path in found]
