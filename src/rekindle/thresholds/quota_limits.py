"""Thresholds for the quota that agents share."""

from rekindle.thresholds import declare_threshold

QUOTA_STEP_PERCENT = declare_threshold(
    1.0, "quota.step", "percent", "Change of a quota window's usage that is recorded."
)
