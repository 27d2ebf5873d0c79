"""Our hooks in a CLI's settings: put in, found again, taken out. Text in, text out.

    {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "…", "timeout": 10}]}]}}

Claude Code has them in its settings, Codex in a file of their own; the form is the same. The file
is somebody else's: everything but our own entries keeps its bytes and its place.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import json_edit
from rekindle.formats.identifiers import STABLE_ID
from rekindle.formats.json_edit import (
    JsonNode,
    TextEdit,
)

HOOK_PROGRAM = "hook.pyc"
"""The hook program's name, which has a hash of its content since it left the workspace."""
_PROGRAM = re.compile(r"(?:.*/)?hook(?:-[0-9a-f]{32})?\.pyc", re.DOTALL)
EMPTY_SETTINGS = "{}\n"
"""What a file that is not there, or empty, is taken for."""
_LONG_NUMBER = 300
_COMMENTED = frozenset({".gemini"})
"""The folders of the CLIs that read their settings with comments in them."""

HookEntries = Mapping[str, Sequence[Mapping[str, Any]]]


class HookFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where a CLI looks for hooks."""

    program: str
    """What a person starts it by."""
    folder: str
    """Its folder in a project and in a home."""
    moved_by: str = ""
    """The variable that puts another folder in the place of the one in the home."""
    home_moved_by: str = ""
    """The variable that puts another home in the place of the person's."""
    local: str = ""
    """The file of one person in one project; empty where the CLI has no such."""
    project: str
    user: str
    trust: str = ""
    """What a person must do before the CLI runs them; empty: nothing."""
    deciding: tuple[str, ...] = ()
    """The files in the person's own folder that decide whether the CLI runs them."""
    packed: str = "hooks/hooks.json"
    """Where the hooks stand in a package that the CLI can install."""
    package: str = ""
    """The file that makes a folder such a package; empty where the hooks' file is all of it."""
    taken_in: str = ""
    """How a person has the CLI take the package in."""

    @property
    def comments(self) -> bool:
        """Whether its settings may have comments; elsewhere the CLI itself would not read them."""
        return self.folder in _COMMENTED


class HookInstallation(msgspec.Struct, frozen=True):
    """A file with hooks of ours, and what else has a say in whether they run."""

    file: str
    """Its real path."""
    text: str
    project: str
    """The real path of the project that it belongs to; empty: it is the person's own."""
    deciding: Mapping[str, str]
    """The texts of the person's own files that decide, by their names."""


class HookObstacle(msgspec.Struct, frozen=True):
    """Why a CLI does not run hooks that stand where they should."""

    why: str
    fix: str


class HookCommand(msgspec.Struct, frozen=True):
    """A command line of ours, whichever version and place it was installed from."""

    python: str
    program: str
    harness: str
    event: str
    folder: str
    """The agent's; empty where the hook finds it by itself."""


class InstalledHook(msgspec.Struct, frozen=True):
    """One hook of ours, as it stands in the file."""

    event: str
    matcher: str
    hook: dict[str, Any]
    command: HookCommand


def parse_hook_command(line: object) -> HookCommand | None:
    """The words of a command of ours; None for anybody else's."""
    if not isinstance(line, str) or ".pyc" not in line:
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    words = words[: words.index("||")] if "||" in words else words
    for place in range(1, len(words) - 2):
        harness, event = words[place + 1], words[place + 2]
        is_ours = _PROGRAM.fullmatch(words[place]) and STABLE_ID.match(harness)
        if is_ours and len(words) <= place + 4:
            folder = words[place + 3] if len(words) > place + 3 else ""
            return HookCommand(words[0], words[place], harness, event, folder)
    return None


def find_installed(text: str, document: str, *, comments: bool = False) -> list[InstalledHook]:
    """Every hook of ours, in the order of the file."""
    text = json_edit.blank_comments(text) if comments else text
    return [
        InstalledHook(event, matcher, hook, command)
        for event, entries in _list_events(_parse_root(text, document))
        for entry in entries.parts
        for matcher, hook, command, _ in _find_own(text, entry.value)
    ]


def add_hooks(text: str, hooks: HookEntries, document: str, *, comments: bool = False) -> str:
    """The text with our hooks behind everybody else's; it must hold none of ours yet."""
    text = text if text.strip("\ufeff \t\r\n") else EMPTY_SETTINGS
    bare = json_edit.blank_comments(text) if comments else text
    root = _parse_root(bare, document)
    style = json_edit.detect_style(bare, root)
    below = root.get("hooks")
    if below is None:
        return json_edit.apply_edits(
            text, [json_edit.append_members(text, style, root, [("hooks", hooks)], 0)]
        )
    _require(below, "object", "hooks", text, document)
    edits = []
    new = [(event, entries) for event, entries in hooks.items() if below.get(event) is None]
    if new:
        edits.append(json_edit.append_members(text, style, below, new, 1))
    for event, entries in hooks.items():
        there = below.get(event)
        if there is not None:
            _require(there, "array", f"hooks.{event}", text, document)
            edits.append(
                json_edit.append_members(text, style, there, [("", entry) for entry in entries], 2)
            )
    return json_edit.apply_edits(text, edits)


