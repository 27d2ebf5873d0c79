"""The programs that can enclose an agent: bubblewrap, and an OCI runtime.

Both show the same files and set the same limits.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import msgspec

from rekindle.documents.launches.launch_types import LAUNCH_VARIABLE
from rekindle.policy.sandbox import bubblewrap
from rekindle.policy.sandbox.mounts import Mount
from rekindle.policy.sandbox.oci_bundle import render_bundle
from rekindle.policy.sandbox.profile import SandboxFloor, SandboxProfile
from rekindle.policy.sandbox.resource_limits import LimitPlan, plan_limits
from rekindle.policy.sandbox.sandbox_command import SandboxCommand
from rekindle.system.sandbox import (
    container_group,
    container_init,
    container_launcher,
    container_runtime,
    limit_group,
    probe,
)
from rekindle.system.sandbox.container_folder import ContainerFolder
from rekindle.system.sandbox.container_runtime import ContainerRuntime

_COUNTERS = "/run/limits"
"""Folder in a container with the counters of its control group."""


class Containment(Protocol):
    """Encloses programs, so that the kernel limits what they can see, reach and use."""

    @property
    def program(self) -> str:
        """Return the path of the program that creates the sandbox."""

    def plan_limits(self, limits: SandboxProfile | SandboxFloor) -> LimitPlan:
        """Decide how to enforce limits on this host."""

    def enclose(
        self,
        sandbox: SandboxCommand,
        argv: Sequence[str],
        *,
        profile: SandboxProfile,
        environment: Mapping[str, str],
        resources: ExitStack,
    ) -> list[str]:
        """Return the command that runs a program in the sandbox.

        `resources` removes what belongs to the sandbox after the program has ended.

        Raises:
            SandboxError: The sandbox or its limits cannot be created.
        """


class Bubblewrap(msgspec.Struct, frozen=True):
    program: str

    def plan_limits(self, limits: SandboxProfile | SandboxFloor) -> LimitPlan:
        return plan_limits(limits, limit_group.list_controllers())

    def enclose(
        self,
        sandbox: SandboxCommand,
        argv: Sequence[str],
        *,
        profile: SandboxProfile,
        environment: Mapping[str, str],
        resources: ExitStack,
    ) -> list[str]:
        plan = self.plan_limits(profile)
        limited = msgspec.structs.replace(
            sandbox,
            limits=probe.find_limits(plan.memory, plan.processes),
            memory=plan.memory,
        )
        command = bubblewrap.render_command(limited, argv)
        return _enter_group(command, plan, environment, resources)


class Container(msgspec.Struct, frozen=True):
    runtime: ContainerRuntime

    @property
    def program(self) -> str:
        return self.runtime.program

    def plan_limits(self, limits: SandboxProfile | SandboxFloor) -> LimitPlan:
        if self.runtime.has_groups:
            return LimitPlan()  # the runtime enforces them
        return plan_limits(limits, limit_group.list_controllers())

    def enclose(
        self,
        sandbox: SandboxCommand,
        argv: Sequence[str],
        *,
        profile: SandboxProfile,
        environment: Mapping[str, str],
        resources: ExitStack,
    ) -> list[str]:
        plan = self.plan_limits(profile)
        mark = environment.get(LAUNCH_VARIABLE, "")
        folder = ContainerFolder(container_runtime.find_containers_folder(), self.program, mark)
        resources.callback(folder.remove)
        group, counters = "", dict[str, str]()
        if self.runtime.has_groups:
            group, counters = container_group.make_group(folder.name)
        ending_with_parent = probe.find_end_with_parent()
        limited = msgspec.structs.replace(
            sandbox,
            limits=(*probe.find_limits(plan.memory, plan.processes), *ending_with_parent),
            memory=plan.memory,
            mounts=(*sandbox.mounts, *(Mount("read", one) for one in counters.values())),
        )
        first = (sys.executable, "-I", "-S", container_init.__file__, _COUNTERS)
        configuration = render_bundle(
            limited,
            [*first, *argv],
            root=str(folder.root),
            user=container_runtime.identify_user(),
            # With its mark, the supervisor finds the first process too.
            environment={LAUNCH_VARIABLE: mark} if mark else {},
            files=container_runtime.find_files(limited.mounts),
            places={path: f"{_COUNTERS}/{name}" for name, path in counters.items()},
            group=group,
            limits=profile,
        )
        folder.write(configuration, sandbox.links)
        run = folder.render_run(*self.runtime.options, descriptors=1)
        launcher = (sys.executable, "-I", "-S", container_launcher.__file__)
        # The runtime would only pass SIGTERM on, which the program may ignore. SIGKILL ends the
        # runtime, and so the container, with the supervisor.
        command = [*ending_with_parent, *launcher, *run]
        return _enter_group(command, plan, environment, resources)


def find_containment(*, is_container: bool) -> Containment:
    """Return what encloses an agent on this host.

    Raises:
        SandboxError: The host cannot create such a sandbox.
    """
    if is_container:
        return Container(container_runtime.require_container())
    return Bubblewrap(probe.require_sandbox())


def _enter_group(
    command: list[str], plan: LimitPlan, environment: Mapping[str, str], resources: ExitStack
) -> list[str]:
    """Return a command that first enters a control group, if the host delegates one."""
    if not plan.files:
        return command
    group = limit_group.make_limit_group(environment.get(LAUNCH_VARIABLE, ""), plan.files)
    resources.callback(group.remove)
    return group.wrap(command)
