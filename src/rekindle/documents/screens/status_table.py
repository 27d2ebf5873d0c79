"""A table of several agents: a summary, one line for each agent, and the next command."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate, takewhile
from textwrap import wrap
from typing import NamedTuple

from rekindle.documents.screens.agent_row import (
    STATES,
    AgentRow,
    SpendFigures,
    WindowFigures,
    mark_estimate,
    render_usd,
)
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import (
    strip_invisible,
    to_one_line,
)
from rekindle.thresholds.screens import TABLE_NAME_SHARE, TABLE_TEXT_COLUMNS

_PLURALS: dict[str, str] = {state: row.plural for state, row in STATES.items() if row.plural}
_GAP = "  "
_HEADER = ("agent", "state", "reason", "next", "window", "spent", "active")
_PROJECT, _REASON, _NEXT, _WINDOW = "project", "reason", "next", "window"
_NAMES = (_PROJECT, "agent", "state")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_THOUSANDS = ((1_000_000, "M"), (1_000, "k"))


class TableLine(NamedTuple):
    """A line of the table, with its agent's state, if any."""

    text: str
    state: str = ""


class Group(NamedTuple):
    """The agents of one project, in a table of several projects."""

    project: str
    rows: Sequence[AgentRow]
    marked: Collection[str] = ()
    """Agents for which `rekindle status AGENT` shows a warning."""
    way: str = ""
    """Command prefix that changes to the project's folder."""
    hint: str = ""
    """How to fix a project that cannot be read. Its single row is not an agent."""


def render_table(
    rows: Sequence[AgentRow], now: datetime, columns: int, marked: Collection[str] = ()
) -> list[TableLine]:
    """Return the lines for a terminal with `columns` columns. Agents that need a person come first.

    `marked` names the agents for which `rekindle status AGENT` shows a warning. Long commands are
    wrapped, never cut.
    """
    group = Group("", rows, marked)
    table = _render_lines(_HEADER, [group], now, columns)
    return [
        *_wrap_summary(summarize_rows(rows), columns),
        *table,
        *_render_next_step(group, columns),
    ]


def render_projects(groups: Sequence[Group], now: datetime, columns: int) -> list[TableLine]:
    """Return one table for several projects, with agents that need a person first."""
    agents = [row for group in groups if not group.hint for row in group.rows]
    unread = sum(1 for group in groups if group.hint)
    summary = f"{render_count(len(groups), 'project')}, {summarize_rows(agents)}"
    summary += f"; {render_count(unread, 'project')} cannot be read" if unread else ""
    lines = _wrap_summary(summary, columns)
    if any(group.rows for group in groups):
        lines += _render_lines((_PROJECT, *_HEADER), groups, now, columns)
    steps = [
        line
        for group in groups
        if _make_question_terms(group)
        for line in _render_next_step(group, columns)
    ]
    if not steps and any(group.marked for group in groups):
        steps = [TableLine("! `rekindle status AGENT` in its project's folder shows what is wrong")]
    return lines + steps


def _wrap_summary(summary: str, columns: int) -> list[TableLine]:
    return [TableLine(line) for line in wrap(summary, columns, subsequent_indent=_GAP)]


def _render_lines(
    header: tuple[str, ...], groups: Sequence[Group], now: datetime, columns: int
) -> list[TableLine]:
    """Return the header and a line for each agent."""
    placed = [(group, row) for group in groups for row in group.rows]
    placed.sort(key=lambda row: not needs_person(row[1]))
    rows = [header]
    for group, row in placed:
        cells = _render_cells(row, now, is_marked=row.agent in group.marked)
        rows.append((_one_line(group.project), *cells) if _PROJECT in header else cells)
    cells_that_fit, widths = _fit_columns(rows, columns)
    texts = [_join_cells(line, widths, columns) for line in cells_that_fit]
    lines = [TableLine(text, row.state) for text, (_, row) in zip(texts[1:], placed, strict=True)]
    return [TableLine(texts[0]), *lines]


def needs_person(row: AgentRow) -> bool:
    """Return whether an agent needs a person."""
    return STATES[row.state].needs_person or row.open_questions > 0


def summarize_rows(rows: Iterable[AgentRow]) -> str:
    """Return a summary: the number of agents in each state, and what their runs spent."""
    rows = list(rows)
    order = [*STATES]
    labels = Counter(row.label for row in sorted(rows, key=lambda row: order.index(row.state)))
    count = [
        f"{number} {_PLURALS.get(label, label) if number > 1 else label}"
        for label, number in labels.items()
    ]
    costs = render_usd(row.spend.usd for row in rows)
    spent = f"; {costs} spent" if costs else ""
    agents = render_count(len(rows), "agent")
    return f"{agents}: {', '.join(count)}{spent}" if rows else agents


def name_folders(paths: Sequence[str]) -> list[str]:
    """Return the shortest unique ending of each path."""

    def find_short_name(path: str) -> str:
        parts = path.split("/")
        tails = ("/".join(parts[-count:]) for count in range(1, len(parts)))
        others = [f"/{other}" for other in paths if other != path]
        return next(
            (
                tail
                for tail in tails
                if not any(other_tail.endswith(f"/{tail}") for other_tail in others)
            ),
            path,
        )

    return [find_short_name(path) for path in paths]


