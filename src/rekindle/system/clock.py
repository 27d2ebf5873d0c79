"""The only module that reads the clock and the time zone."""

import os
from contextlib import suppress
from datetime import UTC, datetime, tzinfo

_HERE = "/etc/localtime"


def read_clock() -> datetime:
    return datetime.now(UTC)


def find_zone(name: str = "") -> tzinfo:
    """Return a time zone with its daylight-saving rules. The default is the machine's zone.

    Raises:
        LookupError: There is no zone with that name.
    """
    # Only scheduling needs this import.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - see above

    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise LookupError(name) from error
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if zone_name := os.environ.get("TZ", "").removeprefix(":"):
            return ZoneInfo(zone_name)
    with suppress(ValueError, OSError), open(_HERE, "rb") as rules:  # noqa: PTH123 - a fixed system path
        return ZoneInfo.from_file(rules)
    return read_clock().astimezone().tzinfo or UTC
