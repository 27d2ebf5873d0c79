"""Measure work without progress, delay further launches, and decide when to pause the run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from rekindle.documents.events import (
    CycleEnded,
    WorkSigns,
)
from rekindle.formats.counts import render_count
from rekindle.policy.exits.backoff import compute_probe_pause
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    WaitUntil,
)
from rekindle.policy.exits.stop_reasons import (
    REACTIONS,
    STOP_REASONS,
    find_reaction,
    parse_reason,
)
from rekindle.policy.progress.work_progress import find_progress
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    PROBE_INTERVAL,
    RETRY_NOTICE_SECONDS,
    SECONDS_AN_HOUR,
    ProgressSettings,
)

NO_PROGRESS_REASON: Final = "no-progress"
"""Reason for pausing a run in safe mode when it makes no progress."""
IDLE_REASON: Final = "idle"
"""Reason for waiting before the next launch when there is no progress."""
LIFTED_BY = "`rekindle run --budget none` lifts this limit"


class IdleWork(msgspec.Struct, frozen=True):
    """Totals for the launches since the last progress or the operator's last command."""

    launches: int = 0
    seconds: float = 0.0
    """Total duration of the launches, in seconds."""
    usd: float = 0.0
    billed: bool = False
    """Whether the CLI's output shows that the account is billed per token."""
    failing: datetime | None = None
    """Time of the first failure in the current series; None if the last launch did not fail."""
    last: LaunchRecord | None = None
    signs: tuple[WorkSigns, ...] = ()
    """Signs of work from each launch, oldest first."""


_NONE = IdleWork()
_End = LaunchRecord | CycleEnded


def sum_idle_launches(
    attempts: Iterable[LaunchRecord],
    cycles: Mapping[int, CycleEnded],
    *,
    began: int,
    intervened: int,
    stopped: int = 0,
) -> IdleWork:
    """Add up the work without progress since the run started or the operator stepped in.

    `began` (start of the run), `intervened` (last restart or answer) and `stopped` (last stop) are
    log positions. Launches before the last stop are not counted, because the operator ended them,
    but their hours and cost are.
    """
    since = max(began, intervened)
    ends: list[_End] = [*(end for end in attempts if end.exit), *cycles.values()]
    ends.sort(key=_find_position)
    signs: dict[type, list[WorkSigns]] = {LaunchRecord: [], CycleEnded: []}
    before: list[list[WorkSigns]] = []
    for end in ends:
        known = signs[type(end)]
        before.append(known)
        if end.signs is not None and end.signs.artefacts:
            signs[type(end)] = [*known, end.signs]
    # Backwards: comparing all of them would take longer and longer as the agent works.
    resets = ((at, _find_reset(ends[at], before[at], since)) for at in reversed(range(len(ends))))
    last, idle_work = next(((at, reset) for at, reset in resets if reset is not None), (-1, _NONE))
    billed, spent, base = False, 0.0, 0.0
    for at, end in enumerate(ends):
        if isinstance(end, LaunchRecord):
            spent = end.run_usd if end.seq > began else 0.0
            billed = billed if end.billed is None else end.billed
            if at > last:
                idle_work = _add_launch(idle_work, end, spent - base, counts=end.seq > stopped)
        if at == last:
            base = spent
    return msgspec.structs.replace(idle_work, billed=billed, signs=tuple(signs[LaunchRecord]))


def _find_reset(end: _End, before: Sequence[WorkSigns], since: int) -> IdleWork | None:
    """Return the totals from which counting starts again, or None if it continues."""
    if end.seq <= since or find_progress(end.signs, before):
        return _NONE
    if isinstance(end, LaunchRecord) and end.fruitless is not None:
        return IdleWork(seconds=end.fruitless)
    return None


def _find_position(end: _End) -> int:
    return end.seq if isinstance(end, CycleEnded) else end.ended_seq or end.seq


def _add_launch(idle: IdleWork, launch: LaunchRecord, usd: float, *, counts: bool) -> IdleWork:
    has_failed = counts and not REACTIONS[find_reaction(launch.exit)].is_intended
    # A login may be repaired only after days, and until then the model is never asked.
    counts = counts and not STOP_REASONS[parse_reason(launch.exit)].is_retried
    return msgspec.structs.replace(
        idle,
        launches=idle.launches + counts,
        seconds=idle.seconds + launch.seconds,
        usd=usd,
        failing=(idle.failing or launch.ended) if has_failed else None,
        last=launch,
    )