def display_width(text: str) -> int:
    """Return a text's width in terminal columns. Wide letters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_measure_letter, text))


def cut_to_width(text: str, columns: int) -> str:
    """Cut a text to the given number of columns. A text that was cut ends with “…”."""
    if display_width(text) <= columns:
        return text
    used = accumulate(map(_measure_letter, text), initial=1)
    fitting = sum(1 for _ in takewhile(lambda width: width <= columns, used)) - 1
    return text[: max(0, fitting)].rstrip() + "…"


def render_age(then: datetime | None, now: datetime) -> str:
    """Return the time since `then` in the largest unit that fits."""
    if then is None:
        return "never"
    seconds = (now - then).total_seconds()
    return next(
        (f"{seconds // size:.0f} {unit}" for size, unit in _UNITS if seconds >= size), "now"
    )


def _measure_letter(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _render_cells(row: AgentRow, now: datetime, *, is_marked: bool) -> tuple[str, ...]:
    texts = (
        f"{row.agent}{'!' if is_marked else ''}",
        row.label,
        row.reason,
        "" if row.state == "done" else row.next_action,
        _render_fullness(row.window),
        _render_spending(row.spend),
        render_age(row.last_active, now),
    )
    return tuple(map(_one_line, texts))


def _one_line(text: str) -> str:
    return to_one_line(strip_invisible(text)) or "-"


def _render_fullness(window: WindowFigures) -> str:
    if window.percent.value is not None:
        return f"{mark_estimate(window.percent)}{window.percent.value:.0f}%"
    return f"{shorten_number(window.tokens.value)} tok" if window.tokens.value else ""


def _render_spending(spend: SpendFigures) -> str:
    if usd := render_usd([spend.usd]):
        return usd
    tokens = spend.tokens
    return f"{mark_estimate(tokens)}{shorten_number(tokens.value)} tok" if tokens.value else ""


def shorten_number(number: float) -> str:
    """Return a large number in thousands or millions, such as 4.5M."""
    for size, unit in _THOUSANDS:
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def _fit_columns(
    cells: Sequence[tuple[str, ...]], columns: int
) -> tuple[Sequence[tuple[str, ...]], list[int]]:
    """Return the cells that fit, and their widths. Text columns share the space that is left.

    If there is not enough room, the window column is dropped first, then the next action.
    """
    widths = _measure_columns(cells, columns)
    for name in (_WINDOW, _NEXT):
        if sum(widths) + len(_GAP) * (len(widths) - 1) <= columns:
            break
        place = cells[0].index(name)
        cells = [(*line[:place], *line[place + 1 :]) for line in cells]
        widths = _measure_columns(cells, columns)
    return cells, widths


def _measure_columns(cells: Sequence[tuple[str, ...]], columns: int) -> list[int]:
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    names = list(cells[0])
    for name in filter(names.__contains__, _NAMES):
        widths[names.index(name)] = min(
            widths[names.index(name)], round(columns * TABLE_NAME_SHARE)
        )
    texts = [names.index(name) for name in (_REASON, _NEXT) if name in names]
    others = sum(width for place, width in enumerate(widths) if place not in texts)
    least = len(texts) * TABLE_TEXT_COLUMNS
    room = max(columns - others - len(_GAP) * (len(widths) - 1), least)
    reason, *rest = texts
    if not rest:
        widths[reason] = min(widths[reason], room)
        return widths
    [following] = rest
    widths[reason] = min(widths[reason], max(room // 2, room - widths[following]))
    widths[following] = min(widths[following], room - widths[reason])
    return widths


def _join_cells(cells: Sequence[str], widths: Sequence[int], columns: int) -> str:
    texts = [cut_to_width(text, width) for text, width in zip(cells, widths, strict=True)]
    padded = [
        text + " " * (width - display_width(text))
        for text, width in zip(texts, widths, strict=True)
    ]
    return cut_to_width(_GAP.join(padded).rstrip(), columns)


def _make_question_terms(group: Group) -> list[AgentRow]:
    return [row for row in group.rows if needs_person(row)]


def _render_next_step(group: Group, columns: int) -> list[TableLine]:
    """Return the operator's next command, wrapped if necessary."""
    asking, way = _make_question_terms(group), group.way
    if group.hint:
        texts = [f"→ {_one_line(group.project)}: {_one_line(group.hint)}"]
    elif len(asking) == 1 and asking[0].command:
        row = asking[0]
        texts = [f"→ {row.next_step}"]
        if display_width(texts[0]) > columns and row.others:
            texts = [f"→ {row.command}", f"  {row.next_step.removeprefix(row.command).strip()}"]
    elif asking:
        listed = f"→ `{way}rekindle questions` lists their questions"
        shown = f"`{way}rekindle status AGENT` shows one agent"
        texts = [f"{listed}, {shown}"]
        if display_width(texts[0]) > columns:
            texts = [listed, f"  {shown}"]
    else:
        texts = ["! `rekindle status AGENT` shows what is wrong"] if group.marked else []
    return [TableLine(text) for text in texts]
