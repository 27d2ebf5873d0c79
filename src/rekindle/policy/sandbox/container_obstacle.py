"""Explain why no container can be created on a host, and what the operator can do about it."""

from collections.abc import Sequence

import msgspec

from rekindle.policy.sandbox.obstacle import OFF_HINT, SandboxObstacle

RUNTIMES = ("crun", "runc")
"""The OCI runtimes that Rekindle can use, the preferred one first."""


class TriedRuntime(msgspec.Struct, frozen=True):
    name: str
    error: str


def explain_container_obstacle(tried: Sequence[TriedRuntime], *, is_root: bool) -> SandboxObstacle:
    """Explain why no runtime works. `tried` is empty if none is installed."""
    if not tried:
        names = "crun or runc" if is_root else "crun"
        return SandboxObstacle(
            f"`sandbox: container` needs an OCI runtime ({names}), which is not installed",
            f"install it (`sudo apt install crun`, `sudo dnf install crun`), {OFF_HINT}",
        )
    errors = "; ".join(dict.fromkeys(f"{one.name}: {one.error}" for one in tried))
    if "hybrid" in errors:
        hint = f"mount only one version of control groups, install runc and run as root, {OFF_HINT}"
    elif not is_root:
        hint = (
            "permit user namespaces (`rekindle doctor` shows whether bubblewrap can create one), "
            f"{OFF_HINT}"
        )
    else:
        hint = f"try it with `crun run`, install the other runtime, {OFF_HINT}"
    return SandboxObstacle(f"no container can be created here: {errors}", hint)
