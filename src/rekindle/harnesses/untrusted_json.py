"""What a CLI prints or writes, read without trust: any value may be missing or of another kind."""

import re
from collections.abc import Iterable
from typing import Any

from rekindle.documents.launches.cli_output import OutputItem
from rekindle.documents.transcripts.turns import (
    Passage,
    PassageContent,
    PromptText,
    ToolResult,
)
from rekindle.errors import DocumentError, UsageError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.storage import JSON_LINE_BYTES
from rekindle.thresholds.supervision import ARGUMENT_BYTES
from rekindle.thresholds.texts import ABOUT_CHARACTERS, MARGIN_CHARACTERS, WORD_CHARACTERS

_MEANT_OTHERWISE = ("-", "/", "!")
"""What no prompt may begin with: an option, a command of the CLI, a command for the shell."""
_MOST = 2**53
"""Beyond it, the language that most CLIs are written in has no whole numbers."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""In lower case: the id is also in the name of the transcript, and is looked for by letter."""


def parse_object(line: bytes) -> dict[str, Any]:
    """A line as an object; empty, where it is none: torn, damaged, or not JSON at all."""
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


def to_text(value: object) -> str:
    """A text; a lone surrogate that JSON let through could not be written again."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def to_word(value: object, limit: int = WORD_CHARACTERS) -> str:
    """A text as a short line; what is cut off is not looked at, for it may be megabytes."""
    return to_one_line(to_text(value[: 2 * limit]), limit) if isinstance(value, str) else ""


def to_uuid(value: object) -> str:
    """The id of a session; empty, where it cannot be one."""
    return value if isinstance(value, str) and _UUID.match(value) else ""


def describe_call(given: dict[str, Any]) -> str:
    """What says most about a call: its command, file or pattern; else the first text in it.

    More than is shown: a secret that is cut through could not be told for one.
    """
    telling = ("command", "file_path", "pattern", "url", "query", "description")
    values = (given.get(key) for key in (*telling, *given))
    found = next((value for value in values if isinstance(value, str)), "")
    return to_word(found, ABOUT_CHARACTERS + MARGIN_CHARACTERS)


def make_passages(
    found: Iterable[PromptText | ToolResult | OutputItem],
    *,
    at: str,
    message: str = "",
    thread: str = "",
    anew: bool = False,
) -> tuple[Passage, ...]:
    """What a line tells of a turn, with what it says about all of it."""
    told = [what for what in found if isinstance(what, PassageContent)]
    return tuple(
        Passage(what=what, at=at, message=message, thread=thread, anew=anew and what is told[0])
        for what in told
    )


def make_argument(prompt: str, program: str) -> str:
    """A prompt as the last word of a command line; no option, and no command of the program's.

    Raises:
        UsageError: It is longer than the system takes.
    """
    # Not by a space: in a terminal it is taken away before the first character is looked at.
    guarded = f"The task: {prompt}" if prompt.lstrip().startswith(_MEANT_OTHERWISE) else prompt
    if len(guarded.encode("utf-8", "replace")) > ARGUMENT_BYTES:
        raise UsageError(
            f"the prompt is too long for {program} in a terminal: more than "
            f"{ARGUMENT_BYTES:,} bytes",
            hint="shorten the agent's task, its rules or its relay",
        )
    return guarded
