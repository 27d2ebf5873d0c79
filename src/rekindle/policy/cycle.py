"""Which session a cycle goes on with, from what was tried in it.

A session that can be resumed is resumed. If the CLI refuses to, if it crashed twice without opening
the session, or if its window is full, a fresh one takes over, primed with what is known. Whether
anything is to be started at all, and when, is not decided here but by `restart`.
"""

from collections.abc import Sequence

import msgspec

from rekindle.policy.endings import REACTIONS, reaction
from rekindle.policy.sessions import Attempt, Life
from rekindle.policy.settings import FRESH_TOKENS, RESUME_TRIES


class Fresh(msgspec.Struct, frozen=True):
    """Start a new session."""

    recovery: bool
    """It takes over from one that was interrupted."""
    why: str = ""
    """Why, although there was a session to go on with."""


class Resume(msgspec.Struct, frozen=True):
    """Go on in a session that there is."""

    session: str


def next_step(tried: Sequence[Attempt]) -> Fresh | Resume:
    """What to start after the attempts of an open cycle."""
    if not tried:
        return Fresh(recovery=False)
    last = tried[-1]
    if reaction(last.exit) == "hand-on":
        return Fresh(recovery=False, why=last.words)
    if reaction(last.exit) in {"refresh", "renew"}:
        return Fresh(recovery=True, why=last.words)
    if _failed_resumes(tried) >= RESUME_TRIES:
        return Fresh(recovery=True, why="resuming it failed")
    if last.session and _has_begun(tried, last.session):
        return Resume(last.session)
    # A program that could not be started has interrupted nothing.
    return Fresh(recovery=any(one.resumes or _has_begun(tried, one.session) for one in tried))


def is_fresh_cheaper(life: Life, primer_tokens: int) -> bool:
    """Whether a session that goes on costs more than a fresh one that is told where things stand.

    A cache that still has it reads it for next to nothing; one that forgot it is written anew.
    """
    return life.cache_expired and life.context_tokens > primer_tokens + FRESH_TOKENS


def _failed_resumes(tried: Sequence[Attempt]) -> int:
    """How often in a row, up to now, a session could not be brought back."""
    count = 0
    for one in reversed(tried):
        if not one.resumes or one.session != tried[-1].session:
            break
        if not one.started:
            continue  # a program that is not there says nothing of the session
        if one.opened and one.exit != "resume-failed":
            break  # it was brought back, and then something else happened
        # A CLI that has no such session, or cannot read it, will not have it a moment later.
        is_final = reaction(one.exit) == "replace"
        count += RESUME_TRIES if is_final else REACTIONS[reaction(one.exit)].counts
    return count


def _has_begun(tried: Sequence[Attempt], session: str) -> bool:
    """Whether there is a session to go on with: a program that never opened one left none."""
    return any(one.session == session and one.opened for one in tried)
