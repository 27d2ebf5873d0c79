"""Claude Code: what a persona may do, as options of its command line.

Of the rules that name a path the CLI reads only those of `Edit`, for every tool that writes files:
`Write(path)` permits nothing and denies nothing. So the rules of the other file tools are passed on
as rules of `Edit`. The CLI follows links before it compares a path.

A rule adds to what the user's own settings permit. A shell is not held by any of these.
"""

import re
from collections.abc import Iterable, Iterator

from rekindle.documents.launches.cli_output import LaunchSpec
from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError

_WRITING = ("Write", "Edit")
_HERE = {"Write": "**", "Edit": "**", "MultiEdit": "**", "NotebookEdit": "**/*.ipynb"}
"""The tools that write files, and the files below the agent's folder that each can write.

Relative to the folder that the CLI starts in: an absolute pattern cannot name every folder."""
_RULE = re.compile(r"(?P<tool>\w+)(?:\((?P<path>.*)\))?\Z", re.DOTALL)
_WELL_FORMED = re.compile(r"[\w*-]+(?:\((?:(?!\)\s*,).)*\))?\Z")
"""One tool, also a server's, with or without what it is for."""
_EVERYWHERE = ("", "*", "**")


def list_permission_options(start: LaunchSpec) -> Iterator[str]:
    """Yield the options for a persona's permissions.

    A file tool without a path is held to the agent's folder. The draft of the next relay can be
    written in any case, protected files in none.

    Raises:
        UnenforceableError: A rule is not that of one tool, or has control characters.
    """
    permissions = start.persona.permissions or Permissions()
    allowed, denied = permissions.allowed_tools, permissions.deny or ()
    _refuse_malformed((*(allowed or ()), *denied))
    if allowed is not None:
        # Else the tools that the user's own settings permit would stay permitted.
        drafting = _WRITING if start.draft else ()
        names = dict.fromkeys((*(rule.partition("(")[0] for rule in allowed), *drafting))
        yield f"--tools={','.join(name for name in names if name)}"
        # --tools does not take away the tools of servers that the user has set up.
        if not any(name.startswith("mcp__") for name in names):
            yield "--strict-mcp-config"
    rules = [_make_allow_rule(rule) for rule in allowed or () if rule]
    if start.draft:
        # An absolute path begins with two slashes; one would be below the settings' own folder.
        rules.append(f"Edit(/{_escape_path(start.draft)})")
    yield from (f"--allowedTools={rule}" for rule in dict.fromkeys(rules))
    refused = [_make_deny_rule(rule) for rule in denied if rule]
    refused += [f"Edit(/{pattern})" for pattern in _list_unwritable(start)]
    yield from (f"--disallowedTools={rule}" for rule in refused)


def _make_allow_rule(rule: str) -> str:
    """Return the rule that permits a tool; a file tool without a path only in the folder."""
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
    """Return the patterns of what no file tool may write, in the form of a gitignore file.

    A denial beats every permission and has no exceptions: a folder that has the draft is denied by
    the names of its other parts, which do not begin as the draft's own folder does.
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
    """Return the pattern of every character of a name but one letter.

    The CLI takes `[!x]` for `!` or `x`, and does not tell capitals from small letters.
    """
    before, after = chr(ord(letter) - 1), chr(ord(letter) + 1)
    return f"[#-{before.upper()}{after.upper()}-Z_a-{before}{after}-z]"


def _escape_path(path: str) -> str:
    """Return a path as a pattern that matches nothing else."""
    return re.sub(r"([\\*?\[\]!#()])", r"\\\1", path)


def _refuse_malformed(rules: Iterable[str]) -> None:
    """Refuse rules that the CLI would read in another way than a person does."""
    for rule in rules:
        if not rule.isprintable():
            raise UnenforceableError(
                "Claude Code", rule, hint="write it on one line, without control characters"
            )
        # The CLI splits a list in one rule, and none of its tools would be held to the folder.
        if rule and not _WELL_FORMED.match(rule):
            raise UnenforceableError(
                "Claude Code", rule, hint="write one tool for each item, as `Read` or `Bash(ls:*)`"
            )
