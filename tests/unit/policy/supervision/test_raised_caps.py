"""The last cap for each unit counts, whatever the order in which the commands arrive."""

from rekindle.policy.supervision.raised_caps import RaisedCap, add_caps


def test_the_last_cap_for_each_unit_counts():
    caps = add_caps((), 5, {"usd": 9.0, "tokens": None, "hours": 2.0})
    assert caps == (RaisedCap("hours", 5, 2.0), RaisedCap("usd", 5, 9.0))
    assert add_caps(caps, 4, {"usd": 20.0}) == caps
    assert add_caps(caps, 6, {"usd": 4.0})[-1] == RaisedCap("usd", 6, 4.0)
