"""Generate the plugins for Claude Code, Codex and Gemini CLI, and the catalogues that list them.

The hooks are those of `rekindle hooks install`, but they call a shim instead of a path on this
machine. Each plugin has its own copy of the shim and the skill, because the CLIs copy a plugin's
folder without its links.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from rekindle import __version__
from rekindle.hook.special_events import BRAKE_EVENTS
from rekindle.plugins import Harnesses

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "src/rekindle/plugin_files"
NAME = "rekindle"
DESCRIPTION = (
    "Records your sessions, and tells the next session about the state of the work after a crash"
    " or a full context window."
)
ADDRESS = "https://github.com/rekindle-agents/rekindle"
SHIM = "shim/rekindle.sh"
SKILL = "skills/rekindle/SKILL.md"
ABOUT = {"name": NAME, "version": __version__, "description": DESCRIPTION}
OWNER = {"name": "The Rekindle contributors"}
README = """\
# Rekindle for {program}

This {kind} records your {program} sessions with [Rekindle]({address}). If a session crashes, is
killed or fills its context window, the next one in the same folder starts with a notice and the
state of the work: the last task, the relay, the open loops and the decisions.

It needs the `rekindle` command: `uv tool install rekindle-agents`. Without it, sessions work as
before, and {program} shows one line when a session starts. The {kind} also brings an MCP server and
a skill, so that the agent can read and propose entries itself. See [the
guide]({address}/blob/main/docs/guides/plugins.md) for what is recorded and where, and how to remove
it.
"""


def list_files() -> dict[Path, str]:
    """Return the text of every generated file, by its path."""
    files = {ROOT / name: text for name, text in _list_catalogues("src/rekindle/plugin_files/")}
    files |= {FILES / name: text for name, text in _list_catalogues("")}
    for folder, contents in {
        "claude": _list_claude(),
        "codex": _list_codex(),
        "gemini": _list_gemini("${extensionPath}"),
    }.items():
        for name in (SHIM, SKILL):
            contents[name] = (FILES / name).read_text(encoding="utf-8")
        files |= {FILES / folder / name: text for name, text in contents.items()}
    # Gemini CLI installs a repository only if the extension is at its root.
    at_root = _list_gemini("${extensionPath}/src/rekindle/plugin_files/gemini")
    files |= {ROOT / name: text for name, text in at_root.items() if name != "README.md"}
    files[ROOT / SKILL] = (FILES / SKILL).read_text(encoding="utf-8")
    return files


def _list_catalogues(folder: str) -> list[tuple[str, str]]:
    claude = {
        "name": NAME,
        "description": DESCRIPTION,
        "owner": OWNER,
        "plugins": [{"name": NAME, "source": f"./{folder}claude", "description": DESCRIPTION}],
    }
    codex = {
        "name": NAME,
        "interface": {"displayName": "Rekindle"},
        "plugins": [
            {
                "name": NAME,
                "source": {"source": "local", "path": f"./{folder}codex"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
        ],
    }
    return [
        (".claude-plugin/marketplace.json", _render(claude)),
        (".agents/plugins/marketplace.json", _render(codex)),
    ]


def _list_claude() -> dict[str, str]:
    about = {**ABOUT, "author": OWNER, "homepage": ADDRESS, "license": "Apache-2.0"}
    server = _make_server("${CLAUDE_PLUGIN_ROOT}")
    return {
        ".claude-plugin/plugin.json": _render(about),
        ".mcp.json": _render({"mcpServers": {NAME: server}}),
        "hooks/hooks.json": _render_hooks("claude-code", "${CLAUDE_PLUGIN_ROOT}"),
        "README.md": README.format(program="Claude Code", kind="plugin", address=ADDRESS),
    }


def _list_codex() -> dict[str, str]:
    paths = {"skills": "./skills", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    # Codex does not tell an MCP server where the plugin is, so this is the text of the shim.
    server = {"command": "sh", "args": ["-c", (FILES / SHIM).read_text("utf-8"), NAME, "mcp"]}
    return {
        ".codex-plugin/plugin.json": _render({**ABOUT, **paths}),
        ".mcp.json": _render({"mcpServers": {NAME: server}}),
        "hooks/hooks.json": _render_hooks("codex", "$PLUGIN_ROOT"),
        "README.md": README.format(program="Codex", kind="plugin", address=ADDRESS),
    }


def _list_gemini(root: str) -> dict[str, str]:
    return {
        "gemini-extension.json": _render({**ABOUT, "mcpServers": {NAME: _make_server(root)}}),
        "hooks/hooks.json": _render_hooks("gemini", root),
        "README.md": README.format(program="Gemini CLI", kind="extension", address=ADDRESS),
    }


def _make_server(root: str) -> dict[str, Any]:
    # `sh` also runs the shim if an archive has lost its permissions.
    return {"command": "sh", "args": [f"{root}/{SHIM}", "mcp"]}


def _render_hooks(harness: str, root: str) -> str:
    """Return a hooks file whose commands call the shim in the folder `root`."""
    program = ["sh", f"{root}/{SHIM}", "hook"]
    hooks = Harnesses()[harness].hooks(program, supervised=False)
    text = {
        event: entries
        for event, entries in hooks.items()
        if event not in BRAKE_EVENTS  # only for sessions that Rekindle starts
    }
    # The CLI or the shell replaces the variable, so it must not be in single quotes.
    quoted, wanted = shlex.quote(program[1]), f'"{program[1]}"'
    return _render({"hooks": text}).replace(quoted, json.dumps(wanted)[1:-1])


def _render(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
