"""Reports that several hooks send for the same event count once."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents import events
from rekindle.policy.projection.hook_reports import (
    is_repeated,
    keep_newest_reports,
    make_report_key,
)
from rekindle.thresholds.hook_limits import SAME_START_SECONDS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOON = NOON + timedelta(seconds=SAME_START_SECONDS / 2)
LATER = NOON + timedelta(seconds=SAME_START_SECONDS)


def record(*reports):
    return {make_report_key(report): report.ts for report in reports}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (events.Heartbeat, {"session": "s", "call": "c1"}),
        (events.PromptSubmitted, {"session": "s", "text": "x", "call": "p1"}),
        (events.SessionStarted, {"session": "s", "harness": "h", "process": "1:2:3"}),
        (events.PrimerGiven, {"session": "s", "source": "startup", "characters": 1}),
    ],
)
def test_a_report_with_an_identity_counts_once_at_any_time(kind, fields):
    first = kind(ts=NOON, **fields)
    assert is_repeated(record(first), kind(ts=LATER, **fields))
    assert not is_repeated({}, first)
    assert not is_repeated(record(first), kind(ts=NOON, **fields | {"session": "other"}))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (events.SessionStarted, {"session": "s", "harness": "h", "source": "compact"}),
        (events.SessionCompacted, {"session": "s", "trigger": "auto"}),
        (events.SessionEnded, {"session": "s", "reason": "exit"}),
    ],
)
def test_an_event_that_may_happen_again_counts_again_later(kind, fields):
    seen = record(kind(ts=NOON, **fields))
    assert is_repeated(seen, kind(ts=SOON, **fields))
    assert not is_repeated(seen, kind(ts=LATER, **fields))


def test_an_end_after_a_resume_counts_again():
    ended = events.SessionEnded(ts=NOON, session="s", reason="exit")
    resumed = events.SessionStarted(
        ts=NOON + timedelta(microseconds=1), session="s", harness="h", process="1:2:3"
    )
    again = events.SessionEnded(ts=SOON, session="s", reason="exit")
    assert not is_repeated(record(ended, resumed), again)


def test_reports_without_an_identity_all_count():
    report = events.Heartbeat(ts=NOON, session="s")
    assert make_report_key(report) == ""
    assert not is_repeated(record(events.Heartbeat(ts=NOON, session="s", call="c")), report)


def test_the_newest_reports_are_kept():
    seen = {"old": NOON, "new": LATER, "newer": LATER}
    assert keep_newest_reports(seen, most=2) == {"new": LATER, "newer": LATER}
