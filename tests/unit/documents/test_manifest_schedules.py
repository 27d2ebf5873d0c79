"""The `every:` key, as it is written."""

import msgspec
import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_schedules import Schedule
from rekindle.errors import ManifestError

HEAD = "version: 1\nagents:\n  trades:\n    harness: command\n    command: ./work\n"


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("6h", "6h"),
        ("'0 6 * * 1-5'", "0 6 * * 1-5"),
        ("{interval: 6h, jitter: 10m}", Schedule(interval="6h", jitter="10m")),
        (
            "{cron: '@daily', zone: Europe/Zurich, missed: skip, overlap: queue}",
            Schedule(cron="@daily", zone="Europe/Zurich", missed="skip", overlap="queue"),
        ),
    ],
)
def test_both_forms_are_kept_as_written(text, every):
    assert manifest.parse(f"{HEAD}    every: {text}\n").agents["trades"].every == every


@pytest.mark.parametrize("text", ["{interval: soon}", "{missed: later}", "{crn: x}", "[6h]"])
def test_a_wrong_value_is_refused_with_its_line(text):
    with pytest.raises(ManifestError) as caught:
        manifest.parse(f"{HEAD}    every: {text}\n")
    assert caught.value.line == 6


def test_a_schedule_survives_json():
    schedule = Schedule(cron="@daily", missed="skip")
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule
