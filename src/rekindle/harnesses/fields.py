"""What stands in a line that a CLI wrote: of the kind that was expected, or nothing.

A line may be torn, of another version, or shaped by whoever speaks to the agent.
"""

from typing import Any

from rekindle.documents import jsontext
from rekindle.documents.identity import one_line
from rekindle.errors import DocumentError

LINE_BYTES = 32 * 1024 * 1024
"""A longer line of the stream is not read: nothing that we look for is as large."""
_MOST = 2**53
"""Beyond it, the CLIs' own language has no whole numbers."""


def record(line: bytes) -> dict[str, Any]:
    """A line as an object; empty, where it is none: torn, damaged, or not JSON at all."""
    if len(line) > LINE_BYTES:
        return {}
    try:
        return as_object(jsontext.decode_foreign(line, "line of an agent CLI"))
    except DocumentError:
        return {}


def as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None


def text(value: object) -> str:
    """A text; a lone surrogate that JSON let through could not be written again."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def word(value: object) -> str:
    return one_line(text(value), 200)


def about(given: dict[str, Any]) -> str:
    """What says most about a call: its command, file or pattern; else the first text in it."""
    telling = ("command", "file_path", "pattern", "url", "query", "description")
    values = (given.get(key) for key in (*telling, *given))
    return next((one_line(value, 200) for value in values if isinstance(value, str)), "")
