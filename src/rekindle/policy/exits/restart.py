"""Decide whether to restart an agent after an exit: now, later, or only when a person decides.

The decisions follow the table `stop_reasons.STOP_REASONS`, from which the diagram in the
documentation is generated. External causes, such as an overloaded model or a lost network
connection, do not count as crashes and are retried without asking a person.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from rekindle.policy.exits import stop_reasons
from rekindle.policy.exits.backoff import (
    compute_backoff,
    compute_probe_pause,
)
from rekindle.policy.exits.stop_reasons import REACTIONS, Reaction, StopReason
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    INSTANT_SECONDS,
    PROBED_CRASHES,
    RestartSettings,
    RuntimeSettings,
)

LOST_EXIT = "lost"
"""Exit kind for a launch whose supervisor died before the launch ended."""

HANDOFF_EXIT = "handoff"
"""Exit kind for a launch that was stopped because its window was full."""


class WaitUntil(msgspec.Struct, frozen=True):
    """Decision not to start anything before a given time."""

    until: datetime
    why: StopReason
    after: int
    """Log position of the launch that caused the wait."""
    probe: bool = False
    """Whether the next launch is a probe, because launches keep failing for an unknown reason."""
    words: str = ""


class EnterSafeMode(msgspec.Struct, frozen=True):
    """Decision to keep the supervisor running, start nothing, and wait for a person."""

    why: StopReason
    words: str = ""


class StopRun(msgspec.Struct, frozen=True):
    """Decision to end the run."""

    why: StopReason
    words: str = ""


def decide_restart(
    launches: Sequence[LaunchRecord],
    *,
    now: datetime,
    runtime: RuntimeSettings,
    stays: bool = False,
    stopped: int = 0,
) -> WaitUntil | EnterSafeMode | StopRun | None:
    """Return the decision that prevents a restart now, or None to restart immediately.

    Only launches after `stopped`, the log position of the operator's last stop, count towards
    pauses.
    """
    is_refused = bool(launches) and _is_refused_resume(launches[-1])
    launches = [launch for launch in launches if not _is_refused_resume(launch)]
    if not launches or is_refused:
        return None  # after a refused resume, a fresh session starts immediately
    last = launches[-1]
    exit_kind, reaction = (
        stop_reasons.parse_reason(last.exit),
        stop_reasons.find_reaction(last.exit),
    )
    if reaction == "done":
        # The person at the terminal ended the agent and decides how to continue.
        return EnterSafeMode("clean", last.words) if stays else StopRun("done")
    is_full_again = _count_refreshes(_select_since_healthy(launches, runtime.restart)) > 1
    if reaction == "person" or (reaction == "refresh" and is_full_again):
        return EnterSafeMode(exit_kind, last.words)
    limits = runtime.restart
    if limits.max_crashes and count_crashes(launches, now, limits) >= limits.max_crashes:
        return EnterSafeMode("crash", last.words)
    if reaction == "wait" and not runtime.limits.wait:
        return StopRun("limit", last.words)
    counted = [launch for launch in launches if launch.seq > stopped]
    until, failures = (
        find_pause_end(launches, counted, reaction, now, limits),
        count_instant_failures(counted),
    )
    counts = REACTIONS[reaction].counts
    is_probed = limits.max_crashes is None and counts and failures >= PROBED_CRASHES
    if is_probed:
        pause = timedelta(seconds=compute_probe_pause(failures - PROBED_CRASHES))
        until = max(until, min(last.ended or now, now) + pause)
    return WaitUntil(until, exit_kind, last.seq, probe=is_probed) if until > now else None


def _is_refused_resume(launch: LaunchRecord) -> bool:
    return launch.resumes and stop_reasons.find_reaction(launch.exit) == "replace"


def count_crashes(launches: Sequence[LaunchRecord], now: datetime, limits: RestartSettings) -> int:
    """Count the crashes in the time window since the last healthy launch."""
    return sum(
        REACTIONS[stop_reasons.find_reaction(launch.exit)].counts
        and launch.ended is not None
        and (now - launch.ended).total_seconds() <= limits.window
        for launch in _select_since_healthy(launches, limits)
    )


def count_instant_failures(launches: Sequence[LaunchRecord]) -> int:
    """Count the most recent launches in a row that crashed soon after starting.

    Launches that ended because the supervisor died are skipped, because the agent did not cause
    them.
    """
    count = 0
    for launch in reversed(launches):
        reaction = stop_reasons.find_reaction(launch.exit)
        if reaction == "resume":
            continue
        if not REACTIONS[reaction].counts or launch.seconds >= INSTANT_SECONDS:
            break
        count += 1
    return count


def _count_refreshes(launches: Sequence[LaunchRecord]) -> int:
    """Count the launches that ended with a full window."""
    return sum(stop_reasons.find_reaction(launch.exit) == "refresh" for launch in launches)


def find_pause_end(
    launches: Sequence[LaunchRecord],
    counted: Sequence[LaunchRecord],
    reaction: Reaction,
    now: datetime,
    limits: RestartSettings,
) -> datetime:
    """Return the end of the pause after the last launch. Only `counted` launches lengthen it."""
    last = launches[-1]
    # If the clock was set back, the launch may appear to end in the future. Do not prolong the
    # pause.
    ended = min(last.ended or now, now)
    if reaction == "wait":
        return _find_limit_end(launches, ended, limits)
    if not REACTIONS[reaction].pauses:
        return ended
    failed = _count_in_a_row(_select_since_healthy(counted, limits), reaction)
    # Number of retries without a pause: one after a crash, none during an outage, which usually
    # lasts longer, and several after a lost supervisor, which is not the agent's fault.
    free = {"retry": 0, "resume": limits.max_crashes or PROBED_CRASHES}.get(reaction, 1)
    if failed <= free:
        return ended
    return ended + timedelta(seconds=compute_backoff(limits, failed - free - 1))


def _find_limit_end(
    launches: Sequence[LaunchRecord], ended: datetime, limits: RestartSettings
) -> datetime:
    """Return when to retry after a usage limit: at its reported end, or after growing pauses.

    If the CLI keeps reporting that the limit is about to end, as in "try again in 1 s", each pause
    is twice as long as the one before.
    """
    limits_in_a_row = 0
    is_held = launches[-1].is_held
    for launch in reversed(launches):
        if launch.exit != "limit" or launch.is_held != is_held:
            break
        limits_in_a_row += 1
    probe = timedelta(seconds=compute_probe_pause(limits_in_a_row - 1))
    reported = launches[-1].resets_at
    if reported is None:
        return ended + probe
    reset_time = datetime.fromtimestamp(reported, UTC)
    # The reported time has passed, but the limit still applies, so the report is unreliable.
    if reset_time <= ended and limits_in_a_row > 1 and not is_held:
        return ended + probe
    pause = compute_backoff(limits, limits_in_a_row - 2) if limits_in_a_row > 1 else 0.0
    return max(reset_time, ended + timedelta(seconds=pause))


def _select_since_healthy(
    launches: Sequence[LaunchRecord], limits: RestartSettings
) -> Sequence[LaunchRecord]:
    """Return the last healthy launch and all later ones, or all launches if none was healthy."""
    for position in range(len(launches) - 1, -1, -1):
        if launches[position].seconds >= limits.healthy_after:
            return launches[position:]
    return launches


def _count_in_a_row(launches: Sequence[LaunchRecord], reaction: Reaction) -> int:
    """Count the most recent launches in a row whose exits require a pause.

    If the last exit was a lost supervisor, only such exits are counted. Otherwise they are skipped,
    because the agent did not cause them.
    """
    count = 0
    for launch in reversed(launches):
        launch_reaction = stop_reasons.find_reaction(launch.exit)
        if (launch_reaction == "resume") != (reaction == "resume"):
            if reaction == "resume":
                break
            continue
        if not REACTIONS[launch_reaction].pauses:
            break
        count += 1
    return count
