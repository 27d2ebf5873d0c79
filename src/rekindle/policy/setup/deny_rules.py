"""Decide whether a persona's `deny` rules refuse a tool call.

A rule is a tool's name, optionally with a pattern for the call's input: `Bash(rm:*)`, `Edit(/etc)`,
`WebFetch(domain:example.com)`. Codex and Gemini CLI accept rules for whole tools only. A rule that
cannot be compared with a call does not match, so the call counts as one that a person may want to
permit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from rekindle.documents.launches.launch_types import RefusedCall

_RULE = re.compile(r"(?P<tool>[^()]+)(?:\((?P<pattern>.*)\))?\Z", re.DOTALL)
_WHOLE_TOOL = ("", "*", "**")
_GEMINI_NAMES = {
    "glob": {"Glob"},
    "google_web_search": {"WebSearch"},
    "grep_search": {"Grep"},
    "invoke_agent": {"Task"},
    "list_directory": {"LS"},
    "read_file": {"Read"},
    "read_many_files": {"Read"},
    "replace": {"Edit", "MultiEdit", "NotebookEdit"},
    "run_shell_command": {"Bash"},
    "web_fetch": {"WebFetch"},
    "write_file": {"Write"},
    "write_todos": {"TodoWrite"},
}
"""Names that a rule may use for each Gemini CLI tool."""
_WRITING = {"Write", "Edit", "MultiEdit", "NotebookEdit"}
"""Groups of tools that share their path rules, and that Codex treats as one tool."""
_READING = {"Read", "Grep", "Glob", "LS"}
_PATHS = ("file_path", "notebook_path", "path")
_SEPARATORS = re.compile(r"&&|\|\||[;|&\n]")
_PREFIX = re.compile(
    r"(?:\w+=\S*|timeout(?: -\S+)* \S+|time|nice(?: -n \S+)?|nohup|stdbuf(?: -\S+)+)\s+"
)
"""Words before a command's name that Claude Code ignores."""
_GLOB = re.compile(r"\*\*/?|\*|\?|\\?.", re.DOTALL)


def is_denied(rules: Iterable[str], call: RefusedCall, folder: str, home: str) -> bool:
    """Return whether one of a persona's `deny` rules refuses this call.

    Relative paths in rules and calls are relative to `folder`.
    """
    return any(_matches_rule(rule, call, folder, home) for rule in rules)


def _matches_rule(rule: str, call: RefusedCall, folder: str, home: str) -> bool:
    parts = _RULE.match(rule)
    if parts is None:
        return False
    tool, pattern = parts["tool"], parts["pattern"] or ""
    names = {call.tool, call.permission, *_GEMINI_NAMES.get(call.tool, ())} - {""}
    if pattern in _WHOLE_TOOL:
        if call.permission and names & _WRITING:
            names |= _WRITING
        return any(fnmatchcase(name, tool) or name.startswith(f"{tool}__") for name in names)
    for group in (_WRITING, _READING):
        if tool in group and names & group:
            return _matches_path(pattern, call.arguments, folder, home)
    if tool not in names:
        return False
    if tool == "Bash":
        return _matches_command(pattern, call.arguments)
    return _matches_value(pattern, call.arguments)


def _matches_command(pattern: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a pattern matches one of the commands in a line.

    `rm:*` and `rm *` match `rm` with any arguments. Elsewhere, `*` matches any text.
    """
    command = arguments.get("command")
    if not isinstance(command, str):
        return False
    stem = pattern[:-2] if pattern.endswith((":*", " *")) else None
    words = [re.escape(part) for part in (pattern if stem is None else stem).split("*")]
    command_pattern = re.compile(
        ".*".join(words) + ("" if stem is None else r"(?:\s.*)?"), re.DOTALL
    )
    return any(command_pattern.fullmatch(each) for each in _split_commands(command))


def _split_commands(line: str) -> Iterator[str]:
    for part in (line, *_SEPARATORS.split(line)):
        command = part.strip()
        yield command
        while prefix := _PREFIX.match(command):
            command = command[prefix.end() :]
            yield command


def _matches_path(pattern: str, arguments: Mapping[str, Any], folder: str, home: str) -> bool:
    """Return whether a gitignore pattern matches one of the call's paths.

    A pattern that starts with two slashes is absolute. A pattern that starts with `~/` is relative
    to the home folder.
    """
    raw_paths = [value for key in _PATHS if isinstance(value := arguments.get(key), str)]
    paths = [
        _normalize_path(value if value.startswith("/") else f"{folder}/{value}")
        for value in raw_paths
    ]
    if pattern.startswith("//"):
        base, rest = "", pattern[2:]
    elif pattern.startswith("~/"):
        base, rest = home.rstrip("/"), pattern[2:]
    else:
        base, rest = folder, pattern.removeprefix("./")
        if "/" not in rest.rstrip("/"):
            rest = f"**/{rest}"
    path_pattern = re.escape(f"{base}/") + _GLOB.sub(_translate_glob, rest.strip("/")) + "(?:/.*)?"
    return any(re.fullmatch(path_pattern, path, re.IGNORECASE | re.DOTALL) for path in paths)


def _translate_glob(part: re.Match[str]) -> str:
    expressions = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return expressions.get(part[0]) or re.escape(part[0][-1])


def _normalize_path(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _matches_value(pattern: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a pattern matches a URL's host or one of the call's complete arguments."""
    values = [value for value in arguments.values() if isinstance(value, str)]
    host = pattern.removeprefix("domain:")
    if host != pattern:
        return any(fnmatchcase(_find_host(value), host.casefold()) for value in values)
    return any(fnmatchcase(value, pattern) for value in values)


def _find_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
