"""The watchdog's decision to start a supervisor: the whole table, stated in other words."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from rekindle.policy.settings.runtime_settings import RestartSettings
from rekindle.policy.supervision import watchdog_table
from rekindle.policy.supervision.watchdog_table import (
    StartAttempt,
    WatchFacts,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
SAID = 412
MARKERS = {
    None: False,
    "": True,  # a person's own: `touch .clean-exit`
    "\n": True,
    "412 done\n": True,
    "412": True,
    "4120 done\n": True,
    "done\n": True,
    "41 done\n": False,  # the operator has said since that it is to run
}
"""The content of `.clean-exit`, and whether it counts."""
LOGS = {"whole": {}, "tampered": {"is_tampered": True}, "lossy": {"may_miss_stop": True}}
"""In which condition the log is."""
CASES = list(
    itertools.product(
        [True, False], ["", "running", "stopped"], [True, False], MARKERS.items(), LOGS
    )
)


@pytest.mark.parametrize(("supervised", "desired", "is_over", "marker", "log"), CASES)
def test_every_row(supervised, desired, is_over, marker, log):
    """Started only if it is wanted, not over, not marked, not supervised, and its log is whole."""
    says, is_marked = marker
    facts = WatchFacts(
        supervised=supervised,
        desired=desired,
        is_over=is_over,
        marker=says,
        wanted=SAID,
        **LOGS[log],
    )
    found = watchdog_table.decide_start(facts)
    is_free = not supervised and log == "whole"
    starts = is_free and desired == "running" and not is_over and not is_marked
    assert found.starts is starts
    if supervised:
        assert found.words == "running"
    elif desired == "stopped":
        assert found.words == "stopped by the operator"


def test_every_row_is_reached():
    """No row comes after one that matches all of its cases."""
    reached = {
        watchdog_table.decide_start(
            WatchFacts(
                supervised=supervised,
                desired=desired,
                is_over=over,
                marker=says,
                wanted=SAID,
                **LOGS[log],
            )
        ).words
        for supervised, desired, over, (says, _), log in CASES
    }
    staying = watchdog_table.decide_start(
        WatchFacts(supervised=False, desired="running", stays=True)
    )
    resting = watchdog_table.decide_start(
        WatchFacts(supervised=False, desired="running", rests=0.1)
    )
    assert not staying.starts
    assert not resting.starts
    assert reached | {staying.words, resting.words} == {
        row.words for row in watchdog_table.WATCH_TABLE
    }


def test_one_that_does_not_come_up_is_tried_more_and_more_seldom():
    """10 s, 20 s, 40 s, and never more than 300 s; a clock that was set back costs nothing."""
    tried = [StartAttempt(412, NOW, times) for times in (1, 2, 3, 6, 99)]
    assert [watchdog_table.compute_rest(one, NOW, RestartSettings()) for one in tried] == [
        10,
        20,
        40,
        300,
        300,
    ]
    assert (
        watchdog_table.compute_rest(tried[1], NOW + timedelta(seconds=15), RestartSettings()) == 5
    )
    assert (
        watchdog_table.compute_rest(tried[1], NOW + timedelta(seconds=20), RestartSettings()) == 0
    )
    assert watchdog_table.compute_rest(tried[1], NOW - timedelta(hours=1), RestartSettings()) == 0
    assert watchdog_table.compute_rest(None, NOW, RestartSettings()) == 0
    forged = StartAttempt(1, NOW, times=10**6)
    assert watchdog_table.compute_rest(forged, NOW, RestartSettings()) == 300


def test_the_operator_s_word_outranks_every_marker():
    """Stopped stays stopped, whatever else is known."""
    for over, says in itertools.product([True, False], MARKERS):
        facts = WatchFacts(
            supervised=False, desired="stopped", is_over=over, marker=says, wanted=SAID
        )
        assert watchdog_table.decide_start(facts).words == "stopped by the operator"
