"""Find an OCI runtime that works on this host: crun, or else runc."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rekindle.errors import RekindleError, SandboxError
from rekindle.policy.sandbox.container_obstacle import (
    RUNTIMES,
    TriedRuntime,
    explain_container_obstacle,
)
from rekindle.policy.sandbox.mounts import ROOT, TEMPORARY, Mount
from rekindle.policy.sandbox.obstacle import SandboxObstacle
from rekindle.policy.sandbox.oci_bundle import ContainerUser, render_bundle
from rekindle.policy.sandbox.profile import SandboxProfile
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.system.sandbox import container_group, host_paths, probe
from rekindle.system.sandbox.container_folder import ContainerFolder
from rekindle.thresholds.sandbox_limits import HOST_PROCESSES, PROBE_MEMORY_BYTES

_CRUN, _RUNC = RUNTIMES
_works: list["ContainerRuntime"] = []


class ContainerRuntime(msgspec.Struct, frozen=True):
    """An OCI runtime that works on this host."""

    program: str
    has_groups: bool
    """Whether the runtime creates a control group for each container, and so can limit it."""

    @property
    def options(self) -> tuple[str, ...]:
        if Path(self.program).name != _CRUN:
            return ()
        return ("--cgroup-manager", "cgroupfs" if self.has_groups else "disabled")


def find_containers_folder() -> Path:
    """Return the folder that contains the folders of all containers."""
    return user_folder.find_user_folder() / "containers"


def find_files(mounts: Iterable[Mount]) -> frozenset[str]:
    """Return the mounted paths that are not folders."""
    return frozenset(mount.path for mount in mounts if not Path(mount.path).is_dir())


def identify_user() -> ContainerUser:
    return ContainerUser(os.geteuid(), os.getegid())


def require_container() -> ContainerRuntime:
    """Return a runtime that works. Each process probes the host only once.

    Raises:
        SandboxError: No container can be created on this host.
    """
    if not _works and (obstacle := find_container_obstacle()):
        raise SandboxError(obstacle.words, hint=obstacle.hint)
    return _works[0]


def find_container_obstacle() -> SandboxObstacle | None:
    """Return why a container cannot be created here, or None if it can."""
    tried: list[TriedRuntime] = []
    for runtime in _list_candidates():
        error = _try(runtime)
        if not error:
            _works[:] = [runtime]
            return None
        tried.append(TriedRuntime(Path(runtime.program).name, error))
    return explain_container_obstacle(tried, is_root=os.geteuid() == 0)


def _list_candidates() -> list[ContainerRuntime]:
    """Return the installed runtimes, first those that can limit containers.

    runc needs a user with the id 0 in the container, whom some CLIs refuse to work for. For an
    ordinary user, only crun keeps the user's own id.
    """
    found = {name: program_search.find_executable(name) for name in RUNTIMES}
    wanted = [(_CRUN, False)]
    if os.geteuid() == 0:
        wanted = [(_CRUN, True), (_RUNC, True), (_CRUN, False)]
    return [
        ContainerRuntime(program, has_groups)
        for name, has_groups in wanted
        if (program := found[name]) is not None
    ]


def _try(runtime: ContainerRuntime) -> str:
    """Return the error from running an empty container, or "" if it works."""
    system, links = host_paths.find_system()
    # Runtimes mount files differently from folders, and each host hides some files.
    hidden = Mount("hide", str(Path(__file__).resolve()))
    mounts = (*(Mount("read", one) for one in system), Mount("mask", TEMPORARY), hidden)
    view = SandboxCommand(
        program=runtime.program, mounts=(*mounts, Mount("close", ROOT)), links=links, folder=ROOT
    )
    try:
        user_folder.make_user_folder()
        folder = ContainerFolder(find_containers_folder(), runtime.program)
    except RekindleError as error:
        return str(error)
    try:
        group = container_group.make_group(folder.name)[0] if runtime.has_groups else ""
        limits = SandboxProfile(memory=PROBE_MEMORY_BYTES, processes=HOST_PROCESSES)
        configuration = render_bundle(
            view,
            ["/usr/bin/env", "true"],
            root=str(folder.root),
            user=identify_user(),
            environment={"PATH": os.defpath},
            files=find_files(mounts),
            group=group,
            limits=limits,
        )
        folder.write(configuration, links)
        return probe.try_command(folder.render_run(*runtime.options))
    finally:
        folder.remove()
