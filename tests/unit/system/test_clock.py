"""The zone of the machine, and others, with their rules for every day of the year."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rekindle.system import clock


def test_a_zone_has_its_summer():
    zone = clock.find_zone("Europe/Berlin")
    winter, summer = (datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7))
    assert (winter, summer) == (timedelta(hours=1), timedelta(hours=2))


@pytest.mark.parametrize("name", ["Nowhere/Land", "../etc/passwd", "/etc/passwd", "x" * 300, "\0"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(LookupError):
        clock.find_zone(name)


def test_without_a_name_it_is_the_machine_s(monkeypatch):
    monkeypatch.setenv("TZ", ":America/New_York")
    assert clock.find_zone() == ZoneInfo("America/New_York")
    for said in ("EST5EDT4,M3.2.0,M11.1.0", ""):
        monkeypatch.setenv("TZ", said)
        assert clock.find_zone().utcoffset(datetime(2026, 1, 1)) is not None  # noqa: DTZ001 - any
    monkeypatch.setattr(clock, "_HERE", "/nowhere")
    assert clock.find_zone().utcoffset(datetime(2026, 1, 1)) is not None  # noqa: DTZ001 - any
