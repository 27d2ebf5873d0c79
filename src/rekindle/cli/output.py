"""Print text so that a terminal shows it and never obeys it.

Relays, transcripts, logs and error messages hold text that agents, tools and other people wrote. An
escape sequence in it could rename the window, write to the clipboard, or repaint lines above.
`echo` therefore prints every control character as its escaped form, whether the output is a
terminal, a pipe or a file: what is piped often reaches a terminal later. `--json` keeps the exact
text, because JSON has escapes of its own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import click

if TYPE_CHECKING:
    from datetime import datetime

OUTPUT_SCHEMA = 1
"""Version of the JSON that commands print; in one version, keys keep their name and meaning."""
_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # C0 without tab and newline, DEL, C1
    r"|\r(?!\n)"  # alone it moves the cursor back to the start of the line
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # changes the order of the letters shown
)
_RAW_IN_JSON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys and that JSON allows unescaped inside strings."""


class TextStyle(TypedDict, total=False):
    """The styles that commands use."""

    fg: str | None
    bold: bool
    dim: bool


class StyledText(NamedTuple):
    """Text in a style; the text cannot change the style."""

    text: str
    style: TextStyle


LineParts = tuple[str | StyledText, ...]
"""The parts of one line."""


def style_text(text: str, **style: Unpack[TextStyle]) -> StyledText:
    return StyledText(text, style)


def make_safe(text: str) -> str:
    r"""Return the text with control characters shown as `\x1b` or `\u202e`.

    Newlines, tabs and Windows line ends stay as they are.
    """
    return _OBEYED.sub(_escape_control, text)


def echo(*parts: str | StyledText, err: bool = False, nl: bool = True) -> None:
    """Print the parts on one line; only `StyledText` parts have colours."""
    click.echo(_join_parts(parts), err=err, nl=nl)


def paint_lines(lines: Sequence[LineParts], *, is_first: bool) -> None:
    """Write lines over those that are on the terminal's screen."""
    clear = "\x1b[2J" if is_first else ""
    text = "".join(f"{_join_parts(line)}\x1b[K\n" for line in lines)
    click.echo(f"{clear}\x1b[H{text}\x1b[J", nl=False)


def print_styled(text: str, *, err: bool = False, **style: Unpack[TextStyle]) -> None:
    echo(StyledText(text, style), err=err)


def render_moment(moment: "datetime", style: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a moment in the time zone of this host, for people; JSON output has UTC."""
    return moment.astimezone().strftime(style)


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON object on one line, with the version of the output schema first.

    A command prints a list under a key, and a stream as one object per line.
    """
    print_bare_json({"v": OUTPUT_SCHEMA, **document})


def print_bare_json(value: Any) -> None:
    """Print JSON without our schema version, for shapes that are specified elsewhere."""
    import msgspec  # noqa: PLC0415 - the entry point prints errors and must start fast

    print_json_line(msgspec.json.encode(value))


def print_json_line(line: bytes) -> None:
    """Print one line of JSON with its control characters escaped; its meaning stays the same."""
    text = line.decode("utf-8", "replace")
    click.echo(_RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _join_parts(parts: Iterable[str | StyledText]) -> str:
    return "".join(
        click.style(make_safe(part.text), **part.style)
        if isinstance(part, StyledText)
        else make_safe(part)
        for part in parts
    )


def _escape_control(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte
