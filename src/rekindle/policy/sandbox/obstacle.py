"""Explain why bubblewrap does not work on a host, and what the operator can do about it."""

import msgspec

OFF_HINT = "or write `sandbox: off` to run the agent without this protection"
"""The last part of every hint."""
_INSTALL = f"install it (`sudo apt install bubblewrap`, `sudo dnf install bubblewrap`), {OFF_HINT}"


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    is_linux: bool = True
    is_installed: bool = True
    error: str = ""
    """The error from the probe; empty if it succeeded."""
    apparmor_restricts: bool = False
    """Whether AppArmor denies user namespaces to ordinary programs (Ubuntu 24.04 and later)."""
    namespaces_off: str = ""
    """Kernel setting that forbids user namespaces, with the value that would permit them; empty if
    no setting forbids them.
    """


class SandboxObstacle(msgspec.Struct, frozen=True):
    words: str
    hint: str


def explain_obstacle(facts: HostFacts) -> SandboxObstacle | None:
    """Explain why no sandbox can be created, or return None if one can."""
    if not facts.is_linux:
        return SandboxObstacle(
            "`sandbox: on` needs bubblewrap, which exists for Linux only",
            f"run the agent in a container or on a Linux host, {OFF_HINT}",
        )
    if not facts.is_installed:
        return SandboxObstacle("`sandbox: on` needs bubblewrap, which is not installed", _INSTALL)
    if not facts.error:
        return None
    words = f"bubblewrap cannot make a sandbox here: {facts.error}"
    if facts.namespaces_off:
        hint = f"permit user namespaces: `sudo sysctl -w {facts.namespaces_off}`, {OFF_HINT}"
    elif facts.apparmor_restricts:
        hint = (
            "AppArmor forbids user namespaces: add a profile for bwrap"
            " (/etc/apparmor.d/bwrap with `userns,`), or"
            f" `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, {OFF_HINT}"
        )
    else:
        hint = f"in a container, permit user namespaces and mounts of /proc; {OFF_HINT}"
    return SandboxObstacle(words, hint)
