"""One agent's night as text: a time axis, lanes, curves and a list of what happened."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Literal, NamedTuple

from rich.text import Text

from rekindle.documents.screens.agent_night import (
    AgentNight,
    LineKind,
    MarkKind,
    SpanLane,
    TimelineLine,
)
from rekindle.terminal_screen.plain_text import Colours, make_line

ColourName = Literal["good", "bad", "wait", "note", "person"]

_LABEL = 9
"""Columns of the names of the lanes."""
_HOUR = timedelta(hours=1)
_STEPS = (1, 2, 3, 6, 12)
"""Hours between two times on the axis."""
_TIME = "00:00  "
_SPARKS = "▁▂▃▄▅▆▇█"
_SPANS: dict[SpanLane, tuple[str, ColourName]] = {
    "session": ("█", "good"),
    "wait": ("░", "wait"),
    "question": ("▒", "person"),
    "safe": ("▒", "person"),
}
"""Character and colour of each kind of period. An earlier kind covers a later one."""
_COLOURS: dict[MarkKind | LineKind, ColourName] = {
    "crash": "bad",
    "hang": "bad",
    "repeat": "bad",
    "refused": "bad",
    "handoff": "note",
    "compaction": "note",
    "wait": "wait",
    "limit": "wait",
    "question": "person",
    "answer": "person",
    "you": "person",
    "relay": "good",
}
_LANES: tuple[tuple[str, tuple[MarkKind, ...]], ...] = (
    ("events", ("compaction", "refused", "limit", "handoff", "repeat", "hang", "crash")),
    ("relay", ("relay",)),
    ("you", ("answer", "question")),
)
"""Lanes of marks with their kinds. If two marks share a column, the later kind is shown."""


class _Scale(NamedTuple):
    """The columns of a time axis."""

    since: datetime
    until: datetime
    columns: int

    def place(self, at: datetime) -> int:
        share = (at - self.since) / (self.until - self.since)
        return min(max(int(share * self.columns), 0), self.columns - 1)


class NightPicture:
    """Draws a night in a number of columns."""

    def __init__(self, night: AgentNight, width: int, colours: Colours) -> None:
        self._night, self._colours = night, colours
        self._scale = _Scale(night.since, night.until, max(1, width - _LABEL))

    def render(self, zone: tzinfo | None = None) -> Text:
        """Return the picture, with times in a time zone; None for the machine's."""
        night = self._night
        lanes = [
            _label("", _draw_axis(self._scale, zone)),
            _label("session", self._draw_spans()),
            *(
                _label(name, self._draw_marks(kinds))
                for name, kinds in _LANES
                if any(mark.kind in kinds for mark in night.marks)
            ),
            *self._draw_window(),
            *self._draw_spend(),
        ]
        lines = [self._render_line(line, zone) for line in night.lines]
        if not lines:
            lines = [Text("nothing happened in this time", "dim")]
        return Text("\n").join([*lanes, Text(), *lines])

    def _render_line(self, line: TimelineLine, zone: tzinfo | None) -> Text:
        time = f"{line.at.astimezone(zone):%H:%M}  "
        return Text.assemble(
            (time, "dim"), (f"{line.glyph} ", self._find_colour(line.kind)), make_line(line.text)
        )

    def _find_colour(self, kind: MarkKind | LineKind) -> str:
        name = _COLOURS.get(kind)
        return getattr(self._colours, name) if name else ""

    def _draw_spans(self) -> Text:
        columns = _make_empty(self._scale)
        for lane, (block, colour) in reversed(_SPANS.items()):
            for span in self._night.spans:
                if span.lane == lane:
                    first = self._scale.place(span.start)
                    last = self._scale.place(span.end or self._night.until)
                    drawn = block, getattr(self._colours, colour)
                    columns[first : last + 1] = [drawn] * (last + 1 - first)
        return Text.assemble(*columns)

    def _draw_marks(self, kinds: tuple[MarkKind, ...]) -> Text:
        columns = _make_empty(self._scale)
        for kind in kinds:
            for mark in self._night.marks:
                if mark.kind == kind:
                    columns[self._scale.place(mark.at)] = mark.glyph, self._find_colour(kind)
        return Text.assemble(*columns)

    def _draw_window(self) -> Iterator[Text]:
        """Yield the context-window usage. Its colour changes at the handoff threshold."""
        night, at = self._night, self._night.handoff_percent
        points = [(point.at, point.percent) for point in night.window if point.percent is not None]
        values = _place_highest(points, self._scale)
        if not values:
            return
        colours = {
            place: self._colours.wait if at and value >= at else self._colours.note
            for place, value in values.items()
        }
        labels = ("window", f"max {max(values.values()):.0f}%")
        yield from _draw_curve(labels, values, 100, colours, self._scale)

    def _draw_spend(self) -> Iterator[Text]:
        """Yield the spending as a share of its cap, or of the highest amount without a cap."""
        night = self._night
        known = [point for point in night.spend if point.usd is not None]
        points = [(point.at, point.usd or 0.0) for point in known]
        values = _place_highest(points, self._scale)
        if not values:
            return
        last = points[-1][1]
        for place in range(min(values), self._scale.place(night.until) + 1):
            values.setdefault(place, values.get(place - 1, last))
        most = night.usd_cap or max(values.values())
        cap = f"/{night.usd_cap:g}" if night.usd_cap else ""
        colours = dict.fromkeys(values, self._colours.person)
        label = f"{'~' * known[-1].is_estimated}${last:.2f}{cap}"
        yield from _draw_curve(("spent", label), values, most, colours, self._scale)


def _label(name: str, drawn: Text) -> Text:
    return Text.assemble((f"{name[: _LABEL - 1]:<{_LABEL}}", "dim"), drawn, no_wrap=True)


def _make_empty(scale: _Scale) -> list[tuple[str, str]]:
    return [(" ", "")] * scale.columns


def _draw_axis(scale: _Scale, zone: tzinfo | None) -> Text:
    columns = [" "] * scale.columns
    hours = (scale.until - scale.since) / _HOUR
    room = max(1, scale.columns // len(_TIME))
    step = next((step for step in _STEPS if hours / step <= room), _STEPS[-1])
    at = scale.since.astimezone(zone).replace(minute=0, second=0, microsecond=0) + _HOUR
    while at < scale.until:
        place, label = scale.place(at), f"{at:%H:%M}"
        if at.hour % step == 0 and place + len(label) <= scale.columns:
            columns[place : place + len(label)] = label
        at += _HOUR
    return Text("".join(columns), "dim")


def _place_highest(points: Iterable[tuple[datetime, float]], scale: _Scale) -> dict[int, float]:
    """Return the highest value in each column that has one."""
    values: dict[int, float] = {}
    for at, value in points:
        place = scale.place(at)
        values[place] = max(value, values.get(place, value))
    return values


def _draw_curve(
    labels: tuple[str, str],
    values: Mapping[int, float],
    most: float,
    colours: Mapping[int, str],
    scale: _Scale,
) -> Iterator[Text]:
    """Yield a curve, one line for each label. `most` fills all lines."""
    steps = len(_SPARKS)
    for above, label in zip(range(len(labels) - 1, -1, -1), labels, strict=True):
        columns = _make_empty(scale)
        for place, value in values.items():
            height = round(min(max(value / most, 0), 1) * steps * len(labels)) if most else 0
            part = min(max(height - above * steps, 0 if above else 1), steps)
            columns[place] = (_SPARKS[part - 1] if part else " "), colours[place]
        yield _label(label, Text.assemble(*columns))