def remove_hooks(text: str, document: str, before: str = "", *, comments: bool = False) -> str:
    """The text without our hooks, and without what they leave empty.

    What was empty in `before`, the text they were put into, stays, for it was not ours.
    """
    bare = json_edit.blank_comments(text) if comments else text
    root = _parse_root(bare, document)
    below = root.get("hooks")
    if below is None:
        return text
    earlier = _read_previous(json_edit.blank_comments(before) if comments else before)
    edits: list[TextEdit] = []
    empty: list[int] = []
    for place, part in enumerate(below.parts):
        if part.value.kind != "array":
            continue
        inner, gone = _remove_own(text, bare, part.value)
        is_empty = bool(gone) and len(gone) == len(part.value.parts)
        if is_empty and part.key not in (earlier or {}):
            empty.append(place)
        else:
            edits += inner
    if empty and len(empty) == len(below.parts) and earlier is None:
        place = next(i for i, part in enumerate(root.parts) if part.key == "hooks")
        return json_edit.apply_edits(text, json_edit.remove_members(text, root, [place]))
    return json_edit.apply_edits(
        text, edits + (json_edit.remove_members(text, below, empty) if empty else [])
    )


def is_empty_file(text: str, document: str, *, comments: bool = False) -> bool:
    """Whether nobody has written anything into the file; a comment is something."""
    if comments and json_edit.blank_comments(text) != text:
        return False
    return not text.strip() or not _parse_root(text, document).parts


def list_wanted(hooks: HookEntries) -> list[tuple[str, str, dict[str, Any]]]:
    """What `installed` finds where exactly these hooks stand: event, matcher, hook."""
    return [
        (event, entry.get("matcher", ""), dict(hook))
        for event, entries in hooks.items()
        for entry in entries
        for hook in entry["hooks"]
    ]


def _remove_own(text: str, bare: str, entries: JsonNode) -> tuple[list[TextEdit], list[int]]:
    """Our hooks out of an event's entries: the edits, and which entries go as a whole."""
    edits: list[TextEdit] = []
    gone: list[int] = []
    for place, entry in enumerate(entries.parts):
        ours = [number for *_, number in _find_own(bare, entry.value)]
        handlers = entry.value.get("hooks")
        if not ours or handlers is None:
            continue
        if len(ours) == len(handlers.parts):
            gone.append(place)
        else:
            edits += json_edit.remove_members(text, handlers, ours)
    return edits + (json_edit.remove_members(text, entries, gone) if gone else []), gone


def _find_own(text: str, entry: JsonNode) -> Iterator[tuple[str, dict[str, Any], HookCommand, int]]:
    """The hooks of ours in one entry, each with its place there."""
    handlers = entry.get("hooks")
    if handlers is None or handlers.kind != "array":
        return
    matcher = entry.get("matcher")
    for place, part in enumerate(handlers.parts):
        if part.value.kind != "object":
            continue
        hook = _read_value(text, part.value)
        command = parse_hook_command(hook.get("command"))
        if command is not None:
            found = _read_value(text, matcher) if matcher else ""
            yield found if isinstance(found, str) else "", hook, command, place


def _list_events(root: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    below = root.get("hooks")
    for part in below.parts if below is not None else ():
        if part.value.kind == "array":
            yield part.key, part.value


def _read_previous(before: str) -> dict[str, Any] | None:
    """What stood under `hooks` in an earlier text of the file; None where nothing did."""
    try:
        found = json.loads(before.removeprefix("\ufeff")).get("hooks")
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _parse_root(text: str, document: str) -> JsonNode:
    if not text.strip("\ufeff \t\r\n"):
        return json_edit.parse(EMPTY_SETTINGS, document)
    root = json_edit.parse(text, document)
    _require(root, "object", "it", text, document)
    return root


def _require(node: JsonNode, kind: str, name: str, text: str, document: str) -> None:
    if node.kind != kind:
        line = json_edit.find_line(text, node.start)
        raise DocumentError(
            document,
            f"line {line}: {name} should be an {kind}",
            hint="correct it, then repeat the command; nothing was changed",
        )


def _read_value(text: str, node: JsonNode) -> Any:
    # Numbers as they are written: one of 5,000 digits is nothing to us, and no reason to stop.
    return json.loads(text[node.start : node.end], parse_int=_parse_number)


def _parse_number(text: str) -> int | str:
    return int(text) if len(text) < _LONG_NUMBER else text
