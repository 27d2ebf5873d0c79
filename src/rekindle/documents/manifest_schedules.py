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
            "Times in cron's notation: minute, hour, day of the month, month and day of the week, "
            "or a name such as `@daily`."
        ),
    ] = None
    # Accepted settings cannot contain a Duration, so intervals stay text until policy parses them.
    interval: (
        Annotated[
            str,
            _doc(
                "Time between two runs, at least `1m`. Intervals are counted from midnight UTC on "
                "1 January 1970.",
                pattern=DURATION_PATTERN,
            ),
        ]
        | None
    ) = None
    zone: (
        Annotated[
            str, _doc("Time zone of `cron`, such as Europe/Zurich. Defaults to this machine's.")
        ]
        | None
    ) = None
    jitter: (
        Annotated[
            str,
            _doc(
                "Longest delay of a start, such as `10m`. Each due time has its own delay, which "
                "is always the same.",
                pattern=DURATION_PATTERN,
            ),
        ]
        | None
    ) = None
    missed: (
        Annotated[
            Literal["run", "skip"],
            _doc(
                "What to do about runs that were missed, because the host was asleep: `run` one of "
                "them, which is the default, or `skip` all."
            ),
        ]
        | None
    ) = None
    overlap: (
        Annotated[
            Literal["skip", "queue"],
            _doc(
                "What to do if the previous run is still going: `skip` this run, which is the "
                "default, or `queue` it until then."
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
