"""Let Codex trust the plugin's hooks, which it does not run otherwise, through its app server."""

import json
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from rekindle.documents.plugins import plugin_list
from rekindle.documents.plugins.plugin_clis import PLUGIN_ID
from rekindle.documents.plugins.plugin_list import ListedHook
from rekindle.system.files import durable_files
from rekindle.system.processes.cli_program import CliProgram, JsonConversation


def list_hooks(program: CliProgram) -> list[ListedHook]:
    """Return the plugin's hooks, each with its trust."""
    with _open_server(program) as server:
        return _list_hooks(server)


def trust_hooks(program: CliProgram, accepted: Collection[str]) -> bool:
    """Trust the plugin's hooks if their commands are those that the user has accepted.

    Return whether Codex now trusts all of them.
    """
    with _open_server(program) as server:
        hooks = _list_hooks(server)
        if not hooks or {hook.command for hook in hooks} - set(accepted):
            return False
        _edit_state(server, {f"{json.dumps(hook.key)}.trusted_hash": hook.hash for hook in hooks})
        return all(hook.is_trusted for hook in _list_hooks(server))


def forget_trust(program: CliProgram, settings: Path) -> None:
    """Remove the trust in the plugin's hooks from Codex's settings."""
    try:
        config = tomllib.loads((durable_files.read_bytes(settings) or b"").decode())
        keys = [key for key in config["hooks"]["state"] if key.startswith(f"{PLUGIN_ID}:")]
    except (ValueError, LookupError, TypeError):
        return  # there is no trust to remove
    if keys:
        with _open_server(program) as server:
            _edit_state(server, {json.dumps(key): None for key in keys})


@contextmanager
def _open_server(program: CliProgram) -> Iterator[JsonConversation]:
    with program.converse(["app-server"]) as server:
        server.ask("initialize", {"clientInfo": {"name": "rekindle", "version": "1"}})
        server.notify("initialized")
        yield server


def _list_hooks(server: JsonConversation) -> list[ListedHook]:
    return plugin_list.find_hooks(server.ask("hooks/list", {"cwds": [str(Path.home())]}))


def _edit_state(server: JsonConversation, values: dict[str, str | None]) -> None:
    """Set keys below Codex's `hooks.state`, or remove those without a value."""
    edits = [
        {"keyPath": f"hooks.state.{key}", "value": value, "mergeStrategy": "replace"}
        for key, value in values.items()
    ]
    server.ask("config/batchWrite", {"edits": edits})
