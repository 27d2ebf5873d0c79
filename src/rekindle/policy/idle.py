"""Work without progress: how long it lasts, how it is paced, and when a run pauses for it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from rekindle.documents.event import CycleEnded, WorkSigns
from rekindle.policy.backoff import probe_pause
from rekindle.policy.endings import REACTIONS, reaction
from rekindle.policy.progress import progress
from rekindle.policy.restart import Safe, Wait
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import RETRY_NOTICE_SECONDS, SECONDS_AN_HOUR, Progress

WHY: Final = "no-progress"
"""Reason of the pause in safe mode."""
PACED: Final = "idle"
"""Reason of the wait before a launch."""
LIFTED_BY = "`rekindle run --budget none` lifts this bound"


class Idle(msgspec.Struct, frozen=True):
    """Launches since the last progress, or since the operator restarted the agent."""

    launches: int = 0
    seconds: float = 0.0
    """Time that they worked."""
    usd: float = 0.0
    billed: bool = False
    """Whether the CLI shows that the account is billed per token."""
    failing: datetime | None = None
    """End of the first that failed in a row; None: the last one did not fail."""
    last: Attempt | None = None
    signs: tuple[WorkSigns, ...] = ()
    """Signs of the launches up to the last one, oldest first."""


_NONE = Idle()


def measure(
    attempts: Iterable[Attempt],
    cycles: Mapping[int, CycleEnded],
    *,
    began: int,
    heeded: int,
    stopped: int = 0,
) -> Idle:
    """Return what happened without progress since the run began and the operator was last heard.

    `began`, `heeded` and `stopped`, the operator's last stop, are places in the log. Launches count
    from the stop: the operator has ended them and wants the next one. Hours and money do not.
    """
    since = max(began, heeded)
    ends: list[Attempt | CycleEnded] = [*(one for one in attempts if one.exit), *cycles.values()]
    signs: dict[type, list[WorkSigns]] = {Attempt: [], CycleEnded: []}
    found, billed, spent, base = _NONE, False, 0.0, 0.0
    for one in sorted(ends, key=_place):
        before = signs[type(one)]
        if isinstance(one, Attempt):
            spent = one.run_usd if one.seq > began else 0.0
            billed = billed if one.billed is None else one.billed
        if one.seq <= since or progress(one.signs, before):
            found, base = _NONE, spent
        elif isinstance(one, Attempt) and one.fruitless is not None:
            found, base = Idle(seconds=one.fruitless), spent
        elif isinstance(one, Attempt):
            found = _with_launch(found, one, spent - base, counts=one.seq > stopped)
        if one.signs is not None and one.signs.artefacts:
            before.append(one.signs)
    return msgspec.structs.replace(found, billed=billed, signs=tuple(signs[Attempt]))


def _place(one: Attempt | CycleEnded) -> int:
    return one.seq if isinstance(one, CycleEnded) else one.ended_seq or one.seq


def _with_launch(idle: Idle, one: Attempt, usd: float, *, counts: bool) -> Idle:
    has_failed = counts and not REACTIONS[reaction(one.exit)].is_intended
    return msgspec.structs.replace(
        idle,
        launches=idle.launches + counts,
        seconds=idle.seconds + one.seconds,
        usd=usd,
        failing=(idle.failing or one.ended) if has_failed else None,
        last=one,
    )


def is_over(idle: Idle, bounds: Progress, *, seconds: float = 0.0, usd: float = 0.0) -> str:
    """Return which bound is reached, in words; empty: none is.

    `seconds` and `usd` are those of a launch that still runs.
    """
    hours = (idle.seconds + seconds) / SECONDS_AN_HOUR
    dollars = idle.usd + usd
    if idle.billed and dollars >= bounds.max_usd:
        return f"${dollars:.2f} were spent without progress"
    if hours >= bounds.max_hours:
        return f"{hours:.0f} hours of work without progress"
    if idle.launches >= bounds.max_launches:
        return f"{idle.launches} launches in a row without progress"
    return ""


def pause(idle: Idle, bounds: Progress) -> Safe | None:
    """Return the pause that is due, or None."""
    words = is_over(idle, bounds)
    last = f"; the last one: {idle.last.words}" if idle.last and idle.last.words else ""
    return Safe(WHY, f"{words}{last}; {LIFTED_BY}") if words else None


def pace(idle: Idle, bounds: Progress, now: datetime) -> Wait | None:
    """Return the wait before the next launch without progress, or None.

    It holds whatever the exits were, and also if the operator has lifted the bounds.
    """
    late = idle.launches - bounds.paced_after
    if idle.last is None or late < 0:
        return None
    # From now at the latest: a clock that was set back must not make it longer.
    until = min(idle.last.ended or now, now) + timedelta(seconds=probe_pause(late))
    return Wait(until, PACED, idle.last.seq, probe=True) if until > now else None


def notice(idle: Idle, now: datetime, wait: Wait | None = None) -> str:
    """Return what the operator is notified of before a wait or a launch; empty: nothing.

    A probe is announced at once, other retries before they have lasted for an hour. A usage limit
    has a notification of its own.
    """
    if idle.failing is None or idle.last is None or (wait and wait.why == "limit"):
        return ""
    lasted = ((wait.until if wait else now) - idle.failing).total_seconds()
    if not (wait and wait.probe) and lasted < RETRY_NOTICE_SECONDS:
        return ""
    retried = f"tried again at {wait.until:%Y-%m-%d %H:%M} UTC" if wait else "tried again now"
    many = f"{idle.launches} launches without progress"
    return f"{many}, the last one: {idle.last.words or idle.last.exit}; {retried}"


def bounds_in_words(bounds: Progress, *, lifted: bool = False) -> str:
    """Return the bounds on work without progress, on one line.

    `lifted`: the operator has lifted those that pause a run; launches are spaced out even so.
    """
    first = bounds.paced_after + 1
    ending = (
        "th" if first % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(first % 10, "th")
    )
    then = (
        "continues, as `--budget none` says"
        if lifted
        else f"pauses after {bounds.max_launches} launches or {bounds.max_hours:g} hours of work,"
        f" or ${bounds.max_usd:g} if the account is billed per token"
    )
    return (
        "without progress, waits 15 to 60 minutes between launches from the"
        f" {first}{ending} on, and {then}"
    )


def due_in_words(wait: Wait, last: str) -> str:
    """Return when the next launch without progress is due, and what the last one said."""
    due = f"no progress lately, the next launch is due at {wait.until:%Y-%m-%d %H:%M} UTC"
    return f"{due}; the last one: {last}" if last else due
