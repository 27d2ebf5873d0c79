"""The manifest's keys about quota."""

import pytest

from rekindle.documents.manifest import parse
from rekindle.documents.manifest_quota import QuotaKeys, SpendCap
from rekindle.errors import ManifestError

AGENT = "version: 1\nagents:\n  trades: {harness: codex, priority: high}\n"


def test_a_project_has_a_reserve_and_caps():
    text = f"{AGENT}quota: {{reserve: 20%, per_day: {{usd: 20}}, per_month: {{tokens: 9}}}}\n"
    manifest = parse(text)
    assert manifest.quota == QuotaKeys("20%", SpendCap(usd=20.0), SpendCap(tokens=9))
    assert manifest.quota.reserve_percent == 20.0
    assert manifest.quota.has_caps
    assert manifest.agents["trades"].priority == "high"


def test_without_a_reserve_agents_are_not_paced():
    assert QuotaKeys().reserve_percent is None
    assert not QuotaKeys().has_caps
    assert QuotaKeys("0%").reserve_percent == 0.0


@pytest.mark.parametrize(
    ("quota", "hint"),
    [
        ("{reserve: 20}", "`20%`"),
        ("{reserve: 120%}", "below `100%`"),
        ("{reserve: much}", "`20%`"),
        ("{per_day: 20}", "`per_day: {usd: 20}`"),
        ("{per_month: much}", "`per_month: {usd: …}`; known there: usd, tokens"),
        ("{per_day: {}}", "`per_day: {usd: …}`"),
        ("20", "`quota: {reserve: …}`"),
        ("{per_week: {usd: 2}}", "per_day"),
    ],
)
def test_a_value_that_means_nothing_is_refused(quota, hint):
    """The hint shows what to write."""
    with pytest.raises(ManifestError) as caught:
        parse(f"{AGENT}quota: {quota}\n")
    assert hint in caught.value.hint
    assert caught.value.line == 4


def test_a_priority_is_one_of_three():
    with pytest.raises(ManifestError):
        parse(AGENT.replace("high", "urgent"))
