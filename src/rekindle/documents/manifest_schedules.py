"""The `every:` key of agents and pipelines, which tells the daemon when to start a run.

`policy/schedules` has the defaults and checks the values.
"""

from typing import Annotated, Literal

import msgspec

from rekindle.formats.validation import DURATION_PATTERN
from rekindle.formats.validation import describe_key as _doc


class Schedule(msgspec.Struct, frozen=True):
    cron: Annotated[
        str | None,
        _doc(
            "Cron expression (minute, hour, day of the month, month and day of the week), or a "
            "name such as `@daily`."
        ),
    ] = None
    # Accepted settings cannot contain a Duration, so intervals stay text until policy parses them.
    interval: (
        Annotated[
            str,
            _doc(
                "Time between two runs, at least `1m`, counted from midnight UTC on 1 January "
                "1970.",
                pattern=DURATION_PATTERN,
            ),
        ]
        | None
    ) = None
    zone: (
        Annotated[
            str,
            _doc(
                "Time zone for `cron`, such as Europe/Zurich. Defaults to the machine's time zone, "
                "or on a fleet to UTC."
            ),
        ]
        | None
    ) = None
    jitter: (
        Annotated[
            str,
            _doc(
                "Maximum delay before a run starts, such as `10m`. The delay for a given time is "
                "always the same.",
                pattern=DURATION_PATTERN,
            ),
        ]
        | None
    ) = None
    missed: (
        Annotated[
            Literal["run", "skip"],
            _doc(
                "What to do with missed runs, for example after the host was asleep: `run` one of "
                "them (the default), or `skip` them all."
            ),
        ]
        | None
    ) = None
    overlap: (
        Annotated[
            Literal["skip", "queue"],
            _doc(
                "What to do if the previous run has not finished: `skip` the new run (the "
                "default), or `queue` it until the previous run ends."
            ),
        ]
        | None
    ) = None


ScheduleKey = Annotated[
    Schedule | str | None,
    _doc(
        'When the daemon starts a run: a cron expression such as `"0 6 * * 1-5"`, an interval such '
        "as `6h`, or a mapping."
    ),
]
