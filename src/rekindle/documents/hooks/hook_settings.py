"""Add, find and remove Rekindle's hooks in the text of a CLI's settings.

    {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "…", "timeout": 10}]}]}}

Claude Code keeps hooks in its settings, Codex in a separate file with the same format. The file
belongs to the user: everything except Rekindle's entries keeps its bytes and its position.
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
"""Name of the hook program inside a workspace. Elsewhere, it includes a content hash."""
_PROGRAM = re.compile(r"(?:.*/)?(?:hook|gate)(?:-[0-9a-f]{32})?\.pyc", re.DOTALL)
EMPTY_SETTINGS = "{}\n"
"""Content used for a missing or empty file."""
_LONG_NUMBER = 300
_STATUS_LINE = "statusLine"
_COMMENTED = frozenset({".gemini"})
"""Folder names of the CLIs whose settings may contain comments."""

HookEntries = Mapping[str, Sequence[Mapping[str, Any]]]


class HookFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files in which a CLI looks for hooks."""

    program: str
    """Command that a person uses to start the CLI."""
    folder: str
    """Name of the CLI's settings folder, both in a project and in the home folder."""
    moved_by: str = ""
    """Environment variable that overrides the path of the user's settings folder."""
    home_moved_by: str = ""
    """Environment variable that overrides the path of the home folder."""
    local: str = ""
    """Name of a person's own settings file in a project; empty if the CLI has none."""
    project: str
    user: str
    trust: str = ""
    """Step that a person must take before the CLI runs the hooks; empty if none is needed."""
    deciding: tuple[str, ...] = ()
    """Files in the user's settings folder that decide whether the CLI runs the hooks."""
    has_status_line: bool = False
    """Whether a command in the user's settings can provide the CLI's status line."""
    packed: str = "hooks/hooks.json"
    """Path of the hooks inside an installable package for the CLI."""
    package: str = ""
    """File that turns a folder into an installable package; empty if the hook file is enough."""
    taken_in: str = ""
    """Command or step that installs the package."""

    @property
    def comments(self) -> bool:
        """Return whether the CLI's settings may contain comments, which other CLIs cannot parse."""
        return self.folder in _COMMENTED

    def find_own_folder(self, environment: Mapping[str, str], home: str) -> str:
        """Return the path of the CLI's own folder, which a variable can override."""
        moved, above = environment.get(self.moved_by), environment.get(self.home_moved_by)
        return moved or f"{above or home}/{self.folder}"


class HookInstallation(msgspec.Struct, frozen=True):
    """A file with Rekindle's hooks, and the files that decide whether they run."""

    file: str
    """Real path of the file."""
    text: str
    project: str
    """Real path of the file's project; empty for the user's own file."""
    deciding: Mapping[str, str]
    """Texts of the user's files that decide whether the hooks run, by file name."""


class HookObstacle(msgspec.Struct, frozen=True):
    """Why a CLI does not run hooks that are installed correctly, and how to fix that."""

    why: str
    fix: str


class HookCommand(msgspec.Struct, frozen=True):
    """Command line of a hook that this or an earlier version of Rekindle installed."""

    python: str
    program: str
    harness: str
    event: str
    folder: str
    """The agent's folder; empty if the hook finds it on its own."""


class InstalledHook(msgspec.Struct, frozen=True):
    """One of Rekindle's hooks in a settings file."""

    event: str
    matcher: str
    hook: dict[str, Any]
    command: HookCommand


def parse_hook_command(line: object) -> HookCommand | None:
    """Parse a hook command that Rekindle wrote; return None for any other command."""
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
    """Return all of Rekindle's hooks, in file order."""
    text = json_edit.blank_comments(text) if comments else text
    return [
        InstalledHook(event, matcher, hook, command)
        for event, entries in _list_events(_parse_root(text, document))
        for entry in entries.parts
        for matcher, hook, command, _ in _find_own(text, entry.value)
    ]


def add_hooks(text: str, hooks: HookEntries, document: str, *, comments: bool = False) -> str:
    """Add Rekindle's hooks after all others. The text must not contain Rekindle's hooks yet."""
    text = text if text.strip("\ufeff \t\r\n") else EMPTY_SETTINGS
    bare = json_edit.blank_comments(text) if comments else text
    root = _parse_root(bare, document)
    style = json_edit.detect_style(bare, root)
    below = root.get("hooks")
    if below is None:
        return json_edit.apply_edits(
            text, [json_edit.append_members(text, style, root, [("hooks", hooks)], 0)]
        )
    _require_kind(below, "object", "hooks", text, document)
    edits = []
    new = [(event, entries) for event, entries in hooks.items() if below.get(event) is None]
    if new:
        edits.append(json_edit.append_members(text, style, below, new, 1))
    for event, entries in hooks.items():
        present = below.get(event)
        if present is not None:
            _require_kind(present, "array", f"hooks.{event}", text, document)
            edits.append(
                json_edit.append_members(
                    text, style, present, [("", entry) for entry in entries], 2
                )
            )
    return json_edit.apply_edits(text, edits)


