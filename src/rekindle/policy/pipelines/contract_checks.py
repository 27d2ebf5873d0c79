"""Check the files that a step wrote against its contracts.

Each check returns the reason for a failure, or "". The next attempt is given this reason, so it
explains what the file must contain.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.pipeline_limits import (
    CONTRACT_BYTES,
    SCHEMA_PROBLEMS,
    SCHEMA_VALUE_CHARACTERS,
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class SchemaProblem(msgspec.Struct, frozen=True):
    """A difference between a document and its schema."""

    path: tuple[str | int, ...]
    """Names and indexes that lead to the value in the document."""
    reason: str

    def render(self) -> str:
        """Render the problem on one line: `items[3].id: is 7, expected type: "string"`."""
        return f"{render_path(self.path) or 'the document'}: {self.reason}"


def check_non_empty(source: str, data: bytes | None) -> str:
    """Explain how a file violates `non_empty_file`, or return "". `data` is None if missing."""
    if data is None:
        return f"{source} does not exist; write it"
    if not data.removeprefix(_BYTE_ORDER_MARK).strip():
        return f"{source} is empty; write its content"
    return ""


def check_json(
    source: str, data: bytes | None, find_problems: Callable[[bytes], Sequence[SchemaProblem]]
) -> str:
    """Explain how a file violates `json_schema`, or return "" if it does not.

    `find_problems` compares the document with the schema, for which it needs a package that is not
    pure.
    """
    if reason := check_non_empty(source, data):
        return reason
    document = (data or b"").removeprefix(_BYTE_ORDER_MARK)
    if len(document) > CONTRACT_BYTES:
        return f"{source} is larger than {CONTRACT_BYTES:,} bytes, so it cannot be checked"
    try:
        json_codec.decode(document, source)
    except DocumentError as error:
        return f"{source} {error.reason}"
    problems = find_problems(document)
    if not problems:
        return ""
    lines = [f"- {problem.render()}" for problem in problems[:SCHEMA_PROBLEMS]]
    if len(problems) > SCHEMA_PROBLEMS:
        lines.append("- and more")
    return "\n".join([f"{source} does not match its JSON Schema:", *lines])


def render_path(path: Sequence[str | int]) -> str:
    """Render a path inside a document, such as `items[3].id`. Indexes start at 0."""
    text = ""
    for part in path:
        if isinstance(part, str) and _PLAIN_NAME.match(part):
            text += f".{part}" if text else part
        else:
            name = part if isinstance(part, str) else None
            text += f"[{part}]" if name is None else f"[{to_one_line(name, 40)!r}]"
    return to_one_line(text, SCHEMA_VALUE_CHARACTERS)
