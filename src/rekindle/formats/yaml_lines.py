"""Parse YAML into plain data, and keep the line number of every key.

The data is built from the parser's events with an explicit stack, so a hostile file cannot exhaust
the recursion limit, multiply aliases, or construct objects with tags.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from rekindle.errors import ManifestError
from rekindle.thresholds.storage import (
    MANIFEST_CHARACTERS,
    MANIFEST_DEPTH,
    MANIFEST_NUMBER_CHARACTERS,
)
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_resolver: Any = yaml.resolver.Resolver()

KeyPath = tuple[str | int, ...]


class MarkedData(msgspec.Struct, frozen=True):
    """Data of a document, with the line number of each path, starting at 1."""

    data: Any
    lines: dict[KeyPath, int]
    file: str
    command_lines: dict[KeyPath, str] = {}
    """Commands that are a single line in the file, by path. `data` has them split into words."""

    def line(self, path: KeyPath) -> int | None:
        """Return the line number of a path or of its closest known parent, or None."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def parse(text: str, file: str) -> MarkedData:
    if len(text) > MANIFEST_CHARACTERS:
        raise ManifestError(f"is larger than {MANIFEST_CHARACTERS:,} characters", file=file)
    builder = _Builder(file)
    try:
        for event in _read_events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ManifestError(
            error.problem or "is not YAML",
            file=file,
            line=mark.line + 1 if mark else None,
            hint="correct the YAML on that line: indent with spaces, and write `key: value`",
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"is not YAML ({error})", file=file) from error
    return MarkedData(builder.root, builder.lines, file)


def quote_scalar(text: str) -> str:
    """Render a text as a YAML scalar that parses to the same text, quoted if necessary."""
    plain = re.fullmatch(r"[A-Za-z][\w./-]*", text, re.ASCII)
    if plain and _resolver.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT:
        return text
    written: str = yaml.safe_dump(text, default_style='"', width=float("inf"), allow_unicode=True)
    return written.rstrip("\n")


def quote_value(value: Any) -> str:
    """Render plain data in one line of YAML that parses to the same data."""
    if isinstance(value, str):
        return quote_scalar(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_quote_item, value))}]"
    if isinstance(value, dict):
        pairs = (f"{quote_scalar(key)}: {_quote_item(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    return str(yaml.safe_dump(value)).removesuffix("...\n").rstrip("\n")


def _quote_item(value: Any) -> str:
    """Render a value in a list, where more texts are readable without quotes."""
    if not isinstance(value, str):
        return quote_value(value)
    listed = yaml.safe_dump(
        [value], default_flow_style=True, width=float("inf"), allow_unicode=True
    )
    written = str(listed).strip().removeprefix("[").removesuffix("]")
    return written if len(written.splitlines()) == 1 else quote_scalar(value)


def _read_events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, Loader=_Loader)


class _OpenContainer(msgspec.Struct):
    container: dict[str, Any] | list[Any]
    path: KeyPath
    key: str | None = None


class _Builder:
    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Any = None
        self.lines: dict[KeyPath, int] = {}
        self._stack: list[_OpenContainer] = []
        self._constructor = yaml.constructor.SafeConstructor()

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ManifestError("aliases are not supported here", file=self.file, line=line)
        if getattr(event, "tag", None) not in {None, "!"}:
            raise ManifestError("tags are not supported here", file=self.file, line=line)
        if isinstance(event, yaml.ScalarEvent):
            self._add_scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open_container({}, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open_container([], line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()

    def _add_scalar(self, event: Any, line: int) -> None:
        top = self._stack[-1] if self._stack else None
        if top and isinstance(top.container, dict) and top.key is None:
            if event.value in top.container:
                raise ManifestError(
                    f"the key {event.value!r} is repeated", file=self.file, line=line
                )
            top.key = event.value
            self.lines[(*top.path, event.value)] = line
            return
        is_plain = event.implicit[0] and event.tag is None
        kind = _resolver.resolve(yaml.ScalarNode, event.value, (is_plain, not is_plain))
        self._add_value(
            event.value if kind == _TEXT else self._parse_value(event, kind, line), line
        )

    def _parse_value(self, event: Any, kind: str, line: int) -> Any:
        """Convert a scalar to the number, date, boolean or None that it represents."""
        if kind in _NUMBERS and len(event.value) > MANIFEST_NUMBER_CHARACTERS:
            raise ManifestError("the number is too long", file=self.file, line=line)
        node = yaml.ScalarNode(kind, event.value, event.start_mark, event.end_mark)
        try:
            return self._constructor.construct_object(node)
        except (ValueError, OverflowError) as error:
            raise ManifestError(
                f"is not a valid value: {event.value[:QUOTED_CHARACTERS]} ({error})",
                file=self.file,
                line=line,
            ) from error

    def _open_container(self, container: dict[str, Any] | list[Any], line: int) -> None:
        if len(self._stack) >= MANIFEST_DEPTH:
            raise ManifestError("is nested too deeply", file=self.file, line=line)
        top = self._stack[-1] if self._stack else None
        if top and isinstance(top.container, dict) and top.key is None:
            raise ManifestError("a key must be plain text", file=self.file, line=line)
        self._stack.append(_OpenContainer(container, self._add_value(container, line)))

    def _add_value(self, value: Any, line: int) -> KeyPath:
        if not self._stack:
            if self.root is not None:
                raise ManifestError("contains more than one document", file=self.file, line=line)
            self.root = value
            return ()
        top = self._stack[-1]
        path: KeyPath
        if isinstance(top.container, list):
            path = (*top.path, len(top.container))
            top.container.append(value)
        else:
            path = (*top.path, str(top.key))
            top.container[str(top.key)] = value
            top.key = None
        self.lines.setdefault(path, line)
        return path
