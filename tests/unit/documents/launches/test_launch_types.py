"""The fill level of a session's window."""

import pytest

from rekindle.documents.launches.launch_types import ProcessResult, WindowUsage


@pytest.mark.parametrize(
    ("usage", "percent"),
    [
        (WindowUsage(50, 200, "reported"), 25.0),
        (WindowUsage(50, 200, "estimated"), 25.0),
        (WindowUsage(50, 200, "unknown"), None),
        (WindowUsage(50, None, "reported"), None),
        (WindowUsage(50, 0, "reported"), None),
        (WindowUsage(0, 200, "exact"), 0.0),
    ],
)
def test_how_full_a_window_is(usage, percent):
    assert usage.percent == percent


def test_a_window_that_an_earlier_launch_reported():
    usage = WindowUsage(50, None, "unknown", "big", 7)
    assert usage.within({"big": 500}) == WindowUsage(50, 500, "reported", "big", 7)
    assert usage.within({"small": 500, "big": 0}) == usage


def test_a_process_was_not_in_a_terminal_unless_stated():
    """Otherwise its output would not be read, and a limit would count as a normal exit."""
    assert not ProcessResult(code=0, session="one").interactive
