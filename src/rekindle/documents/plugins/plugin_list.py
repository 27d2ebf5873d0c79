"""Read the lists of installed plugins and hooks that agent CLIs print as JSON."""

import json
from typing import Any

import msgspec

from rekindle.documents.plugins.plugin_clis import PLUGIN_ID


class InstalledPlugin(msgspec.Struct, frozen=True):
    """Rekindle's plugin, as a CLI lists it."""

    version: str
    """Version of the plugin; empty if its files are gone."""
    is_enabled: bool = True


class ListedHook(msgspec.Struct, frozen=True):
    """One of the plugin's hooks, as Codex lists it."""

    key: str
    command: str
    hash: str
    is_trusted: bool


def find_plugin(text: str) -> InstalledPlugin | None:
    """Return Rekindle's plugin from a CLI's list, or None if it is not installed.

    A CLI may print warnings around the list.
    """
    listed = _parse_list(text)
    entries = listed.get("installed", []) if isinstance(listed, dict) else listed
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        if PLUGIN_ID in {entry.get("id"), entry.get("pluginId")}:
            # Claude Code reads the plugin from its folder, and lists errors if that is gone.
            version = entry.get("folderVersion") or entry.get("version")
            return InstalledPlugin(
                "" if entry.get("errors") else str(version or ""), entry.get("enabled") is not False
            )
    return None


def read_source(metadata: str) -> str:
    """Return the folder that Gemini CLI reads the extension from; empty for its own copy."""
    value = _parse_list(metadata)
    is_link = isinstance(value, dict) and value.get("type") == "link"
    return str(value.get("source", "")) if is_link else ""


def read_version(manifest: str) -> str:
    """Return the version in a plugin's manifest, or "" if it has none."""
    value = _parse_list(manifest)
    return str(value.get("version", "")) if isinstance(value, dict) else ""


def _parse_list(text: str) -> Any:
    """Return the first JSON value that starts on its own line, or None."""
    decoder = json.JSONDecoder()
    position = 0
    for line in text.splitlines(keepends=True):
        if line[:1] in {"[", "{"}:
            try:
                return decoder.raw_decode(text, position)[0]
            except (ValueError, RecursionError):
                pass
        position += len(line)
    return None


def find_hooks(answer: Any) -> list[ListedHook]:
    """Return the plugin's hooks from Codex's answer to `hooks/list`."""
    data = answer.get("data") if isinstance(answer, dict) else None
    groups = [group for group in data or () if isinstance(group, dict)]
    hooks = {
        str(hook.get("key")): ListedHook(
            str(hook.get("key")),
            str(hook.get("command")),
            str(hook.get("currentHash")),
            hook.get("trustStatus") == "trusted",
        )
        for group in groups
        for hook in group.get("hooks") or ()
        if isinstance(hook, dict) and hook.get("pluginId") == PLUGIN_ID
    }
    return list(hooks.values())


def list_commands(text: str) -> list[str]:
    """Return the commands in a plugin's hooks file, each once."""
    hooks = json.loads(text)["hooks"]
    commands = [
        handler["command"]
        for entries in hooks.values()
        for entry in entries
        for handler in entry["hooks"]
    ]
    return list(dict.fromkeys(commands))
