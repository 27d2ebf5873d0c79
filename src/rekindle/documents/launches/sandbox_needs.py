"""Hosts and folders that a CLI needs inside a sandbox."""

from collections.abc import Mapping

import msgspec


class StateFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A CLI's own folder in the user's home.

    The CLI writes its sessions and logins there, next to its settings. An agent must not change the
    settings, because they name programs that the operator's next session would start outside the
    sandbox.
    """

    state: tuple[str, ...]
    """Name patterns for entries that the CLI may write. All other entries are read-only."""
    folders: tuple[str, ...] = ()
    """Names of state folders that are created before the launch."""
    is_closed: bool = False
    """Whether the CLI works without creating other entries in the folder."""
    settings: Mapping[str, str] = {}
    """Initial content of each settings file, by name. If the folder is not closed, Rekindle creates
    missing files before the launch, so that the agent cannot.
    """
    settings_folders: tuple[str, ...] = ()
    """Names of settings folders. Missing ones are created if the folder is not closed."""
    beside: tuple[str, ...] = ()
    """Names of read-only files in the user's home, next to the folder."""


class GatewayNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """How a CLI asks its model through a gateway, which adds the key."""

    url: str
    """Address of the model that the CLI asks by default."""
    url_variable: str
    """Variable that contains another address. The CLI or Rekindle reads it."""
    key_variables: tuple[str, ...]
    """Variables that get a placeholder instead of the key."""
    arguments: tuple[str, ...] = ()
    """Arguments that make the CLI use the address `{url}`, if a variable does not."""


class SandboxNeeds(msgspec.Struct, frozen=True, kw_only=True):
    hosts: tuple[str, ...] = ()
    """Hosts that the CLI uses for its model and login."""
    host_variables: tuple[str, ...] = ()
    """Variables that can contain another model's address, whose host is then allowed too."""
    state: StateFolder | None = None
    gateway: GatewayNeeds | None = None
    """None if the CLI cannot use a gateway."""
