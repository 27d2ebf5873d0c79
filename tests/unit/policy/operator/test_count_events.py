"""Counters are folded from the log, and never decrease."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.documents.screens.metrics_text import AgentCounts
from rekindle.policy.operator.count_events import NOTHING_COUNTED, count_events

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def ended(exit_kind, tokens=0, usd=0.0):
    return events.LaunchEnded(
        ts=NOW, launch="l", cycle=1, session="s", exit=exit_kind, run_tokens=tokens, run_usd=usd
    )


def spent(tokens, usd=0.0):
    return events.SpendRecorded(ts=NOW, launch="l", tokens=tokens, usd=usd)


def handed_off(by):
    return events.HandoffTriggered(ts=NOW, launch="l", cycle=1, session="s", by=by)


def cycle(verdict):
    return events.CycleEnded(ts=NOW, cycle=1, verdict=verdict)


STARTED = events.RunStarted(ts=NOW)
HISTORY = [
    STARTED,
    spent(10, 0.5),
    ended("crash", 20, 0.75),
    ended("clean", 30, 1.0),
    cycle(""),
    cycle("progress"),
    handed_off("threshold"),
    STARTED,
    events.ReviewMade(ts=NOW, cycle=2, run_tokens=5, run_usd=0.25),
    events.SummaryMade(ts=NOW, document="relay", how="headless", run_tokens=7, run_usd=0.5),
    events.SummaryMade(ts=NOW, document="brief", how="headless", tokens=99, usd=9.0),
    cycle("progress"),
    ended("crash", 9, 0.5),
]


def test_events_are_counted_by_word():
    counts = count_events(NOTHING_COUNTED, HISTORY)
    assert counts.cycles == {"none": 1, "progress": 2}
    assert counts.launches == {"clean": 1, "crash": 2, "hang": 0, "resume-failed": 0}
    assert counts.handoffs == {"threshold": 1}


def test_spending_adds_up_over_runs():
    """Each event has its run's total. A summary that a person requested belongs to no run."""
    counts = count_events(NOTHING_COUNTED, HISTORY)
    assert (counts.tokens, counts.usd) == (30 + 9, 1.0 + 0.5)


@pytest.mark.parametrize("cut", range(len(HISTORY) + 1))
def test_counting_in_two_parts_gives_the_same(cut):
    before = count_events(NOTHING_COUNTED, HISTORY[:cut])
    assert count_events(before, HISTORY[cut:]) == count_events(NOTHING_COUNTED, HISTORY)


def test_a_lower_total_does_not_decrease_a_counter():
    counts = count_events(AgentCounts(), [STARTED, spent(100, 2.0), ended("clean", 80, 1.5)])
    assert (counts.tokens, counts.usd) == (100, 2.0)
    counts = count_events(counts, [spent(110, 2.5)])
    assert (counts.tokens, counts.usd) == (110, 2.5)


def test_a_run_that_spends_nothing_adds_nothing():
    counts = count_events(AgentCounts(), [STARTED, STARTED, spent(0), STARTED])
    assert counts == AgentCounts()


def test_words_that_are_not_known_share_one_label():
    """A label never contains free text."""
    history = [ended("Call me at 5"), ended("x"), cycle("a secret"), handed_off("someone")]
    counts = count_events(AgentCounts(), history)
    assert counts == AgentCounts(cycles={"other": 1}, launches={"other": 2}, handoffs={"other": 1})


def test_events_from_an_older_generation_do_not_count():
    def at(gen):
        return events.CycleEnded(ts=NOW, cycle=1, verdict="progress", gen=gen)

    counts = count_events(AgentCounts(), [at(1), at(2), at(1)])
    assert (counts.cycles, counts.gen) == ({"progress": 2}, 2)
    assert count_events(counts, [at(1)]) == counts
    assert count_events(counts, [at(2)]).cycles == {"progress": 3}


def test_other_events_change_nothing():
    beat = events.Heartbeat(ts=NOW, session="s")
    assert count_events(NOTHING_COUNTED, [beat]) == NOTHING_COUNTED
