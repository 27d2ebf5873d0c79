"""Run the server's tools. Each returns one text."""

import threading
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from rekindle.errors import RekindleError, UntrustedError, UsageError
from rekindle.formats.identifiers import strip_invisible
from rekindle.mcp import ask_person, propose_notes, read_notes
from rekindle.mcp.messages import Message, make_text_result
from rekindle.mcp.served_agent import ServedAgent, find_served_agent
from rekindle.thresholds.proposal_limits import RESULT_CHARACTERS

_READING: dict[str, Callable[[ServedAgent], str]] = {
    "status": read_notes.read_status,
    "relay": read_notes.read_relay,
    "loops": read_notes.read_loops,
    "decisions": read_notes.read_decisions,
    "questions": read_notes.read_questions,
}
_PROPOSING: dict[str, Callable[..., str]] = {
    "search": read_notes.search_notes,
    "propose_loop": propose_notes.propose_loop,
    "propose_resolution": propose_notes.propose_resolution,
    "propose_decision": propose_notes.propose_decision,
    "propose_failed_approach": propose_notes.propose_failed_approach,
}
_opening = threading.Lock()


def run_tool(name: str, arguments: dict[str, Any], cancelled: threading.Event) -> Message:
    """Run a tool with arguments that its schema accepts."""
    try:
        with _opening:
            agent = _open_agent()
        _require_visible(arguments)
        if name in _READING:
            text = _READING[name](agent)
        elif name in _PROPOSING:
            text = _PROPOSING[name](agent, **arguments)
        else:
            text = ask_person.ask_person(agent, cancelled, **arguments)
    except UntrustedError as error:
        # The error's own hint tells a person how to accept the folder, which an agent must not do.
        text = f"{error}. Ask the person to accept it, with `rekindle up` in a terminal."
        return make_text_result(_shorten(text), is_error=True)
    except RekindleError as error:
        hint = f" (→ {error.hint})" if error.hint else ""
        return make_text_result(_shorten(f"{error}{hint}"), is_error=True)
    return make_text_result(_shorten(text))


def _require_visible(arguments: dict[str, Any]) -> None:
    """Refuse a text of which nothing is visible once escape sequences are removed."""
    for name, value in arguments.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not any(map(_is_visible, strip_invisible(text))):
                raise UsageError(f"{name} is empty", hint="use visible characters")


def _is_visible(character: str) -> bool:
    """Return whether a character is a letter, a digit, a punctuation mark or a symbol."""
    return unicodedata.category(character)[0] in "LNPS"


@lru_cache(maxsize=1)
def _open_agent() -> ServedAgent:
    return find_served_agent(Path.cwd())


def _shorten(text: str) -> str:
    text = strip_invisible(text)
    if len(text) <= RESULT_CHARACTERS:
        return text
    return f"{text[:RESULT_CHARACTERS]}\n(cut here: {len(text):,} characters)"
