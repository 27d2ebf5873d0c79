"""The sentences about past runs of a schedule."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rekindle.policy.schedules.describe_outcomes import render_outcome, render_time
from rekindle.policy.schedules.schedule_record import ScheduleOutcome
from rekindle.thresholds.schedule_limits import SCHEDULE_COUNTED

pytestmark = pytest.mark.pure

MONDAY = datetime(2026, 11, 16, 6, 30, tzinfo=UTC)
TUESDAY = MONDAY + timedelta(days=1)
SPAN = "Mon 2026-11-16 06:30 UTC to Tue 2026-11-17 06:30 UTC"


@pytest.mark.parametrize(
    ("kind", "count", "shown"),
    [
        ("started", 1, "the run for Tue 2026-11-17 06:30 UTC was started"),
        ("skipped", 1, "the run for Tue 2026-11-17 06:30 UTC was skipped: why"),
        ("missed", 1, "the run for Tue 2026-11-17 06:30 UTC was missed: why"),
        (
            "restored",
            2,
            "2 runs from Mon 2026-11-16 06:30 UTC to Tue 2026-11-17 06:30 UTC were missed: why",
        ),
        (
            "missed",
            SCHEDULE_COUNTED,
            f"at least {SCHEDULE_COUNTED:,} runs from {SPAN} were missed: why",
        ),
    ],
)
def test_an_outcome_is_one_sentence(kind, count, shown):
    outcome = ScheduleOutcome(kind, MONDAY, TUESDAY, TUESDAY, count, "why")
    assert render_outcome(outcome, UTC) == shown


def test_times_are_in_the_zone_of_the_reader():
    assert render_time(MONDAY, ZoneInfo("America/New_York")) == "Mon 2026-11-16 01:30 EST"
