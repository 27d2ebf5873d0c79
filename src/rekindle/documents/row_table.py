"""The rows of several agents as a table: a summary, one line for each agent, the next command."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate, takewhile
from typing import NamedTuple, get_args

from rekindle.documents.identity import one_line, visible
from rekindle.documents.row import Row, Spend, State, Window
from rekindle.thresholds.screens import TABLE_NAME_SHARE, TABLE_TEXT_COLUMNS

_GAP = "  "
_HEADER = ("agent", "state", "reason", "next", "window", "spent", "active")
_REASON, _NEXT, _WINDOW = 2, 3, 4
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_THOUSANDS = ((1_000_000, "M"), (1_000, "k"))


class Line(NamedTuple):
    """A line of the table, and the state of the agent that it is about; empty: of none."""

    text: str
    state: str = ""


def render_table(
    rows: Sequence[Row],
    now: datetime,
    columns: int,
    marked: Collection[str] = (),
    way: str = "",
) -> list[Line]:
    """Return the lines for a terminal of this many columns, agents that need a person first.

    `marked` names the agents of which `rekindle status AGENT` shows a warning. Commands for the
    whole project begin with `way`. A command is never cut: one that is longer wraps.
    """
    ordered = sorted(rows, key=lambda row: not needs_person(row))
    whole = [_HEADER, *(_cells(row, now, is_marked=row.agent in marked) for row in ordered)]
    cells, widths = _fit(whole, columns)
    texts = [_join(line, widths, columns) for line in cells]
    lines = [Line(cut(summarize_rows(rows), columns)), Line(texts[0])]
    lines += [Line(text, row.state) for text, row in zip(texts[1:], ordered, strict=True)]
    return lines + [Line(text) for text in _next_step(ordered, marked, columns, way)]


def needs_person(row: Row) -> bool:
    """Return whether an agent waits for something that only a person can do."""
    return row.state in {"needs you", "broken"} or row.open_questions > 0


def summarize_rows(rows: Iterable[Row]) -> str:
    """Return how many agents have each outcome, or state, and what their runs have spent."""
    rows = list(rows)
    order: list[State] = ["needs you", "broken", "waiting"]
    order += [state for state in get_args(State) if state not in order]
    labels = Counter(row.label for row in sorted(rows, key=lambda row: order.index(row.state)))
    count = [f"{number} {_in_plural(label, number)}" for label, number in labels.items()]
    costs = [row.spend.usd for row in rows if row.spend.usd.value is not None]
    about = "~" if any(cost.source == "estimated" for cost in costs) else ""
    spent = f"; {about}${sum(cost.value or 0 for cost in costs):.2f} spent" if costs else ""
    agents = f"{len(rows)} agent{'' if len(rows) == 1 else 's'}"
    return f"{agents}: {', '.join(count)}{spent}" if rows else agents


def display_width(text: str) -> int:
    """Return the columns that a terminal needs for a text: wide letters two, marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_letter_width, text))


def cut(text: str, columns: int) -> str:
    """Return a text that fits these columns, cut with … if it is longer."""
    if display_width(text) <= columns:
        return text
    used = accumulate(map(_letter_width, text), initial=1)
    fitting = sum(1 for _ in takewhile(lambda width: width <= columns, used)) - 1
    return text[: max(0, fitting)].rstrip() + "…"


def render_age(then: datetime | None, now: datetime) -> str:
    """Return how long ago something was, in the unit that a person would use."""
    if then is None:
        return "never"
    seconds = (now - then).total_seconds()
    return next(
        (f"{seconds // size:.0f} {unit}" for size, unit in _UNITS if seconds >= size), "now"
    )


def _letter_width(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _in_plural(label: str, count: int) -> str:
    return "need you" if label == "needs you" and count > 1 else label


def _cells(row: Row, now: datetime, *, is_marked: bool) -> tuple[str, ...]:
    texts = (
        f"{row.agent}{'!' if is_marked else ''}",
        row.label,
        row.reason,
        "" if row.state == "done" else row.next_action,
        _fullness(row.window),
        _spent(row.spend),
        render_age(row.last_active, now),
    )
    return tuple(one_line(visible(text)) or "-" for text in texts)


def _fullness(window: Window) -> str:
    if window.percent.value is not None:
        about = "~" if window.percent.source == "estimated" else ""
        return f"{about}{window.percent.value:.0f}%"
    return f"{_short(window.tokens.value)} tok" if window.tokens.value else ""


def _spent(spend: Spend) -> str:
    if spend.usd.value is not None:
        return f"{'~' if spend.usd.source == 'estimated' else ''}${spend.usd.value:.2f}"
    return f"{_short(spend.tokens.value)} tok" if spend.tokens.value else ""


def _short(number: float) -> str:
    for size, unit in _THOUSANDS:
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def _fit(
    cells: Sequence[tuple[str, ...]], columns: int
) -> tuple[Sequence[tuple[str, ...]], list[int]]:
    """Return the cells that fit, and their widths; the columns of text share what others leave.

    If there is too little room the window is left out, and then the next action too.
    """
    widths = _widths(cells, columns)
    for place in (_WINDOW, _NEXT):
        if sum(widths) + len(_GAP) * (len(widths) - 1) <= columns:
            break
        cells = [(*line[:place], *line[place + 1 :]) for line in cells]
        widths = _widths(cells, columns)
    return cells, widths


def _widths(cells: Sequence[tuple[str, ...]], columns: int) -> list[int]:
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    for place in (0, 1):
        widths[place] = min(widths[place], round(columns * TABLE_NAME_SHARE))
    texts = {_REASON, _NEXT} if "next" in cells[0] else {_REASON}
    others = sum(width for place, width in enumerate(widths) if place not in texts)
    least = len(texts) * TABLE_TEXT_COLUMNS
    room = max(columns - others - len(_GAP) * (len(widths) - 1), least)
    if _NEXT not in texts:
        widths[_REASON] = min(widths[_REASON], room)
        return widths
    widths[_REASON] = min(widths[_REASON], max(room // 2, room - widths[_NEXT]))
    widths[_NEXT] = min(widths[_NEXT], room - widths[_REASON])
    return widths


def _join(cells: Sequence[str], widths: Sequence[int], columns: int) -> str:
    texts = [cut(text, width) for text, width in zip(cells, widths, strict=True)]
    padded = [
        text + " " * (width - display_width(text))
        for text, width in zip(texts, widths, strict=True)
    ]
    return cut(_GAP.join(padded).rstrip(), columns)


def _next_step(
    rows: Sequence[Row], marked: Collection[str], columns: int, way: str
) -> Iterable[str]:
    """Return what the operator types next, on as many lines as that needs."""
    asking = [row for row in rows if needs_person(row)]
    if len(asking) == 1 and asking[0].command:
        row = asking[0]
        whole = f"→ {row.next_step}"
        if display_width(whole) <= columns or not row.others:
            return [whole]
        return [f"→ {row.command}", f"  {row.next_step.removeprefix(row.command).strip()}"]
    if asking:
        listed = f"→ `{way}rekindle questions` lists what they ask"
        shown = f"`{way}rekindle status AGENT` shows one agent"
        whole = f"{listed}, {shown}"
        return [whole] if display_width(whole) <= columns else [listed, f"  {shown}"]
    return [f"! `{way}rekindle status AGENT` shows what is wrong"] if marked else []
