"""Choose the session in which a cycle continues, based on the cycle's launches so far.

A session that can be resumed is resumed. A fresh session with a primer takes over if the CLI
refuses to resume, if the CLI crashed twice without opening the session, or if the window is full.
The module `restart` decides whether and when to start it.
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
    """Decision to start a new session."""

    recovery: bool
    """Whether the new session takes over from an interrupted one."""
    why: str = ""
    """Reason for starting a new session instead of resuming the previous one."""


class ResumeSession(msgspec.Struct, frozen=True):
    """Decision to resume an existing session."""

    session: str


def choose_session(launches: Sequence[LaunchRecord]) -> StartFresh | ResumeSession:
    """Decide whether an open cycle resumes its last session or continues in a fresh one."""
    if not launches:
        return StartFresh(recovery=False)
    last = launches[-1]
    if find_reaction(last.exit) == "hand-on":
        return StartFresh(recovery=False, why=last.words)
    if find_reaction(last.exit) == "refresh":
        return StartFresh(recovery=True, why=last.words)
    if _count_failed_resumes(launches) >= RESUME_TRIES:
        return StartFresh(recovery=True, why="resuming it failed")
    if last.session and has_opened_session(launches, last.session):
        return ResumeSession(last.session)
    # If the program could not be started, there is no interrupted session to recover.
    return StartFresh(
        recovery=any(
            launch.resumes or has_opened_session(launches, launch.session) for launch in launches
        )
    )


def _count_failed_resumes(launches: Sequence[LaunchRecord]) -> int:
    """Count the most recent attempts in a row that failed to resume the session."""
    count = 0
    for launch in reversed(launches):
        if not launch.resumes or launch.session != launches[-1].session:
            break
        if not launch.started:
            continue  # the program did not start, so this says nothing about the session
        if launch.opened and launch.exit != "resume-failed":
            break  # the session was resumed, and the launch failed later
        # If the CLI does not have the session or cannot read it, a retry will fail too.
        is_final = find_reaction(launch.exit) == "replace"
        count += RESUME_TRIES if is_final else REACTIONS[find_reaction(launch.exit)].counts
    return count


def has_opened_session(launches: Sequence[LaunchRecord], session: str) -> bool:
    """Return whether a launch has opened this session, which a resume requires."""
    return any(launch.session == session and launch.opened for launch in launches)
