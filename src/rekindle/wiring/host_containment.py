"""Choose how a fleet host contains its agents, and check that it can."""

import os
from collections.abc import Iterable

import msgspec

from rekindle.documents.manifest_sandbox import CONTAINER
from rekindle.errors import SandboxError, UsageError
from rekindle.policy.sandbox.host_floor import make_host_floor
from rekindle.policy.sandbox.obstacle import OFF_HINT
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.system import host
from rekindle.system.sandbox import container_runtime, containments, host_paths, probe

_HOST_OFF = "or start the worker with `--sandbox off` to run agents without this protection"


def find_host_floor(
    kind: str,
    slots: int,
    *,
    secrets: Iterable[str] = (),
    memory: int | None = None,
    processes: int | None = None,
    cpu: float | None = None,
) -> SandboxFloor | None:
    """Return the weakest sandbox that a host permits, or None if `kind` is `off`.

    `secrets` are the files with the worker's own keys.

    Raises:
        SandboxError: This host cannot create the sandbox, or cannot set its limits.
        UsageError: There is a limit, but no sandbox.
    """
    if kind == "off":
        limits = {"--memory": memory, "--processes": processes, "--cpu": cpu}
        if found := [option for option, limit in limits.items() if limit is not None]:
            raise UsageError(
                f"`{found[0]}` has no effect with `--sandbox off`",
                hint=f"leave out one of them; an agent's own `sandbox:` can have {found[0][2:]}",
            )
        return None
    is_container = kind == CONTAINER
    find = container_runtime.find_container_obstacle if is_container else probe.find_obstacle
    if obstacle := find():
        raise SandboxError(obstacle.words, hint=obstacle.hint.replace(OFF_HINT, _HOST_OFF))
    floor = make_host_floor(
        host.find_memory(),
        slots,
        memory=memory,
        processes=processes,
        cpu=cpu,
        is_container=is_container,
    )
    plan = containments.find_containment(is_container=is_container).plan_limits(floor)
    try:
        probe.find_limits(plan.memory, plan.processes)
    except SandboxError as error:
        # A host always limits its agents, whatever their `sandbox:` says.
        raise SandboxError(str(error), hint=f"install util-linux, {_HOST_OFF}") from error
    if plan.ignores_cpu:
        raise SandboxError(
            "`--cpu` has no effect on this host, because no control group is delegated to the "
            "worker",
            hint="run the worker as a service with `Delegate=yes`, or leave out `--cpu`",
        )
    return msgspec.structs.replace(floor, secrets=host_paths.find_secrets(secrets))


def find_missing_limit(floor: SandboxFloor | None) -> str:
    """Return a note if a limit does not hold for all processes of an agent together, or ""."""
    if floor is None:
        return ""
    plan = containments.find_containment(is_container=floor.is_container).plan_limits(floor)
    service = "as a service with `Delegate=yes`."
    if plan.processes is not None and os.geteuid() == 0:
        memory = ", and memory only for each of them" if plan.memory is not None else ""
        user = "" if plan.memory is not None else "as an ordinary user or "
        container = "" if floor.is_container else "with `--sandbox container` or "
        return (
            f"note: the number of an agent's processes is not limited{memory}, because this worker "
            f"runs as root without a control group. Run the worker {user}{container}{service}"
        )
    if plan.memory is not None:
        return (
            "note: memory is limited for each process of an agent, not for all together, because "
            f"no control group is delegated to this worker. Run it {service}"
        )
    return ""
