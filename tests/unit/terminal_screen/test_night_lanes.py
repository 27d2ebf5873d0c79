"""A night is drawn on one time axis, and told as text below it."""

from datetime import UTC, datetime, timedelta

from rekindle.documents.screens.agent_night import (
    AgentNight,
    NightMark,
    NightSpan,
    SpendPoint,
    TimelineLine,
    WindowPoint,
)
from rekindle.terminal_screen.night_lanes import NightPicture
from rekindle.terminal_screen.plain_text import find_colours

SINCE = datetime(2026, 4, 13, 22, tzinfo=UTC)
COLOURS = find_colours(is_dark=True)


def at(hours):
    return SINCE + timedelta(hours=hours)


def draw(width=49, **fields):
    night = AgentNight(**{"agent": "trades", "since": SINCE, "until": at(10), **fields})
    return NightPicture(night, width, COLOURS).render(UTC)


def find_lane(text, name):
    [line] = [line for line in text.plain.splitlines() if line.startswith(name)]
    return line[9:]


def test_spans_are_drawn_where_they_happened():
    spans = (
        NightSpan(lane="session", start=at(-1), end=at(2.4), first=1, last=2),
        NightSpan(lane="wait", start=at(2.5), end=at(4.9), first=3, last=4),
        NightSpan(lane="safe", start=at(9), first=5, last=5),
    )
    assert find_lane(draw(spans=spans), "session") == "█" * 10 + "░" * 10 + " " * 16 + "▒" * 4


def test_a_crash_hides_another_mark_in_its_column():
    marks = (NightMark(at(5), 3, "crash"), NightMark(at(5.1), 4, "handoff"))
    assert find_lane(draw(marks=marks), "events").strip() == "✕"


def test_the_window_curve_warns_above_the_threshold():
    window = (WindowPoint(at(1), 1, percent=50.0), WindowPoint(at(2), 1, percent=85.0))
    text = draw(window=window, handoff_percent=80)
    assert find_lane(text, "max 85%").strip() == "█   █"
    assert [COLOURS.wait in str(span.style) for span in text.spans].count(True) == 2


def test_spending_continues_until_the_end_and_shows_its_cap():
    spend = (SpendPoint(at(0), 1.0, 10), SpendPoint(at(5), 8.0, 20))
    text = draw(spend=spend, usd_cap=8)
    assert find_lane(text, "$8.00/8") == "▂" * 20 + "█" * 20
    assert find_lane(text, "spent") == " " * 20 + "█" * 20


def test_an_estimated_cost_is_marked():
    spend = (SpendPoint(at(0), 1.0, 10), SpendPoint(at(5), 8.0, 20, is_estimated=True))
    assert "~$8.00" in draw(spend=spend).plain
    assert "~" not in draw(spend=spend[:1]).plain


def test_a_curve_without_known_values_is_left_out():
    window, spend = (WindowPoint(at(1), 1),), (SpendPoint(at(1), None, 5),)
    assert "max" not in draw(window=window).plain
    assert "spent" not in draw(spend=spend).plain


def test_lines_are_shown_with_their_times_and_without_markup():
    line = TimelineLine(
        at=at(1.5), kind="crash", glyph="✕", text="[b]x[/] \x1b[1m", first=1, last=1
    )
    assert draw(lines=(line,)).plain.endswith("23:30  ✕ [b]x[/]")
    assert draw().plain.endswith("nothing happened in this time")


def test_the_axis_shows_fewer_hours_on_a_narrow_terminal():
    assert draw(129).plain.splitlines()[0].split()[:2] == ["23:00", "00:00"]
    assert draw(29).plain.splitlines()[0].split() == ["00:00"]
