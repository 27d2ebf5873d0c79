"""Columns of the fleet table, and their choice by the width of the terminal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.text import Text

from rekindle.documents.screens.agent_row import (
    STATES,
    AgentRow,
    SpendFigures,
    mark_estimate,
)
from rekindle.documents.screens.status_table import (
    cut_to_width,
    display_width,
    render_age,
    shorten_number,
)
from rekindle.terminal_screen.plain_text import find_colours, make_line, make_state
from rekindle.thresholds.screens import TOP_BAR_COLUMNS, TOP_NAME_SHARE, TOP_TEXT_COLUMNS

WHAT = "what, or why"
_AGENT, _WINDOW, _PERCENT = "agent", "window", "win"
_COLUMNS = ("state", _AGENT, "harness", WHAT, "cycle", _WINDOW, "spent", "loops", "seen")
_DROPPED = ("harness", _WINDOW, "loops", "cycle", _PERCENT, "seen", "spent")
"""Columns that a narrow terminal does not show, the first one first. A window that has no room for
its bar is shown in percent.
"""
_GAP = 2
"""Spaces between two columns, which textual adds."""
_PARTS = " ▏▎▍▌▋▊▉"
_UNKNOWN = "?"


class FleetTable(NamedTuple):
    """The table's columns with their widths, and the cells of each agent."""

    columns: tuple[tuple[str, int], ...]
    cells: Mapping[str, tuple[Text, ...]]


def build_table(
    rows: Sequence[AgentRow],
    thresholds: Mapping[str, int | None],
    now: datetime,
    width: int,
    *,
    is_dark: bool,
) -> FleetTable:
    """Return the table for a terminal with `width` columns.

    `thresholds` has each agent's context-window usage at which a handoff is due, in percent.
    """
    cells = [_make_cells(row, thresholds.get(row.agent), now, is_dark=is_dark) for row in rows]
    names = [name for name in _COLUMNS if name != _PERCENT]
    widths = _measure(names, cells, width)
    for dropped in _DROPPED:
        if widths[WHAT] >= TOP_TEXT_COLUMNS:
            break
        place = names.index(dropped)
        names[place : place + 1] = [_PERCENT] if dropped == _WINDOW else []
        widths = _measure(names, cells, width)
    fitted = {
        row.agent: tuple(_fit(line[name], widths[name]) for name in names)
        for row, line in zip(rows, cells, strict=True)
    }
    return FleetTable(tuple((name, widths[name]) for name in names), fitted)


def describe_work(row: AgentRow) -> str:
    """Return what the agent does, or why it does not work."""
    if row.state == "running" and row.next_action:
        return row.next_action
    return row.reason or row.next_action


def _measure(
    names: Sequence[str], cells: Sequence[Mapping[str, Text]], width: int
) -> dict[str, int]:
    widths = {
        name: max([len(name), *(display_width(line[name].plain) for line in cells)])
        for name in names
    }
    widths[_AGENT] = min(widths[_AGENT], max(round(width * TOP_NAME_SHARE), len(_AGENT)))
    others = sum(size for name, size in widths.items() if name != WHAT)
    widths[WHAT] = max(1, width - others - _GAP * len(names))
    return widths


def _fit(cell: Text, width: int) -> Text:
    if display_width(cell.plain) <= width:
        return cell
    return Text(cut_to_width(cell.plain, width), cell.style, no_wrap=True)


def _make_cells(
    row: AgentRow, threshold: int | None, now: datetime, *, is_dark: bool
) -> dict[str, Text]:
    needs_person = STATES[row.state].needs_person
    return {
        "state": make_state(row.state, is_dark=is_dark),
        _AGENT: make_line(row.agent, "bold"),
        "harness": make_line(row.harness or _UNKNOWN, "dim"),
        WHAT: make_line(describe_work(row) or "–", "" if needs_person else "dim"),
        "cycle": make_line(_render_cycle(row)),
        _WINDOW: _draw_window(row, threshold, is_dark=is_dark),
        _PERCENT: make_line(_render_percent(row)),
        "spent": make_line(render_spent(row.spend)),
        "loops": make_line(
            f"{row.open_loops}·{row.stale_loops}" if row.stale_loops else str(row.open_loops)
        ),
        "seen": make_line(render_age(row.last_active, now), "dim"),
    }


def _render_cycle(row: AgentRow) -> str:
    return f"{row.cycles_done}/{row.cycles_of}" if row.cycles_of else str(row.cycles_done)


def _render_percent(row: AgentRow) -> str:
    figure = row.window.percent
    if figure.value is None:
        return _UNKNOWN
    return f"{mark_estimate(figure)}{figure.value:.0f}%"


def _draw_window(row: AgentRow, threshold: int | None, *, is_dark: bool) -> Text:
    """Return a bar with a mark at the handoff threshold, and the percentage."""
    percent = row.window.percent.value
    bar = draw_bar(percent or 0, TOP_BAR_COLUMNS)
    is_full = percent is not None and threshold is not None and percent >= threshold
    colours = find_colours(is_dark=is_dark)
    text = Text(no_wrap=True)
    place = TOP_BAR_COLUMNS if threshold is None else round(TOP_BAR_COLUMNS * threshold / 100)
    text.append(bar[:place], colours.wait if is_full else colours.note)
    text.append(" " if threshold is None else "┆", "dim")
    text.append(bar[place:], colours.wait)
    text.append(f"{_render_percent(row):>5}")
    return text


def draw_bar(percent: float, columns: int) -> str:
    """Return a bar in which 100 percent fill all columns."""
    eighths = round(min(max(percent / 100, 0), 1) * columns * len(_PARTS))
    whole, part = divmod(eighths, len(_PARTS))
    return ("█" * whole + (_PARTS[part] if part else "")).ljust(columns)


def render_spent(spend: SpendFigures) -> str:
    """Return what the run has spent and its cap: dollars if they are known, otherwise tokens."""
    usd, tokens = spend.usd, spend.tokens
    if usd.value is not None or (spend.usd_cap and not tokens.value):
        known = _UNKNOWN if usd.value is None else f"{mark_estimate(usd)}${usd.value:.2f}"
        return f"{known}/{spend.usd_cap:g}" if spend.usd_cap else f"{known}/–"
    if not tokens.value and not spend.tokens_cap:
        return _UNKNOWN
    known = f"{mark_estimate(tokens)}{shorten_number(tokens.value)}" if tokens.value else _UNKNOWN
    return f"{known}/{shorten_number(spend.tokens_cap) if spend.tokens_cap else '–'} tok"
