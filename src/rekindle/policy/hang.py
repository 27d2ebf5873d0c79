"""Whether a process that shows nothing hangs, or works on something that takes long.

Silence alone kills a two-hour test run; a process that exists may be wedged. So hooks, stream,
transcript, processor time and children are looked at together. `ROWS` is the table: the first row
that fits decides; the diagram in the documentation is made from it.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from rekindle.policy.settings import FINISHED_SECONDS, Watch

Answer = Literal["fine", "say", "end", "reap"]
MEANINGS: dict[Answer, str] = {
    "fine": "it goes on",
    "say": "it goes on, and you are told, once",
    "end": "it is ended, you are told, and it counts as a `hang`",
    "reap": "it is ended, and counts as `clean`",
}


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a running process."""

    silent: float
    """Seconds since its last sign: a line, a hook's report, a longer transcript."""
    finished: bool = False
    """It has given its last account."""
    stopped: bool = False
    """Somebody has stopped it (SIGSTOP)."""
    calling: float | None = None
    """How long its oldest tool call has been going on; None: none is."""
    tools: int = 0
    """Processes that it has started and that still run."""
    tools_busy: bool = False
    busy: bool = False
    """It uses the processor itself."""
    tells: bool = True
    """It reports its tool calls: without, what it does cannot be told from its being stuck."""


class Row(msgspec.Struct, frozen=True):
    answer: Answer
    words: str
    fits: Callable[[Signs, Watch], bool]


ROWS: tuple[Row, ...] = (
    Row(
        "reap",
        "it had given its last account, and did not exit",
        lambda signs, _: signs.finished and not signs.tools and signs.silent >= FINISHED_SECONDS,
    ),
    Row(
        "end",
        "a tool call took longer than it may",
        lambda signs, watch: (signs.calling or 0.0) >= watch.tool_timeout and not signs.stopped,
    ),
    Row("fine", "it shows signs of life", lambda signs, watch: signs.silent < watch.silence),
    Row(
        "say",
        "somebody has stopped its process: `kill -CONT` lets it go on",
        lambda signs, _: signs.stopped,
    ),
    Row(
        "say",
        "a tool call has been going on for long",
        lambda signs, _: signs.calling is not None,
    ),
    Row(
        "say",
        "it is silent, while something that it has started works",
        lambda signs, _: signs.tools_busy,
    ),
    Row(
        "say",
        "it is silent, and seems to work",
        lambda signs, _: not signs.tells and (signs.busy or signs.tools > 0),
    ),
    Row("end", "it hung: no sign of life, and nothing that it waits for", lambda *_: True),
)


def is_excused(signs: Signs) -> bool:
    """Whether its silence has a reason that may pass: when it has, the silence begins anew."""
    seems_to_work = not signs.tells and (signs.busy or signs.tools > 0)
    return signs.stopped or signs.calling is not None or signs.tools_busy or seems_to_work


def verdict(signs: Signs, watch: Watch) -> Row:
    return next(row for row in ROWS if row.fits(signs, watch))
