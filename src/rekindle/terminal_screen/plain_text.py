"""Text from agents, without markup and escape sequences."""

from typing import NamedTuple

from rich.text import Text

from rekindle.documents.screens.agent_row import STATES, AgentState
from rekindle.formats.identifiers import strip_invisible, to_one_line

STATE_GLYPHS: dict[AgentState, str] = {
    "needs you": "◐",
    "broken": "✕",
    "waiting": "◔",
    "running": "●",
    "stopped": "○",
    "done": "✓",
}


def make_line(text: str, style: str = "") -> Text:
    """Return a single line that is shown as it is. textual would interpret a string's markup."""
    return Text(to_one_line(strip_invisible(text)), style, no_wrap=True, overflow="ellipsis")


def make_block(text: str, style: str = "") -> Text:
    """Return several lines that are shown as they are."""
    return Text(strip_invisible(text).expandtabs(), style)


def make_state(state: AgentState, *, is_dark: bool) -> Text:
    """Return a state with its glyph and its colour."""
    colour = STATES[state].dark if is_dark else STATES[state].light
    return Text(f"{STATE_GLYPHS[state]} {state}", colour, no_wrap=True)


class Colours(NamedTuple):
    """Colours that are readable on the background."""

    good: str
    bad: str
    wait: str
    note: str
    person: str


def find_colours(*, is_dark: bool) -> Colours:
    if is_dark:
        return Colours("#6fd49a", "#ff8f85", "#e5bd5c", "#7cc4f0", "#d9a0f0")
    return Colours("#1a6b3c", "#a5231b", "#7a5600", "#1d5f8a", "#7a2a9a")
