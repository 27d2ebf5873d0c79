"""Build the curves of a night: context-window usage and spending over time."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.screens.agent_night import SpendPoint, WindowPoint
from rekindle.thresholds.screens import NIGHT_POINTS

P = TypeVar("P", WindowPoint, SpendPoint)


def build_window_points(
    happened: Iterable[AnyEvent | UnknownEvent], turns: Iterable[WindowPoint] = ()
) -> list[WindowPoint]:
    """Return the context-window usage from the log and from the turns of transcripts, by time."""
    sizes: dict[str, int] = {}
    points, session_of, size = list(turns), dict[str, str](), 0
    for event in happened:
        match event:
            case events.LaunchStarted():
                session_of[event.launch] = event.session
            case events.LaunchEnded() | events.HandoffTriggered() | events.WindowMeasured():
                session = getattr(event, "session", "") or session_of.get(event.launch, "")
                size = event.window or size
                sizes[session] = event.window or sizes.get(session, 0)
                if event.tokens:
                    points.append(WindowPoint(event.ts, event.tokens, session))
            case events.WindowSizeReported():
                size = event.window
            case _:
                pass
    points.sort(key=lambda point: point.at)
    return [_add_percent(point, sizes.get(point.session) or size) for point in points]


def find_window_size(happened: Sequence[AnyEvent | UnknownEvent]) -> int | None:
    """Return the last reported context-window size, or None if there is none."""
    reports = (getattr(event, "window", None) for event in reversed(happened))
    return next(filter(None, reports), None)


def build_spend_points(happened: Iterable[AnyEvent | UnknownEvent]) -> list[SpendPoint]:
    """Return the spending of each run, by time."""
    points = []
    for event in happened:
        match event:
            case events.RunStarted():
                points.append(SpendPoint(event.ts, 0.0, 0))
            case events.SpendRecorded():
                points.append(
                    SpendPoint(event.ts, event.usd or None, event.tokens, bool(event.usd))
                )
            case events.SummaryMade(run_usd=None):
                pass
            case events.LaunchEnded() | events.ReviewMade() | events.SummaryMade():
                spent = (event.run_usd or None, event.run_tokens or 0)
                points.append(SpendPoint(event.ts, *spent, event.is_estimated is True))
            case _:
                pass
    return sorted(points, key=lambda point: point.at)


def thin_points(
    points: Sequence[P], measure: Callable[[P], float], most: int = NIGHT_POINTS
) -> tuple[P, ...]:
    """Return at most `most` points, including each stretch's lowest and highest point."""
    if len(points) <= most:
        return tuple(points)
    stretches = most // 2
    ends = [len(points) * place // stretches for place in range(stretches + 1)]
    kept: list[P] = []
    for start, end in pairwise(ends):
        places = range(start, end)
        low = min(places, key=lambda place: measure(points[place]))
        high = max(places, key=lambda place: measure(points[place]))
        kept += [points[place] for place in sorted({low, high})]
    return tuple(kept)


def _add_percent(point: WindowPoint, size: int) -> WindowPoint:
    if not size:
        return point
    return msgspec.structs.replace(point, percent=round(100 * point.tokens / size, 1))
