"""Choose the session with which a cycle continues, from its launches so far.

A resumable session is resumed. A fresh, primed session takes over if the CLI refuses to resume, if
it crashed twice without opening the session, or if the window is full. `restart` decides whether
and when to start anything at all.
"""

from collections.abc import Sequence

import msgspec

from rekindle.policy.exits.stop_reasons import REACTIONS, find_reaction
from rekindle.policy.projection.sessions import (
    LaunchRecord,
)
from rekindle.policy.settings.runtime_settings import (
    RESUME_TRIES,
)


class StartFresh(msgspec.Struct, frozen=True):
    """Start a new session."""

    recovery: bool
    """Whether it takes over from an interrupted session."""
    why: str = ""
    """Why a new session is started although there was one to resume."""


class ResumeSession(msgspec.Struct, frozen=True):
    """Continue an existing session."""

    session: str


def choose_session(tried: Sequence[LaunchRecord]) -> StartFresh | ResumeSession:
    """Return the session to start after the launches of an open cycle."""
    if not tried:
        return StartFresh(recovery=False)
    last = tried[-1]
    if find_reaction(last.exit) == "hand-on":
        return StartFresh(recovery=False, why=last.words)
    if find_reaction(last.exit) == "refresh":
        return StartFresh(recovery=True, why=last.words)
    if _count_failed_resumes(tried) >= RESUME_TRIES:
        return StartFresh(recovery=True, why="resuming it failed")
    if last.session and _has_opened_session(tried, last.session):
        return ResumeSession(last.session)
    # A program that could not be started has not interrupted anything.
    return StartFresh(
        recovery=any(
            launch.resumes or _has_opened_session(tried, launch.session) for launch in tried
        )
    )


def _count_failed_resumes(tried: Sequence[LaunchRecord]) -> int:
    """Return how often in a row, up to now, a session could not be resumed."""
    count = 0
    for launch in reversed(tried):
        if not launch.resumes or launch.session != tried[-1].session:
            break
        if not launch.started:
            continue  # a missing program proves nothing about the session
        if launch.opened and launch.exit != "resume-failed":
            break  # it was resumed, and something else happened later
        # A CLI that lacks the session, or cannot read it, will not find it on a retry.
        is_final = find_reaction(launch.exit) == "replace"
        count += RESUME_TRIES if is_final else REACTIONS[find_reaction(launch.exit)].counts
    return count


def _has_opened_session(tried: Sequence[LaunchRecord], session: str) -> bool:
    """Return whether a launch has opened this session, so that it can be resumed."""
    return any(launch.session == session and launch.opened for launch in tried)
