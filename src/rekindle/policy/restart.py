"""Whether to start again after a process ended: at once, later, or not without a person.

`REACTIONS` is the table; the diagram in the documentation is made from it. What comes from outside,
an overloaded model or a network that is gone, spends none of the crashes that a run has, and is
tried again by itself.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import (
    INSTANT_SECONDS,
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    PROBED_CRASHES,
    Restart,
    Runtime,
)

LOST = "lost"
"""How a launch ended whose supervisor had gone before it."""

HANDED_OFF = "handoff"
"""How one ended that was stopped because its window is full: a fresh session goes on."""

Reaction = Literal[
    "done",
    "restart",
    "replace",
    "again",
    "resume",
    "hand-on",
    "refresh",
    "renew",
    "wait",
    "retry",
    "person",
]
MEANINGS: dict[Reaction, str] = {
    "done": "the cycle is over",
    "restart": "again: the first time at once, then after pauses that double, then as a probe"
    " every 15 to 60 minutes; counts as a crash",
    "replace": "again at once, the second time in a fresh session; counts as a crash",
    "again": "again: the first time at once, then after pauses that double; counts as nothing",
    "resume": "again at once, after many in a row with pauses; counts as nothing",
    "hand-on": "a checkpoint, and a fresh session with it at once; counts as nothing",
    "refresh": "a checkpoint, and a fresh session with it at once; when another fills up before"
    " one ran well, safe mode",
    "renew": "a fresh session at once; counts as nothing",
    "wait": "again when the usage limit has passed",
    "retry": "again after pauses that double, as long as it takes; counts as nothing",
    "person": "safe mode: only a person can mend it",
}
REACTIONS: dict[str, Reaction] = {
    "clean": "done",
    "crash": "restart",
    "hang": "restart",
    "resume-failed": "replace",
    LOST: "resume",
    HANDED_OFF: "hand-on",
    "context-full": "refresh",
    "costly": "renew",
    "limit": "wait",
    "overload": "retry",
    "network": "retry",
    "interrupted": "again",
    "auth": "person",
    "billing": "person",
    "budget": "person",
}
COUNTED: frozenset[Reaction] = frozenset({"restart", "replace"})
"""What spends one of the crashes that a run has."""
CHECKPOINTED: frozenset[Reaction] = frozenset({"hand-on", "refresh"})
"""What a checkpoint is written after, before anything else is started."""
PAUSED: frozenset[Reaction] = frozenset({"restart", "again", "resume", "retry"})
"""What is followed by a pause, if it happens several times in a row."""


class Wait(msgspec.Struct, frozen=True):
    """Start nothing before an instant."""

    until: datetime
    why: str
    after: int
    """The launch, by its place in the log, after which it is waited for."""
    probe: bool = False
    """The next launch is a probe: the ones before it have failed for an unknown reason."""


class Safe(msgspec.Struct, frozen=True):
    """Stay alive, run nothing, wait for a person."""

    why: str
    words: str = ""


class Stop(msgspec.Struct, frozen=True):
    """The run is over."""

    outcome: str
    words: str = ""


def verdict(  # noqa: PLR0911 - one answer for each kind of end
    tried: Sequence[Attempt], *, now: datetime, runtime: Runtime, stays: bool = False
) -> Wait | Safe | Stop | None:
    """What stands in the way of another start; None: nothing does."""
    if not tried:
        return None
    last = tried[-1]
    reaction = REACTIONS.get(last.exit, "restart")
    if reaction == "done":
        # Who sits before the agent has ended it: it is theirs to say what comes next.
        return Safe("clean", last.words) if stays else Stop("done")
    if reaction == "person":
        return Safe(last.exit, last.words)
    if reaction == "refresh" and _refreshed(_since_healthy(tried, runtime.restart)) > 1:
        return Safe(last.exit, last.words)
    limits = runtime.restart
    if limits.max_crashes and crashes(tried, now, limits) >= limits.max_crashes:
        return Safe("crash", last.words)
    if reaction == "wait" and not runtime.limits.wait:
        return Stop("limit", last.words)
    until, failures = _until(tried, reaction, now, limits), instant_failures(tried)
    is_probed = limits.max_crashes is None and reaction in COUNTED and failures >= PROBED_CRASHES
    if is_probed:
        until = max(until, _probed(min(last.ended or now, now), failures))
    return Wait(until, last.exit, last.seq, probe=is_probed) if until > now else None


def crashes(tried: Sequence[Attempt], now: datetime, limits: Restart) -> int:
    """How many there were within the window, since it last ran well for a while."""
    return sum(
        REACTIONS.get(one.exit, "restart") in COUNTED
        and one.ended is not None
        and (now - one.ended).total_seconds() <= limits.window
        for one in _since_healthy(tried, limits)
    )


def instant_failures(tried: Sequence[Attempt]) -> int:
    """Return how many launches in a row, up to the last one, crashed soon after they began.

    A lost supervisor says nothing of the agent: it neither adds to the row nor ends it.
    """
    count = 0
    for one in reversed(tried):
        reaction = REACTIONS.get(one.exit, "restart")
        if reaction == "resume":
            continue
        if reaction not in COUNTED or one.seconds >= INSTANT_SECONDS:
            break
        count += 1
    return count


def _probed(ended: datetime, failures: int) -> datetime:
    doubled = LIMIT_PROBE_SECONDS * 2.0 ** min(failures - PROBED_CRASHES, 10)
    return ended + timedelta(seconds=min(doubled, MAX_LIMIT_PROBE_SECONDS))


def _refreshed(tried: Sequence[Attempt]) -> int:
    """How often a window was full; what else happened in between does not hide it."""
    return sum(REACTIONS.get(one.exit) == "refresh" for one in tried)


def _until(
    tried: Sequence[Attempt], reaction: Reaction, now: datetime, limits: Restart
) -> datetime:
    last = tried[-1]
    # From now at the latest: a clock that was set back must not make it longer.
    ended = min(last.ended or now, now)
    if reaction == "wait":
        return _limit_passes(tried, ended, limits)
    if reaction not in PAUSED:
        return ended
    failed = _in_a_row(_since_healthy(tried, limits), reaction)
    # The first crash of a healthy agent costs no time; an outage is still there a moment later; who
    # kills supervisors is not the agent's fault.
    free = {"retry": 0, "resume": limits.max_crashes or PROBED_CRASHES}.get(reaction, 1)
    if failed <= free:
        return ended
    pause = min(limits.cooldown * 2.0 ** (failed - free - 1), limits.max_cooldown)
    return ended + timedelta(seconds=pause)


def _limit_passes(tried: Sequence[Attempt], ended: datetime, limits: Restart) -> datetime:
    """When the limit has passed; where nobody knows, it is probed, more and more seldom.

    One that is always just ahead, "try again in 1 s", is tried again with pauses that double.
    """
    again = 0
    for one in reversed(tried):
        if one.exit != "limit":
            break
        again += 1
    probe = timedelta(
        seconds=min(LIMIT_PROBE_SECONDS * 2.0 ** (again - 1), MAX_LIMIT_PROBE_SECONDS)
    )
    told = tried[-1].resets_at
    if told is None:
        return ended + probe
    known = datetime.fromtimestamp(told, UTC)
    # Told a time that has passed, and refused even so: what is told is not to be relied on.
    if known <= ended and again > 1:
        return ended + probe
    pause = min(limits.cooldown * 2.0 ** (again - 2), limits.max_cooldown) if again > 1 else 0.0
    return max(known, ended + timedelta(seconds=pause))


def _since_healthy(tried: Sequence[Attempt], limits: Restart) -> Sequence[Attempt]:
    """From the last launch on that ran well for long enough: it was healthy until it ended."""
    for place in range(len(tried) - 1, -1, -1):
        if tried[place].seconds >= limits.healthy_after:
            return tried[place:]
    return tried


def _in_a_row(tried: Sequence[Attempt], reaction: Reaction) -> int:
    """How many in a row, up to now, ended in a way that asks for a pause.

    A lost supervisor says nothing of the agent: it neither adds to other rows nor ends them.
    """
    count = 0
    for one in reversed(tried):
        its = REACTIONS.get(one.exit, "restart")
        if (its == "resume") != (reaction == "resume"):
            if reaction == "resume":
                break
            continue
        if its not in PAUSED:
            break
        count += 1
    return count
