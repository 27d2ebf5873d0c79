"""The agent CLIs that have a plugin, and the commands with which they install and remove it."""

from collections.abc import Mapping

import msgspec

NAME = "rekindle"
"""Name of the plugin, and of the catalogue that lists it."""
PLUGIN_ID = f"{NAME}@{NAME}"
_FOLDER = "{folder}"


class PluginCli(msgspec.Struct, frozen=True, kw_only=True):
    """An agent CLI with plugins. Each command is a list of arguments for its program."""

    title: str
    harness: str
    folder: str = "."
    """Folder to install, relative to the package's plugin files."""
    hooks: str
    """The plugin's hooks, relative to the package's plugin files."""
    install: tuple[tuple[str, ...], ...]
    remove: tuple[tuple[str, ...], ...]
    listing: tuple[str, ...] = ()
    """Command that lists the plugins; empty if it is too slow, and `metadata` is read instead."""
    metadata: str = ""
    """File in the CLI's own folder that names the folder of an installed plugin."""
    manifest: str = ""
    """File in the plugin's folder with its version."""
    settings: tuple[str, ...]
    """Files in the CLI's own folder that these commands change."""
    environment: Mapping[str, str] = {}

    def make_install(self, folder: str) -> list[list[str]]:
        """Return the commands that install the plugin from a folder."""
        return [
            [folder if word == _FOLDER else word for word in command] for command in self.install
        ]


CLIS = {
    "claude": PluginCli(
        title="Claude Code",
        harness="claude-code",
        hooks="claude/hooks/hooks.json",
        install=(("plugin", "install", NAME, "--marketplace", _FOLDER),),
        remove=(("plugin", "uninstall", PLUGIN_ID), ("plugin", "marketplace", "remove", NAME)),
        listing=("plugin", "list", "--json"),
        settings=("settings.json",),
    ),
    "codex": PluginCli(
        title="Codex",
        harness="codex",
        hooks="codex/hooks/hooks.json",
        install=(("plugin", "marketplace", "add", _FOLDER), ("plugin", "add", PLUGIN_ID)),
        remove=(("plugin", "remove", PLUGIN_ID), ("plugin", "marketplace", "remove", NAME)),
        listing=("plugin", "list", "--json"),
        settings=("config.toml",),
    ),
    "gemini": PluginCli(
        title="Gemini CLI",
        harness="gemini",
        folder="gemini",
        hooks="gemini/hooks/hooks.json",
        install=(("extensions", "link", _FOLDER, "--consent"),),
        remove=(("extensions", "uninstall", NAME),),
        metadata=f"extensions/{NAME}/.gemini-extension-install.json",
        manifest="gemini-extension.json",
        settings=(
            *("settings.json", "trustedFolders.json", "extension_integrity.json"),
            "extensions/extension-enablement.json",
        ),
        # Otherwise, it would also trust the folder in which the command runs, for good.
        environment={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
}
