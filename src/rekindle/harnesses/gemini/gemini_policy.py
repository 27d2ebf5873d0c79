"""Convert a persona's permissions to rules in a Gemini CLI policy file.

If a persona allows tools, all other tools are denied. The rules override the user's settings, and
only an administrator's rules override them. They replace the user's own policy files, which the CLI
ignores if it gets a policy file.

A command can be allowed by its prefix, and then no other command is allowed. A command cannot be
denied by its prefix, because `/usr/bin/touch`, `env touch` and `sh -c touch` have different
prefixes.

The CLI refuses to redirect a command's output, as in `make >log`, unless the rule says otherwise. A
rule for the whole shell does; a command that is allowed by its prefix must not write any file.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.ask_gate import parse_rules

SHELL = "run_shell_command"
TOOLS = frozenset(
    """
    activate_skill ask_user enter_plan_mode exit_plan_mode get_internal_docs glob google_web_search
    grep_search invoke_agent list_directory list_mcp_resources read_file read_many_files
    read_mcp_resource replace run_shell_command update_topic web_fetch write_file write_todos
    """.split()  # noqa: SIM905 - shorter than a list with twenty lines
)
_ELSEWHERE = {
    "Bash": (SHELL,),
    "Edit": ("replace",),
    "Glob": ("glob",),
    "Grep": ("grep_search",),
    "LS": ("list_directory",),
    "MultiEdit": ("replace",),
    "NotebookEdit": ("replace",),
    "Read": ("read_file", "read_many_files"),
    "Task": ("invoke_agent",),
    "TodoWrite": ("write_todos",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("google_web_search",),
    "Write": ("write_file",),
}
"""Tool names from other CLIs, so that a persona works with every CLI."""

_ALL = "*"
_OF_A_SERVER = re.compile(r"mcp_(\*|[A-Za-z0-9-]+_\*|(\*|[A-Za-z0-9-]+)_[A-Za-z0-9_-]+)\Z")
"""MCP tool names and wildcards that the CLI supports. Server names have no underscore."""
_WHOLE_TOOL = re.compile(r"(\w+)\(\*?\*?\)\Z")
"""Rule for a whole tool, such as `Bash(*)`."""
_COMMAND = re.compile(rf"(?:Bash|{SHELL})\((?P<prefix>[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\)\Z")
_REST = re.compile(r":\*\Z| \*\Z")
"""End of a rule that allows any text after it."""

_DENIED, _ALLOWED, _OTHERS = 999, 998, 997
_WRITING = ("write_file", "replace")


def render_policy(permissions: Permissions | None) -> str:
    """Return the text of the policy file, or "" if the persona has no permissions.

    Raises:
        UnenforceableError: The CLI cannot enforce one of the rules.
    """
    if permissions is None or (
        permissions.allowed_tools is None and not permissions.deny and not permissions.ask
    ):
        return ""
    denied = filter(None, permissions.deny or ())
    rules = [rule for pattern in denied for rule in _render_rules(pattern, "deny", _DENIED)]
    for pattern in _list_asked(permissions):
        rules += _render_rules(pattern)
    if permissions.allowed_tools is not None:
        rules += [
            rule
            for pattern in filter(None, permissions.allowed_tools)
            for rule in _render_rules(pattern)
        ]
        rules.append(_render_rule("deny", _OTHERS, toolName=_ALL))
    return "\n".join(rules)


def find_tools(name: str) -> tuple[str, ...]:
    """Return the CLI's names for a tool in a rule."""
    return _ELSEWHERE.get(name, (name,))


def _list_asked(permissions: Permissions) -> Iterator[str]:
    """Yield rules that allow the calls which the gate holds, because the CLI would refuse them."""
    allowed = permissions.allowed_tools or ()
    for rule in parse_rules(permissions.ask, "Gemini CLI"):
        if rule.tool not in allowed:
            yield f"{rule.tool}({rule.text}:*)" if rule.text else rule.tool


def render_protection(paths: Sequence[str], draft: str, folder: str = "") -> str:
    """Return a policy file that denies file tools access to these paths, except for the draft.

    The rules have an administrator's rank, so neither a persona nor the user's settings override
    them. The CLI does not resolve paths before comparing them, so every path that contains one of
    these names is denied. A name without a dot is too common for that, so only its own path
    (absolute or relative to `folder`) is denied, and all paths with a `..`, `.` or empty part.
    """
    if not paths:
        return ""
    plain = [path for path in paths if "." not in path.rpartition("/")[2]]
    names = {path.rpartition("/")[2] for path in paths if path not in plain}
    names |= {path.strip("/") for path in plain}
    relative = {path.removeprefix(f"{folder}/") for path in plain} - set(plain)
    # The policy engine separates arguments with NUL, which JSON text cannot contain.
    denied = [rf'\x00"file_path":[^\x00]*[/"](?:{_match_any(names)})[/"]']
    if folder and relative:
        denied.append(rf'\x00"file_path":"(?:\./)?(?:{_match_any(relative)})[/"]')
        denied.append(r'\x00"file_path":"(?:[^\x00]*/\.{0,2}/|\.\./)')
    rules = [
        _render_rule("deny", _OTHERS, toolName=tool, argsPattern=pattern)
        for tool in _WRITING
        for pattern in denied
    ]
    if draft:
        own = rf'\x00"file_path":{re.escape(msgspec.json.encode(draft).decode())}\x00'
        rules += [
            _render_rule("allow", _ALLOWED, toolName=tool, argsPattern=own) for tool in _WRITING
        ]
    return "\n".join(rules)


def _match_any(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names)))


def _render_rules(pattern: str, decision: str = "allow", priority: int = _ALLOWED) -> Iterator[str]:
    match = _WHOLE_TOOL.match(pattern)
    name = match[1] if match else pattern
    if pattern == _ALL or name in TOOLS or _OF_A_SERVER.match(pattern):
        yield _render_rule(decision, priority, toolName=name)
    elif name in _ELSEWHERE:
        for tool in _ELSEWHERE[name]:
            yield _render_rule(decision, priority, toolName=tool)
    elif (command := _COMMAND.match(pattern)) and (prefix := _find_prefix(command["prefix"])):
        if decision == "deny":
            raise UnenforceableError(
                "Gemini CLI",
                pattern,
                hint="a denied command can be written in many other ways: deny Bash, or allow "
                "single commands",
            )
        yield _render_rule(decision, priority, toolName=SHELL, commandPrefix=prefix)
    else:
        raise UnenforceableError(
            "Gemini CLI",
            pattern,
            hint="use a tool's name, the start of a command such as Bash(git log:*), or "
            "mcp_SERVER_*",
        )


def _find_prefix(text: str) -> str:
    """Return the prefix that a command must have, or "" if the rule is not just a prefix."""
    prefix, count = _REST.subn("", text)
    return prefix if count and "*" not in prefix else ""


def _render_rule(decision: str, priority: int, **conditions: str) -> str:
    # A JSON string of printable characters is also a valid TOML string.
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in conditions.items()]
    if decision == "allow" and conditions in ({"toolName": SHELL}, {"toolName": _ALL}):
        lines.append("allowRedirection = true")
    return "\n".join(["[[rule]]", *lines, f'decision = "{decision}"', f"priority = {priority}", ""])
