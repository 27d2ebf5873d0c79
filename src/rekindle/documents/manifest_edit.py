"""Create manifests, and add agents and personas to existing ones without changing other text."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rekindle.documents.manifest import (
    SCHEMA,
    SCHEMA_FILE,
    Permissions,
    parse,
    read_manifest,
)
from rekindle.errors import ManifestError, RekindleError
from rekindle.formats import yaml_lines

_START = f"# yaml-language-server: $schema=.rekindle/{SCHEMA_FILE}\nversion: {SCHEMA}\n"


def compose(agent: str, harness: str, prompt: str, more: Sequence[str] = ()) -> str:
    """Return a new manifest with one agent. `more` contains extra lines for the agent's entry."""
    return f"{_START}agents:\n{_render_entry(agent, harness, prompt, more)}"


def add_agent_entry(
    text: str, agent: str, harness: str, prompt: str, more: Sequence[str] = ()
) -> str:
    """Add an agent at the start of `agents:` and return the manifest's text.

    `more` contains extra lines for the agent's entry. The rest of the text is unchanged.
    """
    if agent in parse(text).agents:
        raise ManifestError(f"there is already an agent {agent!r}")
    return _add_entry(text, "agents", agent, _render_entry(agent, harness, prompt, more))


def add_persona_entry(text: str, name: str, permissions: Permissions, words: str) -> str:
    """Add a persona below a comment, unless it already exists, and return the manifest's text."""
    if name in parse(text).personas:
        return text
    rules = {
        key: tools for key, tools in msgspec.to_builtins(permissions).items() if tools is not None
    }
    return add_entry(text, "personas", name, {"permissions": rules}, words)


def add_entry(text: str, section: str, name: str, keys: Mapping[str, Any], words: str = "") -> str:
    """Add an agent or a persona with any keys to a manifest, which may be empty."""
    comment = f"  # {words}\n" if words else ""
    entry = comment + _render_keys({name: keys}, "  ")
    return _add_entry(text if text.strip() else _START, section, name, entry)


def _render_keys(keys: Mapping[str, Any], indent: str) -> str:
    """Render keys as lines. Lists are written in one line."""
    lines = []
    for key, value in keys.items():
        begin = f"{indent}{yaml_lines.quote_scalar(key)}:"
        if isinstance(value, dict) and value:
            lines.append(f"{begin}\n{_render_keys(value, indent + '  ')}")
        else:
            lines.append(f"{begin} {yaml_lines.quote_value(value)}\n")
    return "".join(lines)


def _add_entry(text: str, section: str, name: str, entry: str) -> str:
    """Add an entry at the start of a section, and leave the rest unchanged."""
    found, marked = read_manifest(text)
    line = marked.lines.get((section,))
    lines = text.splitlines(keepends=True)
    if line is None and section == "personas" and ("agents",) in marked.lines:
        line = marked.lines["agents",]
        lines.insert(line - 1, f"{section}:\n")
    elif line is None:
        lines = [_end_with_newline(text), f"{section}:\n"]
        line = len(lines)
    first = next(iter(getattr(found, section)), None)
    indent = "  "
    if first is not None:
        beside = lines[marked.lines[section, first] - 1]
        indent = beside[: len(beside) - len(beside.lstrip(" "))]
    above = _end_with_newline("".join(lines[:line]))
    indented = "".join(indent + own[2:] for own in entry.splitlines(keepends=True))
    added = above + indented + "".join(lines[line:])
    is_block = re.fullmatch(rf"{section}:\s*(#.*)?", lines[line - 1].rstrip())
    if not is_block or not _reads_back(added, section, name):
        what = section.removesuffix("s")
        raise ManifestError(
            f"`{section}:` is not written as a block",
            line=line,
            hint=f"add the {what} there by hand:\n{entry}",
        )
    return added


def _end_with_newline(text: str) -> str:
    return text if text.endswith(("\n", "\r")) else text + "\n"


def _reads_back(text: str, section: str, name: str) -> bool:
    try:
        return name in getattr(parse(text), section)
    except RekindleError:
        return False


def _render_entry(agent: str, harness: str, prompt: str, more: Sequence[str]) -> str:
    words = [yaml_lines.quote_scalar(word) for word in (agent, harness, prompt)]
    entry = "  {}:\n    harness: {}\n    prompt: {}\n".format(*words)
    return entry + "".join(f"    {line}\n" for line in more)
