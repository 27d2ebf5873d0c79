"""Whether to start again after a process ended: at once, later, or not without a person.

`endings.ENDINGS` is the table; the diagram in the documentation is made from it. What comes from
outside, an overloaded model or a network that is gone, spends none of the crashes that a run has,
and is tried again by itself.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from rekindle.policy import endings
from rekindle.policy.backoff import backoff, probe_pause
from rekindle.policy.endings import REACTIONS, Reaction, Reason
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import INSTANT_SECONDS, PROBED_CRASHES, Restart, Runtime

LOST = "lost"
"""How a launch ended whose supervisor had gone before it."""

HANDED_OFF = "handoff"
"""How one ended that was stopped because its window is full: a fresh session goes on."""


class Wait(msgspec.Struct, frozen=True):
    """Start nothing before an instant."""

    until: datetime
    why: Reason
    after: int
    """The launch, by its place in the log, after which it is waited for."""
    probe: bool = False
    """The next launch is a probe: the ones before it have failed for an unknown reason."""


class Safe(msgspec.Struct, frozen=True):
    """Stay alive, run nothing, wait for a person."""

    why: Reason
    words: str = ""


class Stop(msgspec.Struct, frozen=True):
    """The run is over."""

    why: Reason
    words: str = ""


def verdict(
    tried: Sequence[Attempt],
    *,
    now: datetime,
    runtime: Runtime,
    stays: bool = False,
    stopped: int = 0,
    resumes_count: bool = False,
) -> Wait | Safe | Stop | None:
    """Return what prevents another start, or None.

    `stopped` is the place in the log of the operator's last stop. Pauses count launches after it.
    `resumes_count`: resumes that the CLI refused count as crashes, as in earlier versions.
    """
    is_refused = bool(tried) and _is_refused_resume(tried[-1]) and not resumes_count
    if not resumes_count:
        tried = [one for one in tried if not _is_refused_resume(one)]
    if not tried or is_refused:
        return None  # after a refused resume a fresh session starts at once
    last = tried[-1]
    exit_kind, reaction = endings.known(last.exit), endings.reaction(last.exit)
    if reaction == "done":
        # Who sits before the agent has ended it: it is theirs to say what comes next.
        return Safe("clean", last.words) if stays else Stop("done")
    is_full_again = _refreshed(_since_healthy(tried, runtime.restart)) > 1
    if reaction == "person" or (reaction == "refresh" and is_full_again):
        return Safe(exit_kind, last.words)
    limits = runtime.restart
    if limits.max_crashes and crashes(tried, now, limits) >= limits.max_crashes:
        return Safe("crash", last.words)
    if reaction == "wait" and not runtime.limits.wait:
        return Stop("limit", last.words)
    counted = [one for one in tried if one.seq > stopped]
    until, failures = _until(tried, counted, reaction, now, limits), instant_failures(counted)
    counts = REACTIONS[reaction].counts
    is_probed = limits.max_crashes is None and counts and failures >= PROBED_CRASHES
    if is_probed:
        pause = timedelta(seconds=probe_pause(failures - PROBED_CRASHES))
        until = max(until, min(last.ended or now, now) + pause)
    return Wait(until, exit_kind, last.seq, probe=is_probed) if until > now else None


def _is_refused_resume(one: Attempt) -> bool:
    return one.resumes and endings.reaction(one.exit) == "replace"


def crashes(tried: Sequence[Attempt], now: datetime, limits: Restart) -> int:
    """How many there were within the window, since it last ran well for a while."""
    return sum(
        REACTIONS[endings.reaction(one.exit)].counts
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
        reaction = endings.reaction(one.exit)
        if reaction == "resume":
            continue
        if not REACTIONS[reaction].counts or one.seconds >= INSTANT_SECONDS:
            break
        count += 1
    return count


def _refreshed(tried: Sequence[Attempt]) -> int:
    """How often a window was full; what else happened in between does not hide it."""
    return sum(endings.reaction(one.exit) == "refresh" for one in tried)


def _until(
    tried: Sequence[Attempt],
    counted: Sequence[Attempt],
    reaction: Reaction,
    now: datetime,
    limits: Restart,
) -> datetime:
    last = tried[-1]
    # From now at the latest: a clock that was set back must not make it longer.
    ended = min(last.ended or now, now)
    if reaction == "wait":
        return _limit_passes(tried, ended, limits)
    if not REACTIONS[reaction].pauses:
        return ended
    failed = _in_a_row(_since_healthy(counted, limits), reaction)
    # The first crash of a healthy agent costs no time; an outage is still there a moment later; who
    # kills supervisors is not the agent's fault.
    free = {"retry": 0, "resume": limits.max_crashes or PROBED_CRASHES}.get(reaction, 1)
    if failed <= free:
        return ended
    return ended + timedelta(seconds=backoff(limits, failed - free - 1))


def _limit_passes(tried: Sequence[Attempt], ended: datetime, limits: Restart) -> datetime:
    """When the limit has passed; where nobody knows, it is probed, more and more seldom.

    One that is always just ahead, "try again in 1 s", is tried again with pauses that double.
    """
    again = 0
    for one in reversed(tried):
        if one.exit != "limit":
            break
        again += 1
    probe = timedelta(seconds=probe_pause(again - 1))
    told = tried[-1].resets_at
    if told is None:
        return ended + probe
    known = datetime.fromtimestamp(told, UTC)
    # Told a time that has passed, and refused even so: what is told is not to be relied on.
    if known <= ended and again > 1:
        return ended + probe
    pause = backoff(limits, again - 2) if again > 1 else 0.0
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
        its = endings.reaction(one.exit)
        if (its == "resume") != (reaction == "resume"):
            if reaction == "resume":
                break
            continue
        if not REACTIONS[its].pauses:
            break
        count += 1
    return count
