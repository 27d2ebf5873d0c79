"""The permissions of a persona as settings of Codex."""

import re
from collections.abc import Iterable

from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.codex.codex_settings import (
    render_setting,
)

_WHOLE_TOOL = re.compile(r"(\w+)(?:\(\*?\*?\))?")
"""A permission for a whole tool; Codex has none for a part of one."""


_TOOLS = {
    "Bash": "shell",
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "write"),
    **dict.fromkeys(("WebSearch", "WebFetch"), "web"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS"), "read"),
}
"""Kind of each tool of a persona in Codex, which does nearly everything with its shell."""


def list_permission_settings(permissions: Permissions, draft: str) -> list[str]:
    """Return a persona's permissions as Codex can enforce them: by removing whole tools.

    Writing is limited by the sandbox, which also applies to programs that the shell starts; a shell
    that may write can write in the agent's folder and to its draft. The sandbox has no rule for a
    path below those, but protects `.git`, `.codex` and `.agents`. If the persona lists nothing, the
    user's own settings for Codex apply; without any, Codex may only read.
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
                "Codex", rule, hint=f"for Codex, name whole tools of: {', '.join(_TOOLS)}"
            )
        kinds.add(kind)
    return kinds