def find_reached_bound(
    idle: IdleWork, bounds: ProgressSettings, *, seconds: float = 0.0, usd: float = 0.0
) -> str:
    """Describe the bound that was reached, or return "" if none was.

    `seconds` and `usd` are the duration and cost of the current launch so far.
    """
    hours = (idle.seconds + seconds) / SECONDS_AN_HOUR
    dollars = idle.usd + usd
    if idle.billed and dollars >= bounds.max_usd:
        return f"${dollars:.2f} was spent without progress"
    if hours >= bounds.max_hours:
        return f"{render_count(round(hours), 'hour')} of work without progress"
    if idle.launches >= bounds.max_launches:
        return f"{render_count(idle.launches, 'launch', 'launches')} in a row without progress"
    return ""


def decide_pause(idle: IdleWork, bounds: ProgressSettings) -> EnterSafeMode | None:
    """Pause the run in safe mode if a bound was reached; otherwise return None."""
    words = find_reached_bound(idle, bounds)
    last = f"; the last one: {idle.last.words}" if idle.last and idle.last.words else ""
    return EnterSafeMode(NO_PROGRESS_REASON, f"{words}{last}; {LIFTED_BY}") if words else None


def decide_pace(idle: IdleWork, bounds: ProgressSettings, now: datetime) -> WaitUntil | None:
    """Delay the next launch if there was no recent progress; otherwise return None.

    The wait applies after every kind of exit, even if the operator has lifted the bounds.
    """
    late = idle.launches - bounds.paced_after
    if idle.last is None or late < 0:
        return None
    # If the clock was set back, the launch may appear to end in the future. Do not prolong the
    # wait.
    until = min(idle.last.ended or now, now) + timedelta(seconds=compute_probe_pause(late))
    return WaitUntil(until, IDLE_REASON, idle.last.seq, probe=True) if until > now else None


def render_idle_notice(idle: IdleWork, now: datetime, wait: WaitUntil | None = None) -> str:
    """Return the notification to send before a wait or a launch, or "" if none is due.

    For a probe, the notification is due immediately. For other retries, it is due if the next
    launch comes an hour or more after the first failure. A usage limit has a separate notification.
    """
    if idle.failing is None or idle.last is None or (wait and wait.why == "limit"):
        return ""
    lasted = ((wait.until if wait else now) - idle.failing).total_seconds()
    if not (wait and wait.probe) and lasted < RETRY_NOTICE_SECONDS:
        return ""
    retried = (
        f"the next try is at {wait.until:%Y-%m-%d %H:%M} UTC" if wait else ("the next try is now")
    )
    if idle.launches:
        found = f"{render_count(idle.launches, 'launch', 'launches')} without progress"
    else:  # launches without a login are not counted
        found = f"all launches have failed since {idle.failing:%Y-%m-%d %H:%M} UTC"
    return f"{found}, the last one: {idle.last.words or idle.last.exit}; {retried}"


def describe_bounds(bounds: ProgressSettings, *, lifted: bool = False) -> str:
    """Describe the bounds on work without progress in one line.

    `lifted` means that the operator has lifted the bounds that pause a run. Launches are delayed
    even then.
    """
    last = bounds.paced_after
    ending = (
        "th" if last % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(last % 10, "th")
    )
    pause = (
        "never pauses the agent (`--budget none`)"
        if lifted
        else f"pauses the agent after {render_count(bounds.max_launches, 'launch', 'launches')} or"
        f" {render_count(bounds.max_hours, 'hour')} of work"
        f" (or ${bounds.max_usd:g}, if it is billed per token)"
    )
    return (
        f"without progress, each launch after the {last}{ending} waits {PROBE_INTERVAL},"
        f" and Rekindle {pause}"
    )


def describe_next_launch(wait: WaitUntil, last: str) -> str:
    """Describe when the next launch is due and how the last one ended."""
    due = f"no progress lately, the next launch is due at {wait.until:%Y-%m-%d %H:%M} UTC"
    return f"{due}; the last one: {last}" if last else due
