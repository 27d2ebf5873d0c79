"""Convert a persona's permissions to Claude Code command-line options.

The CLI applies path rules for `Edit` to every tool that writes files, but ignores `Write(path)`.
Rekindle therefore converts path rules for other file tools to rules for `Edit`. The CLI resolves
links before it compares paths.

The rules are added to the permissions in the user's own settings, and do not limit a shell.
"""

import re
from collections.abc import Iterable, Iterator

from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.ask_gate import AskRule

_WRITING = ("Write", "Edit")
_HERE = {"Write": "**", "Edit": "**", "MultiEdit": "**", "NotebookEdit": "**/*.ipynb"}
"""Tools that write files, each with a pattern for the files in the agent's folder.

The patterns are relative to the folder in which the CLI starts, because an absolute pattern cannot
express every folder name.
"""
_RULE = re.compile(r"(?P<tool>\w+)(?:\((?P<path>.*)\))?\Z", re.DOTALL)
_WELL_FORMED = re.compile(r"[\w*-]+(?:\((?:(?!\)\s*,).)*\))?\Z")
"""A rule for exactly one tool, which may be an MCP tool, with an optional pattern."""
_EVERYWHERE = ("", "*", "**")
_BEFORE = ("", "* ", "*/", '*"', "*'")
"""Patterns for the text before a command inside another command."""


def list_permission_options(start: LaunchSpec) -> Iterator[str]:
    """Yield the options for a persona's permissions.

    File tools without a path are limited to the agent's folder. The next relay's draft is always
    writable. Protected files never are.

    Raises:
        UnenforceableError: A rule does not name exactly one tool, or contains control characters.
    """
    permissions = start.persona.permissions or Permissions()
    allowed, denied = permissions.allowed_tools, permissions.deny or ()
    _refuse_malformed((*(allowed or ()), *denied))
    if allowed is not None:
        # Without this, tools that the user's own settings permit would stay permitted.
        drafting = _WRITING if start.draft else ()
        listed = (*allowed, *(permissions.ask or ()))
        names = dict.fromkeys((*(rule.partition("(")[0] for rule in listed), *drafting))
        yield f"--tools={','.join(name for name in names if name)}"
        # --tools does not remove the tools of the user's MCP servers.
        if not any(name.startswith("mcp__") for name in names):
            yield "--strict-mcp-config"
    rules = [_make_allow_rule(rule) for rule in allowed or () if rule]
    if start.draft:
        # A double slash starts an absolute path. With a single slash, the path would be relative to
        # the settings folder.
        rules.append(f"Edit(/{_escape_path(start.draft)})")
    yield from (f"--allowedTools={rule}" for rule in dict.fromkeys(rules))
    refused = [_make_deny_rule(rule) for rule in denied if rule]
    refused += [f"Edit(/{pattern})" for pattern in _list_unwritable(start)]
    yield from (f"--disallowedTools={rule}" for rule in refused)


def list_ask_rules(rules: Iterable[AskRule]) -> list[str]:
    """Return the CLI's rules for calls that need approval, even if another rule allows them.

    The CLI compares a rule with the whole of each command in a line. The additional rules cover a
    command that is started through another program, such as `sh -c 'git push'`.
    """
    return [
        f"{rule.tool}({before}{rule.text}*)" if rule.text else rule.tool
        for rule in rules
        for before in (_BEFORE if rule.text else ("",))
    ]


def _make_allow_rule(rule: str) -> str:
    """Return the rule that allows a tool. File tools without a path are limited to the folder."""
    parts = _RULE.match(rule)
    if parts is None or parts["tool"] not in _HERE:
        return rule
    path = parts["path"] or ""
    return f"Edit({_HERE[parts['tool']] if path in _EVERYWHERE else path})"


def _make_deny_rule(rule: str) -> str:
    parts = _RULE.match(rule)
    if parts is None or parts["tool"] not in _HERE:
        return rule
    path = parts["path"] or ""
    return parts["tool"] if path in _EVERYWHERE else f"Edit({path})"


def _list_unwritable(start: LaunchSpec) -> Iterator[str]:
    """Yield gitignore patterns for the paths that no file tool may write.

    A denial overrides all permissions and cannot have exceptions. In the draft's folder, the
    patterns therefore deny every name whose first or second letter differs from the draft's.
    """
    for path in start.protected:
        place = _escape_path(path)
        inner = start.draft.removeprefix(f"{path}/")
        if inner == start.draft:
            yield from (place, f"{place}/**")
        else:
            yield from (
                f"{place}/{_match_other(inner[0])}*",
                f"{place}/{inner[0]}{_match_other(inner[1])}*",
            )


def _match_other(letter: str) -> str:
    """Return a pattern for every file name character except one letter.

    The CLI reads `[!x]` as `!` or `x`, and ignores case.
    """
    before, after = chr(ord(letter) - 1), chr(ord(letter) + 1)
    return f"[#-{before.upper()}{after.upper()}-Z_a-{before}{after}-z]"


def _escape_path(path: str) -> str:
    """Return a pattern that matches only this path."""
    return re.sub(r"([\\*?\[\]!#()])", r"\\\1", path)


def _refuse_malformed(rules: Iterable[str]) -> None:
    """Refuse rules that the CLI would misinterpret."""
    for rule in rules:
        if not rule.isprintable():
            raise UnenforceableError(
                "Claude Code", rule, hint="write it on one line, without control characters"
            )
        # The CLI would split a rule for several tools, without limiting any of them to the folder.
        if rule and not _WELL_FORMED.match(rule):
            raise UnenforceableError(
                "Claude Code", rule, hint="write one tool per item, such as `Read` or `Bash(ls:*)`"
            )
