"""Print text safely, without control characters that a terminal would interpret.

Relays, transcripts, logs and error messages contain text from agents, tools and other people. An
escape sequence in such text could rename the window, write to the clipboard, or repaint earlier
lines. `echo` therefore escapes every control character, even if the output is a pipe or a file,
because piped output often reaches a terminal later. `--json` keeps the exact text, because JSON has
its own escapes.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import click

if TYPE_CHECKING:
    from datetime import datetime

    from rekindle.api.describe_reports import TextStyle

OUTPUT_SCHEMA = 1
"""Version of the JSON output. Within a version, keys keep their names and meanings."""
_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # C0 without tab and newline, DEL, C1
    r"|\r(?!\n)"  # a lone CR moves the cursor back to the start of the line
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # changes the display order of letters
)
_RAW_IN_JSON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal interprets but JSON strings may contain unescaped."""
_MARK_COLOURS = {"✓": "green", "✗": "red", "→": "cyan"}
_MARK = re.compile(r" *[✓✗→](?= )")


class StyledText(NamedTuple):
    """Text with a style that escape sequences in the text cannot change."""

    text: str
    style: "TextStyle"


LineParts = tuple[str | StyledText, ...]
"""Parts of one output line."""


def style_text(text: str, **style: Unpack["TextStyle"]) -> StyledText:
    return StyledText(text, style)


def make_safe(text: str) -> str:
    r"""Return the text with each control character escaped, such as `\x1b` or `\u202e`.

    Newlines, tabs and Windows line endings are not changed.
    """
    return _OBEYED.sub(_escape_control, text)


def echo(*parts: str | StyledText, err: bool = False, nl: bool = True) -> None:
    """Print the parts on one line. `StyledText` parts and a leading mark are coloured."""
    click.echo(_join_parts(parts), err=err, nl=nl, color=_is_colour_forced() or None)


def paint_lines(lines: Sequence[LineParts], *, is_first: bool) -> None:
    """Repaint the terminal's screen with these lines."""
    clear = "\x1b[2J" if is_first else ""
    text = "".join(f"{_join_parts(line)}\x1b[K\n" for line in lines)
    click.echo(f"{clear}\x1b[H{text}\x1b[J", nl=False)


def print_styled(text: str, *, err: bool = False, **style: Unpack["TextStyle"]) -> None:
    echo(StyledText(text, style), err=err)


def render_moment(moment: "datetime", style: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Format a time in the host's time zone. JSON output uses UTC instead."""
    return moment.astimezone().strftime(style)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON object on one line, with the version of the output schema as its first key.

    A list is printed under a key of one object, and a stream as one object per line.
    """
    print_bare_json({"v": OUTPUT_SCHEMA, **document})


def print_bare_json(value: Any) -> None:
    """Print JSON without Rekindle's schema version, for formats that are specified elsewhere."""
    import msgspec  # noqa: PLC0415 - the entry point prints errors and must start fast

    print_json_line(msgspec.json.encode(value))


def print_json_line(line: bytes) -> None:
    """Print one line of JSON, with control characters as JSON escapes."""
    text = line.decode("utf-8", "replace")
    click.echo(_RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _join_parts(parts: Iterable[str | StyledText]) -> str:
    if _is_colour_refused():
        return "".join(
            make_safe(part.text if isinstance(part, StyledText) else part) for part in parts
        )
    return "".join(
        click.style(make_safe(part.text), **part.style)
        if isinstance(part, StyledText)
        else make_safe(part)
        for part in _split_mark(list(parts))
    )


def _split_mark(parts: list[str | StyledText]) -> list[str | StyledText]:
    """Return the parts of a line, with a leading mark as a separate part."""
    if parts and isinstance(parts[0], str) and (mark := _MARK.match(parts[0])):
        rest = parts[0][mark.end() :]
        return [style_text(mark[0], fg=_MARK_COLOURS[mark[0].strip()]), rest, *parts[1:]]
    return parts


def _is_colour_refused() -> bool:
    return bool(os.environ.get("NO_COLOR")) or (
        os.environ.get("TERM") == "dumb" and not _is_colour_forced()
    )


def _is_colour_forced() -> bool:
    """Return whether to colour the output even if it goes to a pipe or a file.

    NO_COLOR takes precedence.
    """
    return os.environ.get("FORCE_COLOR", "0") not in {"", "0"} and not os.environ.get("NO_COLOR")


def _escape_control(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte
