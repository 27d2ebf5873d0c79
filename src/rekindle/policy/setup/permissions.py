"""Define the three permission levels of `init`, and find the rule for a refused call.

Tools are given by their Claude Code names, which other harnesses translate.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rekindle.documents.manifest import Permissions, Persona

PermissionLevel = Literal["read", "edit", "run"]
_READ = ("Read", "Grep", "Glob")
_EDIT = (*_READ, "Edit", "Write")
_RUN = (*_EDIT, "Bash")
_OWN_NAMES = {
    "write_file": "Write",
    "replace": "Edit",
    "run_shell_command": "Bash",
    "read_file": "Read",
    "glob": "Glob",
    "grep_search": "Grep",
}
"""Claude Code names for Gemini CLI tools."""
_PLAIN_COMMAND = re.compile(r"[\w./@:=+-]+(?: [\w./@:=+-]+)*")
"""A command without quotes or operators, whose first words a rule can use."""


_ALREADY_PERMITTED = {
    "codex": "the persona permits the tools, but Codex's sandbox refused the call, because it may "
    "write only to the agent's folder; keep the work there, or add a folder to "
    "`writable_roots` of `[sandbox_workspace_write]` in Codex's config.toml"
}
_ALREADY_PERMITTED_BY_PERSONA = (
    "the persona permits the tools, but the CLI refused the call: check the CLI's own settings"
)
"""Hint for a refused call to a tool that the persona already permits."""


class LevelRow(msgspec.Struct, frozen=True):
    """One permission level."""

    words: str
    tools: tuple[str, ...]


PERMISSION_LEVELS: dict[PermissionLevel, LevelRow] = {
    "read": LevelRow("read only", _READ),
    "edit": LevelRow("edit this folder", _EDIT),
    "run": LevelRow("edit and run commands", _RUN),
}
DEFAULT_LEVEL: PermissionLevel = "run"


def make_permissions(level: PermissionLevel, harness: str) -> Permissions:
    """Return a level's permissions for a harness that accepts tool permissions."""
    if harness == "codex":
        # Codex reads files with its shell, and its sandbox decides what the shell may write.
        return Permissions(deny=["Edit", "Write"]) if level == "read" else _allow_tools(_RUN)
    return _allow_tools(PERMISSION_LEVELS[level].tools)


def make_persona_name(level: PermissionLevel, harness: str) -> str:
    """Return the name of the persona that `init` writes for a level."""
    if harness == "codex":
        return "codex-read" if level == "read" else "codex-run"
    return {"read": "read-only", "edit": "edit", "run": "edit-and-run"}[level]


def explain_level(level: PermissionLevel, harness: str) -> str:
    """Describe in one line what a level permits with this harness."""
    if harness == "codex" and level != "read":
        return "edit and run commands, in Codex's sandbox, which can write only to this folder"
    return PERMISSION_LEVELS[level].words


def list_narrower(level: PermissionLevel, harness: str) -> list[str]:
    """Return the options that permit less than a level, with what they permit."""
    given = make_permissions(level, harness)
    below = list(PERMISSION_LEVELS)[: list(PERMISSION_LEVELS).index(level)]
    return [
        f"--tools {name} ({explain_level(name, harness)})"
        for name in reversed(below)
        if make_permissions(name, harness) != given
    ]


def explain_rest(level: PermissionLevel, harness: str) -> str:
    """Describe in one sentence what happens to tools that a level does not permit."""
    if harness == "codex" and level == "read":
        return "Codex still runs its shell, in a read-only sandbox."
    return "Every other tool is refused."


def _allow_tools(tools: Iterable[str]) -> Permissions:
    return Permissions(allowed_tools=list(tools))


def may_write(persona: Persona) -> bool:
    """Return whether a persona may change files."""
    permissions = persona.permissions
    return permissions is not None and permissions.allowed_tools is not None and persona.writes


def explain_reach(persona: Persona, name: str, harness: str) -> tuple[str, bool]:
    """Return a warning if a headless agent cannot write, or "" if it can.

    The second value tells whether the agent has no permissions at all.
    """
    if may_write(persona):
        return "", False
    permissions = persona.permissions or Permissions()
    if permissions.allowed_tools is not None or not persona.writes:
        return f"persona {name} permits only reading", False
    words = (
        f"no persona permits the agent any tool: without a terminal, {harness} refuses to write "
        "files and run commands"
    )
    return words, True


def permit_tools(persona: Persona, calls: Iterable[str], harness: str) -> list[str]:
    """Return an `allowed_tools` list that also permits these tools.

    If the persona has no list, it gets the smallest level that includes these tools. A list refuses
    everything else, and an agent that may write but not read is useless.
    """
    needed_tools = [_OWN_NAMES.get(tool, tool) for tool in calls]
    allowed = persona.permissions.allowed_tools if persona.permissions else None
    if allowed is None:
        lists = [make_permissions(level, harness).allowed_tools for level in PERMISSION_LEVELS]
        fits = [tools for tools in lists if tools and set(needed_tools) & set(_RUN) <= set(tools)]
        allowed = fits[0] if fits else list(_RUN)
    return list(dict.fromkeys([*allowed, *needed_tools]))


def explain_permit(name: str, persona: Persona, calls: Sequence[str], harness: str) -> str:
    """Return the setting that permits refused calls, or a hint if the persona has the tools."""
    tools = permit_tools(persona, calls, harness)
    permissions = persona.permissions or Permissions()
    if tools == permissions.allowed_tools:
        return _ALREADY_PERMITTED.get(harness, _ALREADY_PERMITTED_BY_PERSONA)
    # If a persona denies file tools, the whole Codex sandbox is read-only.
    is_read_only = harness == "codex" and bool(permissions.deny)
    without = ", without `deny:`" if is_read_only else ""
    deny = [] if is_read_only else permissions.deny or []
    return f"set in rekindle.yaml: {render_permission_setting(name, tools, deny)}{without}"


def render_permission_setting(name: str, tools: Iterable[str], deny: Sequence[str] = ()) -> str:
    """Return the rekindle.yaml setting that gives a persona these tools, on one line.

    The line replaces the persona's permissions, so it repeats their `deny` rules.
    """
    denied = f", deny: {render_tools(deny)}" if deny else ""
    return (
        f"personas: {{{name}: {{permissions: {{allowed_tools: {render_tools(tools)}{denied}}}}}}}"
    )


def render_tools(rules: Iterable[str]) -> str:
    """Render permission rules as a YAML list."""
    return f"[{', '.join(map(_quote_rule, rules))}]"


def _quote_rule(rule: str) -> str:
    return rule if rule.isidentifier() else msgspec.json.encode(rule).decode()


def find_rule(tool: str, arguments: Mapping[str, Any], allowed: Sequence[str]) -> str:
    """Return the rule for `allowed_tools` that permits a refused call.

    If the persona already has the tool, the CLI refused the path, because file tools are restricted
    to the agent's folder unless a rule names a path. If it permits only some commands, the rule
    names the first two words of the refused command instead of permitting the whole shell.
    """
    path, command = arguments.get("file_path"), arguments.get("command")
    if tool in allowed and isinstance(path, str) and path.startswith("/"):
        return f"{tool}(/{path})"
    name = _OWN_NAMES.get(tool, tool)
    permits_some = any(rule.startswith(f"{name}(") for rule in allowed)
    if permits_some and isinstance(command, str) and _PLAIN_COMMAND.fullmatch(command):
        return f"{name}({' '.join(command.split()[:2])}:*)"
    return tool
