"""Keys that agents and the steps of pipelines share."""

import msgspec
import pytest

from rekindle.documents.manifest_keys import Budget, Compaction, Handover


@pytest.mark.parametrize("amount", [{"usd": 0}, {"tokens": -1}, {"hours": 0}, {"usd": "much"}])
def test_a_budget_is_more_than_nothing(amount):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(amount, Budget)


def test_caps_that_are_not_set_are_none():
    assert msgspec.convert({"usd": 2}, Budget) == Budget(usd=2.0, tokens=None, hours=None)


@pytest.mark.parametrize(
    ("value", "compaction"),
    [
        ({}, None),
        ({"compaction": False}, False),
        ({"compaction": {"trigger": "token_limit_80%"}}, Compaction("token_limit_80%", None)),
    ],
)
def test_a_handover_is_off_or_has_a_trigger(value, compaction):
    assert msgspec.convert(value, Handover).compaction == compaction


@pytest.mark.parametrize("trigger", ["token_limit_0%", "token_limit_101%", "80%"])
def test_a_trigger_is_a_share_of_the_window(trigger):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"trigger": trigger}, Compaction)
