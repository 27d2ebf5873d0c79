"""The `--since` option."""

import re
from datetime import UTC, datetime, timedelta

import click

from rekindle.errors import UsageError
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_AGO = re.compile(r"([0-9]{1,6})\s*(s|min|m|h|d|w)\Z")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}

since_option = click.option(
    "--since",
    metavar="TIME",
    help="Show only turns after this time: 2h, 3d, 2026-01-31, 2026-01-31T06:00.",
)


def parse_since(since: str, now: datetime) -> datetime:
    """Return the time given with `--since`.

    Raises:
        UsageError: The text is not a time.
    """
    try:
        if ago := _AGO.match(since.strip()):
            return now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        return datetime.fromisoformat(since.strip()).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)  # earlier than any turn
    except ValueError as error:
        raise UsageError(
            f"{since[:QUOTED_CHARACTERS]!r} is not a time",
            hint="write it as 2h, 3d, 2026-01-31 or 2026-01-31T06:00",
        ) from error
