"""What a CLI needs inside a sandbox: hosts, and the folder with its own state."""

from collections.abc import Mapping

import msgspec


class StateFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A CLI's own folder in the user's home.

    The CLI writes its sessions and logins there, next to its settings.

    The settings name programs that the CLI starts. An agent must not change them, because the
    operator's next session would start those programs outside the sandbox.
    """

    state: tuple[str, ...]
    """Name patterns for entries that the CLI may write. All other entries are read-only."""
    folders: tuple[str, ...] = ()
    """Names of state folders that are created before the launch."""
    is_closed: bool = False
    """Whether the CLI works without creating new entries in the folder itself."""
    settings: Mapping[str, str] = {}
    """Initial content of each settings file, by name. If the folder is not closed, missing files
    are created first, because the agent could create them otherwise.
    """
    settings_folders: tuple[str, ...] = ()
    """Names of settings folders. Like the files, they are created if the folder is not closed."""
    beside: tuple[str, ...] = ()
    """Names of read-only files in the user's home, next to the folder."""


class SandboxNeeds(msgspec.Struct, frozen=True, kw_only=True):
    hosts: tuple[str, ...] = ()
    """Hosts that the CLI uses for its model and login."""
    host_variables: tuple[str, ...] = ()
    """Variables with the address of another model; its host is allowed too."""
    state: StateFolder | None = None
