"""What a cycle does next, from what was tried in it.

A session that can go on goes on; only when resuming itself has failed twice, or its window is full,
a fresh one takes over, primed with what is known. What a retry cannot mend ends the run: the next
`run` tries again where this one stopped.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import RESUME_TRIES, Restart

LOST = "lost"
"""How a launch ended whose supervisor had gone before it."""
_CRASHES = {"crash", "resume-failed"}
_STOPS = {"interrupted", "limit", "overload", "network", "auth", "billing", "budget"}
"""What no retry mends: a person, time or money must."""


class Fresh(msgspec.Struct, frozen=True):
    """Start a new session."""

    recovery: bool
    """It takes over from one that was interrupted."""


class Resume(msgspec.Struct, frozen=True):
    """Go on in a session that there is."""

    session: str


class Over(msgspec.Struct, frozen=True):
    """Start nothing more."""

    outcome: str
    """`clean`: the cycle is done; else what stands in the way."""


Step = Fresh | Resume | Over


def next_step(tried: Sequence[Attempt], *, since: int, now: datetime, limits: Restart) -> Step:
    """What to do after the attempts of an open cycle.

    `since` is the last place of the log before this run: a clock can be set back, the log cannot.
    """
    if not tried:
        return Fresh(recovery=False)
    last = tried[-1]
    if outcome := _stop(tried, since, now, limits):
        return Over(outcome)
    if last.exit == "context-full" or _failed_resumes(tried) >= RESUME_TRIES:
        return Fresh(recovery=True)
    if last.session and _has_begun(tried, last.session):
        return Resume(last.session)
    # A program that could not be started has interrupted nothing.
    return Fresh(recovery=any(one.resumes or _has_begun(tried, one.session) for one in tried))


def _stop(tried: Sequence[Attempt], since: int, now: datetime, limits: Restart) -> str:
    """Why nothing more is to be started; empty: something is."""
    last = tried[-1]
    if last.exit == "clean":
        return last.exit
    if last.seq <= since:
        return ""  # what stopped an earlier run: a person has said `run` since
    if last.exit in _STOPS:
        return last.exit
    if last.exit == "context-full" and len(tried) > 1 and tried[-2].exit == last.exit:
        return last.exit  # a fresh session filled up at once: another would too
    return "crash" if _crashes(tried, since, now, limits) >= limits.max_crashes else ""


def _crashes(tried: Sequence[Attempt], since: int, now: datetime, limits: Restart) -> int:
    return sum(
        one.exit in _CRASHES
        and one.seq > since
        and one.ended is not None
        and (now - one.ended).total_seconds() <= limits.window
        for one in tried
    )


def _failed_resumes(tried: Sequence[Attempt]) -> int:
    """How often in a row, up to now, a session could not be brought back."""
    count = 0
    for one in reversed(tried):
        if not one.resumes or one.session != tried[-1].session:
            break
        if one.opened and one.exit != "resume-failed":
            break  # it was brought back, and then something else happened
        count += one.exit in _CRASHES
    return count


def _has_begun(tried: Sequence[Attempt], session: str) -> bool:
    """Whether there is a session to go on with: a program that never opened one left none."""
    return any(one.session == session and one.opened for one in tried)
