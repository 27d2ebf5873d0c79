"""Convert a persona's permissions to Codex settings."""

import re
from collections.abc import Iterable

from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.codex.codex_settings import (
    render_setting,
)

_WHOLE_TOOL = re.compile(r"(\w+)(?:\(\*?\*?\))?")
"""A rule for a whole tool, because Codex cannot limit only part of a tool."""


_TOOLS = {
    "Bash": "shell",
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(("WebSearch", "WebFetch"), "web"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS"), "read"),
}
"""Codex's equivalent of each persona tool. Codex uses its shell for nearly everything."""


def list_permission_settings(
    permissions: Permissions, draft: str, *, is_sandboxed: bool = False
) -> list[str]:
    """Convert a persona's permissions to settings that remove whole tools.

    Codex's sandbox limits writing, including by programs that the shell starts. A shell with write
    permission can write to the agent's folder and its draft. The sandbox has no rules for paths
    inside these, but protects `.git`, `.codex` and `.agents`. If the persona lists no tools, the
    user's own Codex settings apply. If there are none, Codex may only read.
    """
    is_limited = permissions.allowed_tools is not None
    allowed = _find_kinds(permissions.allowed_tools or ())
    denied = _find_kinds(permissions.deny or (), refused="read")
    if permissions.ask and is_limited and "shell" not in allowed:
        raise UnenforceableError(
            "Codex",
            permissions.ask[0],
            hint="`ask:` limits a shell that the agent has: add `Bash` to `allowed_tools`, which "
            "allows all other commands, or remove `ask:`",
        )
    is_gated = permissions.ask and "shell" not in denied
    granted = allowed - denied
    off = denied | ({"shell", "write", "web"} - granted if is_limited else set())
    argv = []
    if "write" in denied or (is_limited and not granted & {"shell", "write"}):
        argv.append("--sandbox=read-only")
    elif is_gated or (is_limited and is_sandboxed):
        # Rekindle's own sandbox limits the shell. A held call needs the network or another folder,
        # and inside that sandbox Codex cannot create its own, so every command would fail.
        argv.append("--sandbox=danger-full-access")
    elif is_limited:
        argv.append("--sandbox=workspace-write")
        if draft:
            argv.append(f"--add-dir={draft.rpartition('/')[0]}")
    if "shell" in off:
        argv += ["--disable=shell_tool", "--disable=unified_exec"]
    if "web" in off:
        argv.append(render_setting("web_search", "disabled"))
    return argv


def _find_kinds(rules: Iterable[str], refused: str = "") -> set[str]:
    kinds = set()
    for rule in filter(None, rules):
        match = _WHOLE_TOOL.fullmatch(rule)
        kind = _TOOLS.get(match[1]) if match else None
        if kind is None or kind == refused:
            raise UnenforceableError(
                "Codex", rule, hint=f"with Codex, list only whole tools: {', '.join(_TOOLS)}"
            )
        kinds.add(kind)
    return kinds
