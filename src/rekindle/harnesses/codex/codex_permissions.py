"""Convert a persona's permissions to Codex settings."""

import re
from collections.abc import Iterable

from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.codex.codex_settings import (
    render_setting,
)

_WHOLE_TOOL = re.compile(r"(\w+)(?:\(\*?\*?\))?")
"""A rule for a whole tool; Codex cannot limit a part of one."""


_TOOLS = {
    "Bash": "shell",
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(("WebSearch", "WebFetch"), "web"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS"), "read"),
}
"""Kind of each persona tool in Codex, which does nearly everything with its shell."""


def list_permission_settings(permissions: Permissions, draft: str) -> list[str]:
    """Return a persona's permissions as settings that remove whole tools.

    The sandbox limits writing, also for programs that the shell starts. A shell that may write can
    write in the agent's folder and to its draft. The sandbox has no rules for paths below those,
    but protects `.git`, `.codex` and `.agents`. If the persona lists no tools, the user's own Codex
    settings apply; without any, Codex may only read.
    """
    is_limited = permissions.allowed_tools is not None
    allowed = _find_kinds(permissions.allowed_tools or ())
    denied = _find_kinds(permissions.deny or (), refused="read")
    granted = allowed - denied
    off = denied | ({"shell", "write", "web"} - granted if is_limited else set())
    argv = []
    if "write" in denied or (is_limited and not granted & {"shell", "write"}):
        argv.append("--sandbox=read-only")
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
        whole = _WHOLE_TOOL.fullmatch(rule)
        kind = _TOOLS.get(whole[1]) if whole else None
        if kind is None or kind == refused:
            raise UnenforceableError(
                "Codex", rule, hint=f"with Codex, use only whole tools, from: {', '.join(_TOOLS)}"
            )
        kinds.add(kind)
    return kinds
