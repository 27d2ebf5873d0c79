"""The short and the long form of `every:` lead to the same rules."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_schedules import Schedule
from rekindle.policy.schedules.schedule_rules import (
    ScheduleError,
    decode_schedule,
    encode_schedule,
    make_rules,
    render_schedule,
)
from rekindle.system.clock import find_zone

HEAD = "version: 1\nagents:\n  trades:\n    harness: command\n    command: ./work\n"


@pytest.mark.parametrize(
    ("every", "cron", "interval", "shown"),
    [
        ("6h", False, 6 * 3600, "6h"),
        (" 90m ", False, 5400, "90m"),
        ("0 6 * * 1-5", True, 86_400, "0 6 * * 1-5"),
        (Schedule(cron="@daily", zone="Europe/Zurich"), True, 86_400, "@daily (Europe/Zurich)"),
    ],
)
def test_short_and_long_forms(every, cron, interval, shown):
    rules = make_rules("trades", every, find_zone)
    assert (rules.times.cron is not None) == cron
    assert rules.times.interval.total_seconds() == interval
    assert (rules.missed, rules.overlap) == ("run", "skip")
    assert render_schedule(every) == shown


def test_the_same_schedule_has_the_same_text():
    assert encode_schedule("6h") == encode_schedule(Schedule(interval="6h"))
    assert encode_schedule("6h") != encode_schedule("7h")


def test_the_manifest_keeps_the_schedule_as_written():
    text = f"{HEAD}    every: {{cron: 0 6 * * *, jitter: 10m, missed: skip, overlap: queue}}\n"
    every = manifest.parse(text).agents["trades"].every
    rules = make_rules("trades", every, find_zone)
    assert rules.times.jitter.total_seconds() == 600
    assert (rules.missed, rules.overlap) == ("skip", "queue")


@pytest.mark.parametrize(
    ("every", "key"),
    [
        (Schedule(), ""),
        (Schedule(cron="@daily", interval="1d"), ""),
        (Schedule(interval="30s"), "interval"),
        (Schedule(interval="1d", zone="Europe/Zurich"), "zone"),
        (Schedule(cron="@daily", zone="Europe/Nowhere"), "zone"),
        (Schedule(interval="1h", jitter="2h"), "jitter"),
        ("61 * * * *", "cron"),
    ],
)
def test_a_mistake_names_its_key(every, key):
    with pytest.raises(ScheduleError) as caught:
        make_rules("trades", every, find_zone)
    assert caught.value.key == key
    assert caught.value.hint


def test_an_accepted_schedule_is_read_again():
    assert decode_schedule("6h") == "6h"
    assert decode_schedule({"cron": "@daily"}) == Schedule(cron="@daily")
