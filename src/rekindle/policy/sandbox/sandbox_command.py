"""Describe a sandbox for the programs that create one: bubblewrap, or an OCI runtime."""

from collections.abc import Mapping

import msgspec

from rekindle.policy.sandbox.mounts import Mount


class SandboxCommand(msgspec.Struct, frozen=True, kw_only=True):
    program: str
    """Path of the program that creates the sandbox."""
    mounts: tuple[Mount, ...]
    links: Mapping[str, str] = {}
    """System links, such as `/bin`, with their targets."""
    folder: str
    """Working directory."""
    has_network: bool = False
    """Whether the host's network is shared."""
    limits: tuple[str, ...] = ()
    """Command that limits the program inside the sandbox; empty if there are no limits."""
    memory: int | None = None
    """Maximum size in bytes of each folder that is in memory; None if nothing limits it."""
    is_terminal: bool = False
    """Whether a person uses the program in a terminal, whose session it must not leave."""
