"""Decide whether a silent process is hung or busy with a long task.

Stopping every silent process would end a two-hour test run, but a process that is still running may
be stuck. So the supervisor checks the hooks, the stream, the transcript, and the whole process
tree's CPU time and I/O. The existence of a child process is not a sign of life: a shell that waits
for a stuck program has a child as well.

The first matching row of `HANG_TABLE` decides. The documentation is generated from that table.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from rekindle.policy.settings.runtime_settings import (
    FINISHED_SECONDS,
    WatchSettings,
)

HangAction = Literal["fine", "say", "end", "reap"]
ACTION_MEANINGS: dict[HangAction, str] = {
    "fine": "the agent continues",
    "say": "the agent continues, and Rekindle notifies you once",
    "end": "Rekindle stops the agent as a `hang` and notifies you",
    "reap": "Rekindle stops the agent, and the exit counts as `clean`",
}


class ProcessSigns(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of a running process, which `HANG_TABLE` judges."""

    silent: float
    """Seconds since the last sign of life: output, a hook's report, or a longer transcript."""
    idle: float = 0.0
    """Seconds since the last sign of life or the last activity in the process tree."""
    finished: bool = False
    """Whether the agent has printed its final result."""
    stopped: bool = False
    """Whether the process is suspended (SIGSTOP)."""
    calling: float | None = None
    """Seconds since the start of the oldest running tool call; None if none is running."""
    children: int = 0
    """Number of running processes that the agent started, idle or not."""
    children_work: bool = False
    """Whether one of the child processes is using the CPU, or is reading or writing."""
    works: bool = False
    """Whether the agent's own process is using the CPU, or is reading or writing."""
    reports: bool = True
    """Whether the CLI reports its tool calls. If not, only the activity of its processes shows that
    it is working.
    """


class HangRow(msgspec.Struct, frozen=True):
    answer: HangAction
    words: str
    fits: Callable[[ProcessSigns, WatchSettings], bool]


def is_working(signs: ProcessSigns) -> bool:
    """Return whether one of the agent's processes is working while the agent is silent.

    If a CLI reports its tool calls and is busy without running one, it is stuck in a loop.
    """
    return signs.children_work or (signs.works and not signs.reports)


HANG_TABLE: tuple[HangRow, ...] = (
    HangRow(
        "reap",
        "it has printed its final result but has not exited",
        lambda signs, _: signs.finished and not signs.children and signs.silent >= FINISHED_SECONDS,
    ),
    HangRow(
        "end",
        "a tool call took longer than `tool_timeout`",
        lambda signs, watch: (signs.calling or 0.0) >= watch.tool_timeout and not signs.stopped,
    ),
    HangRow("fine", "it shows signs of life", lambda signs, watch: signs.silent < watch.silence),
    HangRow(
        "say",
        "its process was suspended; `kill -CONT` continues it",
        lambda signs, _: signs.stopped,
    ),
    HangRow(
        "say",
        "a tool call has been running for a long time",
        lambda signs, watch: signs.calling is not None and signs.idle < watch.idle_call,
    ),
    HangRow(
        "say",
        "it is silent, but one of its processes is working",
        lambda signs, _: is_working(signs),
    ),
    HangRow(
        "end",
        "it hung: there is no sign of life, and none of its processes is working",
        lambda *_: True,
    ),
)


def is_excused(signs: ProcessSigns) -> bool:
    """Return whether the silence has a reason. When the reason ends, the count starts at zero."""
    return signs.stopped or signs.calling is not None or is_working(signs)


def judge_silence(signs: ProcessSigns, watch: WatchSettings) -> HangRow:
    return next(row for row in HANG_TABLE if row.fits(signs, watch))