def remove_hooks(text: str, document: str, before: str = "", *, comments: bool = False) -> str:
    """Remove Rekindle's hooks and status line, and containers that become empty.

    Keep a container that was already in `before`, the text before the installation.
    """
    if not comments:
        text = json_edit.apply_edits(text, _remove_status_line(text, _parse_root(text, document)))
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
        inner, removed = _remove_own(text, bare, part.value)
        is_empty = bool(removed) and len(removed) == len(part.value.parts)
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


def add_status_line(text: str, command: str, document: str) -> str:
    """Add Rekindle's status line, unless the settings have one."""
    root = _parse_root(text, document)
    if root.get(_STATUS_LINE) is not None:
        return text
    value = {"type": "command", "command": command}
    style = json_edit.detect_style(text, root)
    member = json_edit.append_members(text, style, root, [(_STATUS_LINE, value)], 0)
    return json_edit.apply_edits(text, [member])


def _remove_status_line(text: str, root: JsonNode) -> list[TextEdit]:
    """Return the edits that remove the status line, if it is Rekindle's."""
    for place, part in enumerate(root.parts):
        value = _read_value(text, part.value) if part.key == _STATUS_LINE else None
        command = value.get("command") if isinstance(value, dict) else None
        if isinstance(command, str) and command.endswith(" -m rekindle statusline"):
            return json_edit.remove_members(text, root, [place])
    return []


def is_empty_file(text: str, document: str, *, comments: bool = False) -> bool:
    """Return whether the file is empty. A comment counts as content."""
    if comments and json_edit.blank_comments(text) != text:
        return False
    return not text.strip() or not _parse_root(text, document).parts


def list_wanted(hooks: HookEntries) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the event, matcher and hook of each entry, in the format of `find_installed`."""
    return [
        (event, entry.get("matcher", ""), dict(hook))
        for event, entries in hooks.items()
        for entry in entries
        for hook in entry["hooks"]
    ]


def _remove_own(text: str, bare: str, entries: JsonNode) -> tuple[list[TextEdit], list[int]]:
    """Return the edits that remove Rekindle's hooks from an event, and the removed entries."""
    edits: list[TextEdit] = []
    removed: list[int] = []
    for place, entry in enumerate(entries.parts):
        ours = [number for *_, number in _find_own(bare, entry.value)]
        handlers = entry.value.get("hooks")
        if not ours or handlers is None:
            continue
        if len(ours) == len(handlers.parts):
            removed.append(place)
        else:
            edits += json_edit.remove_members(text, handlers, ours)
    return edits + (json_edit.remove_members(text, entries, removed) if removed else []), removed


def _find_own(text: str, entry: JsonNode) -> Iterator[tuple[str, dict[str, Any], HookCommand, int]]:
    """Yield Rekindle's hooks in one entry, each with its index."""
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
            value = _read_value(text, matcher) if matcher else ""
            yield value if isinstance(value, str) else "", hook, command, place


def _list_events(root: JsonNode) -> Iterator[tuple[str, JsonNode]]:
    below = root.get("hooks")
    for part in below.parts if below is not None else ():
        if part.value.kind == "array":
            yield part.key, part.value


def _read_previous(before: str) -> dict[str, Any] | None:
    """Return the value of `hooks` before the installation, or None if there was none."""
    try:
        hooks = json.loads(before.removeprefix("\ufeff")).get("hooks")
    except (ValueError, AttributeError, RecursionError):
        return None
    return hooks if isinstance(hooks, dict) else None


def _parse_root(text: str, document: str) -> JsonNode:
    if not text.strip("\ufeff \t\r\n"):
        return json_edit.parse(EMPTY_SETTINGS, document)
    root = json_edit.parse(text, document)
    _require_kind(root, "object", "it", text, document)
    return root


def _require_kind(node: JsonNode, kind: str, name: str, text: str, document: str) -> None:
    if node.kind != kind:
        line = json_edit.find_line(text, node.start)
        raise DocumentError(
            document,
            f"line {line}: {name} should be an {kind}",
            hint="correct it and repeat the command; nothing was changed",
        )


def _read_value(text: str, node: JsonNode) -> Any:
    # A number with thousands of digits is valid JSON but too long for int(), so it stays text.
    return json.loads(text[node.start : node.end], parse_int=_parse_number)


def _parse_number(text: str) -> int | str:
    return int(text) if len(text) < _LONG_NUMBER else text
