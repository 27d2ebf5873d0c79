"""Decide whether a silent process hangs or works on something that takes long.

Silence alone would end a two-hour test run, and a living process may be stuck. So the supervisor
looks at hooks, stream, transcript, and at the processor time and the data of the whole process
tree. A process that only exists is not a sign of life: a shell that waits for a stuck program has a
child as well. `ROWS` is the table: the first row that fits decides. The documentation is generated
from it.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from rekindle.policy.settings import FINISHED_SECONDS, Watch

Answer = Literal["fine", "say", "end", "reap"]
MEANINGS: dict[Answer, str] = {
    "fine": "it continues",
    "say": "it continues, and you are told, once",
    "end": "it is ended, you are told, and it counts as a `hang`",
    "reap": "it is ended, and counts as `clean`",
}


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of a running process; input to the table."""

    silent: float
    """Seconds since its last sign: a line, a hook's report, a longer transcript."""
    idle: float = 0.0
    """Seconds since its last sign, or since its processes last worked, whichever is less."""
    finished: bool = False
    """It has printed its final result."""
    stopped: bool = False
    """It was suspended (SIGSTOP)."""
    calling: float | None = None
    """Age of its oldest tool call that has not returned; None if there is none."""
    children: int = 0
    """Processes that it has started and that still run, idle or not."""
    children_work: bool = False
    """One of them uses the processor, or reads or writes."""
    works: bool = False
    """Its own process does."""
    reports: bool = True
    """It reports its tool calls. If not, its own work is the only sign that it is not stuck."""


class Row(msgspec.Struct, frozen=True):
    answer: Answer
    words: str
    fits: Callable[[Signs, Watch], bool]


def is_working(signs: Signs) -> bool:
    """Return whether a process of the tree works on what the agent is silent about.

    A CLI that reports its tool calls and is busy without one is stuck in a loop.
    """
    return signs.children_work or (signs.works and not signs.reports)


ROWS: tuple[Row, ...] = (
    Row(
        "reap",
        "it has printed its final result, and did not exit",
        lambda signs, _: signs.finished and not signs.children and signs.silent >= FINISHED_SECONDS,
    ),
    Row(
        "end",
        "a tool call took longer than `tool_timeout`",
        lambda signs, watch: (signs.calling or 0.0) >= watch.tool_timeout and not signs.stopped,
    ),
    Row("fine", "it shows signs of life", lambda signs, watch: signs.silent < watch.silence),
    Row(
        "say",
        "its process was suspended: `kill -CONT` continues it",
        lambda signs, _: signs.stopped,
    ),
    Row(
        "say",
        "a tool call has not returned for long",
        lambda signs, watch: signs.calling is not None and signs.idle < watch.idle_call,
    ),
    Row(
        "say",
        "it is silent, while one of its processes works",
        lambda signs, _: is_working(signs),
    ),
    Row("end", "it hung: no sign of life, and none of its processes works", lambda *_: True),
)


def is_excused(signs: Signs) -> bool:
    """Return whether its silence has a reason; when the reason ends, the silence starts again."""
    return signs.stopped or signs.calling is not None or is_working(signs)


def verdict(signs: Signs, watch: Watch) -> Row:
    return next(row for row in ROWS if row.fits(signs, watch))
