"""The one place that asks what time it is, and where."""

import os
from contextlib import suppress
from datetime import UTC, datetime, tzinfo

_HERE = "/etc/localtime"


def now() -> datetime:
    return datetime.now(UTC)


def zone(name: str = "") -> tzinfo:
    """A zone with its rules for every day of the year; without a name, the machine's.

    Raises:
        LookupError: There is none of that name.
    """
    # Only who plans for another day needs it.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - see above

    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise LookupError(name) from error
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if said := os.environ.get("TZ", "").removeprefix(":"):
            return ZoneInfo(said)
    with suppress(ValueError, OSError), open(_HERE, "rb") as rules:  # noqa: PTH123 - a path of the system's
        return ZoneInfo.from_file(rules)
    return now().astimezone().tzinfo or UTC
