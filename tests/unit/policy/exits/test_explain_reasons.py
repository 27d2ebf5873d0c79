"""Stop reasons in the operator's words."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.policy.exits import explain_reasons
from rekindle.policy.exits.stop_reasons import STOP_REASONS


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, 'rekindle answer trades "TEXT"'),
        ("waiting", False, 'rekindle answer trades "TEXT"'),
        ("auth", True, "rekindle restart trades"),
        ("auth", False, "rekindle run trades"),
        ("stalled", False, "rekindle restart trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_a_hint_ends_with_the_command_that_continues(why, is_safe, command):
    assert explain_reasons.render_continue_command(why, "trades", is_safe=is_safe) == command
    assert f"`{command}`" in explain_reasons.render_hint(why, "trades", is_safe=is_safe)


@pytest.mark.parametrize(
    ("why", "is_safe", "command"),
    [
        ("waiting", True, 'rekindle answer trades "TEXT"'),
        ("auth", True, "rekindle restart trades && rekindle run trades"),
        ("budget", False, "rekindle restart trades && rekindle run trades"),
        ("stalled", False, "rekindle run trades"),
        ("cycles", False, "rekindle run trades"),
    ],
)
def test_without_a_supervisor_the_command_starts_one(why, is_safe, command):
    """`restart` alone starts nothing, and `run` alone would stay in safe mode."""
    how = {"is_safe": is_safe, "is_supervised": False}
    assert explain_reasons.render_continue_command(why, "trades", **how) == command
    assert f"`{command}`" in explain_reasons.render_hint(why, "trades", **how)


def test_only_the_hint_of_a_stall_names_the_setting_that_switches_it_off():
    off = "; `runtime: stall: pause: false` disables such pauses"
    pauses = {
        why for why in STOP_REASONS if explain_reasons.render_hint(why, "trades").endswith(off)
    }
    assert pauses == {"disputed", "stalled", "waiting"}


def test_enter_is_named_beside_the_command_that_it_saves():
    hint = explain_reasons.render_hint("stalled", "trades", is_safe=True, takes_enter=True)
    assert "; then `rekindle restart trades`, or press Enter here; " in hint
    hint = explain_reasons.render_hint("host", "trades", is_safe=True)
    assert hint == "check the hosts of its pool; then `rekindle restart trades`"


def test_a_wait_for_today_is_told_by_the_time_of_day():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    until = now + timedelta(hours=1, minutes=49)
    assert explain_reasons.explain_wait("limit", until, now, UTC) == "until 15:49: a usage limit"
    tomorrow = explain_reasons.explain_wait("limit", until + timedelta(days=1), now, UTC)
    assert tomorrow == "until 2026-04-10 15:49: a usage limit"


def test_a_wait_after_a_crash_tells_the_exit_and_the_retry():
    now = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
    told = explain_reasons.explain_wait("crash", now, now, UTC, "exit code 3")
    assert told == "until 14:00, then retried: it crashed, exit code 3"


@pytest.mark.parametrize("why", STOP_REASONS)
def test_no_hint_has_an_unfilled_place(why):
    assert not {*"{}"} & {
        *explain_reasons.render_hint(why, "trades"),
        *explain_reasons.explain_reason(why),
    }
    assert explain_reasons.explain_reason(why, "its own words") == "its own words"
