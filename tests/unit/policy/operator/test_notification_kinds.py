"""Titles and severities of notifications."""

from typing import get_args

import pytest

from rekindle.policy.exits import stop_reasons
from rekindle.policy.exits.stop_reasons import STOP_REASONS
from rekindle.policy.operator import notification_kinds


@pytest.mark.parametrize("why", STOP_REASONS)
def test_a_notification_of_an_ending_has_the_words_of_its_outcome(why):
    title, severity = notification_kinds.describe_notification(why)
    row = stop_reasons.find_outcome(why)
    assert (title, severity) == (STOP_REASONS[why].state or row.words, row.severity or "info")


def test_a_log_that_something_else_changed_is_notified_as_broken():
    assert notification_kinds.describe_notification("tampered") == ("broken", "failure")


def test_other_news_keeps_its_own_title():
    assert notification_kinds.describe_notification("folder lost") == ("folder lost", "warning")


def test_news_of_a_newer_version_is_notified_as_a_failure():
    """A host of a fleet may be older than what asks it; nothing else may take any words."""
    assert notification_kinds.parse_notification("folder lost") == "folder lost"
    what = notification_kinds.parse_notification("of a newer version")
    assert notification_kinds.describe_notification(what) == ("needs you", "failure")
    with pytest.raises(KeyError):
        notification_kinds.describe_notification("of a newer version")


def test_every_kind_has_a_severity():
    assert [*notification_kinds.SEVERITIES] == [*get_args(notification_kinds.NotificationKind)]
