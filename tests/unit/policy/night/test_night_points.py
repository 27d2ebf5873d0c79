"""The curves of a night: context-window usage and spending."""

import pytest

from night_events import at, log
from rekindle.documents import events
from rekindle.documents.screens.agent_night import SpendPoint, WindowPoint
from rekindle.policy.night.night_points import (
    build_spend_points,
    build_window_points,
    find_window_size,
    thin_points,
)

LAUNCH = {"launch": "l1", "cycle": 2, "session": "s1"}
STARTED = (events.LaunchStarted, {**LAUNCH, "harness": "codex"})


def test_window_points_come_from_the_log_and_from_turns():
    happened = log(
        STARTED,
        (events.WindowMeasured, {"launch": "l1", "tokens": 20_000, "window": 100_000}),
        (events.HandoffTriggered, {**LAUNCH, "by": "threshold", "tokens": 70_000}),
        (events.LaunchEnded, {**LAUNCH, "exit": "handoff", "tokens": 71_234}),
        (events.WindowMeasured, {"launch": "l2", "tokens": 5_000}),
    )
    turns = [WindowPoint(at(2.5), 30_000, "s1"), WindowPoint(at(0.5), 10_000, "s1")]
    assert build_window_points(happened, turns) == [
        WindowPoint(at(0.5), 10_000, "s1", 10.0),
        WindowPoint(at(1), 20_000, "s1", 20.0),
        WindowPoint(at(2), 70_000, "s1", 70.0),
        WindowPoint(at(2.5), 30_000, "s1", 30.0),
        WindowPoint(at(3), 71_234, "s1", 71.2),
        WindowPoint(at(4), 5_000, "", 5.0),
    ]


def test_without_a_known_size_points_have_no_percentage():
    ended = (events.LaunchEnded, {**LAUNCH, "exit": "clean", "tokens": 0})
    turn = WindowPoint(at(0), 10_000, "s9")
    assert build_window_points(log(STARTED, ended), [turn]) == [turn]
    sized = log((events.WindowSizeReported, {"harness": "x", "model": "m", "window": 40_000}))
    assert build_window_points(sized, [turn])[0].percent == 25.0


def test_each_session_has_the_size_of_its_own_window():
    """A session keeps its size if a later report does not repeat it."""
    other = {"launch": "l2", "cycle": 2, "session": "s2"}
    happened = log(
        STARTED,
        (events.WindowMeasured, {"launch": "l1", "tokens": 10_000, "window": 100_000}),
        (events.WindowMeasured, {"launch": "l1", "tokens": 20_000}),
        (events.LaunchEnded, {**other, "exit": "clean", "tokens": 50_000, "window": 1_000_000}),
    )
    assert [point.percent for point in build_window_points(happened)] == [10.0, 20.0, 5.0]


def test_the_window_size_is_the_last_one_that_was_reported():
    happened = log(
        (events.WindowMeasured, {"launch": "l1", "tokens": 1, "window": 100_000}),
        (events.WindowMeasured, {"launch": "l1", "tokens": 1, "window": 200_000}),
        (events.WindowMeasured, {"launch": "l1", "tokens": 1}),
        (events.Heartbeat, {}),
    )
    assert find_window_size(happened) == 200_000
    assert find_window_size(happened[3:]) is None


def test_spending_starts_at_zero_in_each_run():
    happened = log(
        (events.RunStarted, {}),
        (events.SpendRecorded, {"launch": "l1", "tokens": 500, "usd": 0.5}),
        (events.LaunchEnded, {**LAUNCH, "exit": "clean", "run_usd": 1.0, "run_tokens": 900,
                              "is_estimated": True}),
        (events.SummaryMade, {"document": "brief", "how": "headless", "usd": 9.0}),
        (events.SummaryMade, {"document": "relay", "how": "headless", "run_usd": 1.5,
                              "run_tokens": 950}),
        (events.ReviewMade, {"cycle": 1, "run_usd": 2.0, "run_tokens": 990}),
        (events.RunStarted, {}),
        (events.SpendRecorded, {"launch": "l2", "tokens": 70}),
    )  # fmt: skip
    assert build_spend_points(happened) == [
        SpendPoint(at(0), 0.0, 0),
        SpendPoint(at(1), 0.5, 500, is_estimated=True),
        SpendPoint(at(2), 1.0, 900, is_estimated=True),
        SpendPoint(at(4), 1.5, 950),
        SpendPoint(at(5), 2.0, 990),
        SpendPoint(at(6), 0.0, 0),
        SpendPoint(at(7), None, 70),
    ]


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (10, 10), (11, 10), (997, 10)])
def test_curves_are_thinned_to_a_maximum(count, kept):
    points = [WindowPoint(at(place), place) for place in range(count)]
    thin = thin_points(points, lambda point: point.tokens, 10)
    assert len(thin) == kept
    assert thin[:1] == tuple(points[:1])
    assert thin[-1:] == tuple(points[-1:])


def test_thinning_keeps_the_peaks_in_order():
    tokens = [1, 9, 2, 3, 0, 4, 5, 5, 5, 5]
    points = [WindowPoint(at(place), value) for place, value in enumerate(tokens)]
    thin = thin_points(points, lambda point: point.tokens, 4)
    assert [point.tokens for point in thin] == [9, 0, 4, 5]
    flat = [WindowPoint(at(place), 7) for place in range(10)]
    assert thin_points(flat, lambda point: point.tokens, 4) == (flat[0], flat[5])
