"""Helpers for a CLI's JSON, in which any value may be missing or have an unexpected type."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rekindle.documents.launches.launch_types import OutputItem
from rekindle.documents.transcripts.turns import (
    Passage,
    PassageContent,
    PromptText,
    ToolResult,
)
from rekindle.errors import DocumentError, UsageError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import SESSION_ID, to_one_line
from rekindle.thresholds.storage import JSON_LINE_BYTES
from rekindle.thresholds.supervision import ARGUMENT_BYTES
from rekindle.thresholds.texts import ABOUT_CHARACTERS, MARGIN_CHARACTERS, WORD_CHARACTERS

_MEANT_OTHERWISE = ("-", "/", "!")
"""First characters that make a CLI treat a prompt as an option or a command."""
_MOST = 2**53
"""Largest integer that JavaScript, the language of most CLIs, can represent exactly."""


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object. Return {} if it is torn, damaged or not an object."""
    if len(line) > JSON_LINE_BYTES:
        return {}
    try:
        return to_mapping(json_codec.decode_foreign(line, "line of a CLI"))
    except DocumentError:
        return {}


def to_mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def to_count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None


def to_percent(value: object) -> float | None:
    """Return a number as a percentage. Some CLIs report more than 100."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MOST else None  # type: ignore[operator,arg-type]


def to_time(value: object) -> datetime | None:
    """Return the time that is this number of seconds after 1970, or None if there is none."""
    seconds = to_count(value)
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (OverflowError, ValueError, OSError):
        return None


def parse_time(value: object) -> datetime | None:
    """Return the time in a text such as `2026-11-18T12:00:00Z`, or None if there is none."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def to_text(value: object) -> str:
    """Convert a value to text, without lone surrogates, which UTF-8 cannot encode."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def to_word(value: object, limit: int = WORD_CHARACTERS) -> str:
    """Shorten a text to one line. Only its start is read, because it may be megabytes long."""
    return to_one_line(to_text(value[: 2 * limit]), limit) if isinstance(value, str) else ""


def to_uuid(value: object) -> str:
    """Return a session id, or "" if the value is not a UUID."""
    return value if isinstance(value, str) and SESSION_ID.match(value) else ""


def describe_call(arguments: dict[str, Any]) -> str:
    """Return a call's main argument: its command, file or pattern, or else its first text.

    The result is longer than what Rekindle shows, because redaction would not recognize half a
    secret.
    """
    telling = ("command", "file_path", "pattern", "url", "query", "description")
    values = (arguments.get(key) for key in (*telling, *arguments))
    text = next((value for value in values if isinstance(value, str)), "")
    return to_word(text, ABOUT_CHARACTERS + MARGIN_CHARACTERS)


def make_passages(
    items: Iterable[PromptText | ToolResult | OutputItem],
    *,
    at: str,
    message: str = "",
    thread: str = "",
    repeats_message: bool = False,
) -> tuple[Passage, ...]:
    """Return the passages in a line, with the line's time, message and thread."""
    contents = [what for what in items if isinstance(what, PassageContent)]
    return tuple(
        Passage(
            what=what,
            at=at,
            message=message,
            thread=thread,
            repeats_message=repeats_message and what is contents[0],
        )
        for what in contents
    )


def make_argument(prompt: str, program: str) -> str:
    """Return a prompt as the last argument, with a prefix if a CLI would treat it as an option.

    Raises:
        UsageError: The prompt is longer than the operating system allows.
    """
    # A leading space would not help, because the CLI strips it in terminals.
    guarded = f"The task: {prompt}" if prompt.lstrip().startswith(_MEANT_OTHERWISE) else prompt
    if len(guarded.encode("utf-8", "replace")) > ARGUMENT_BYTES:
        raise UsageError(
            f"the prompt is too long for {program} in a terminal, which accepts {ARGUMENT_BYTES:,} "
            "bytes",
            hint="shorten the agent's task, its rules or its relay",
        )
    return guarded
