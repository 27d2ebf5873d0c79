"""How an agent is, as far as a glance should tell, and why."""

from collections.abc import Callable
from datetime import tzinfo

from rekindle.documents.morning import Mood
from rekindle.policy import sessions
from rekindle.policy.fold import Projection
from rekindle.policy.sessions import Attempt

_EXITS = {
    "crash": "it crashed",
    "limit": "a usage limit",
    "auth": "nobody is logged in",
    "lost": "its supervisor was gone",
}


def mood(
    known: Projection, zone: tzinfo, is_alive: Callable[[str], bool], *, is_supervised: bool
) -> tuple[Mood, str]:
    tried = sessions.newest(known.attempts)
    if known.run.is_safe:
        return "person", known.run.safe.words or known.run.safe.why
    if tried is None:
        return _own(known, is_alive)
    if is_supervised:
        return _kept(known, tried, zone)
    return _left(known, tried)


def _own(known: Projection, is_alive: Callable[[str], bool]) -> tuple[Mood, str]:
    """Of one that nobody supervises: its last session, which a person has begun."""
    lives = [life for life in known.lives.values() if life.started]
    if not lives:
        return "new", ""
    last = max(lives, key=lambda life: (life.started_seq, life.ended_seq))
    if not last.is_open:
        return "stopped", "your last session has ended"
    if any(life.is_open and life.process and is_alive(life.process) for life in lives):
        return "running", "a session of yours"
    return "stopped", "your last session was killed: it never said that it ended"


def _kept(known: Projection, tried: Attempt, zone: tzinfo) -> tuple[Mood, str]:
    waits = known.run.waits(tried.seq)
    if waits is None:
        return "running", f"cycle {known.cycle_now}"
    return "waiting", f"until {waits.until.astimezone(zone):%Y-%m-%d %H:%M}: {waits.why}"


def _left(known: Projection, tried: Attempt) -> tuple[Mood, str]:
    run, after = known.run, f"after cycle {known.cycle}"
    if run.is_over:
        is_done = run.ended.why == "done"
        words = run.ended.words or (after if is_done else run.ended.why)
        return "done" if is_done else "stopped", words
    if run.desired == "stopped":
        return "stopped", "by you"
    if not known.is_cycle_open:
        return "stopped", after
    why = tried.words or _EXITS.get(tried.exit, tried.exit) or "its supervisor is gone"
    return "stopped", f"in cycle {known.cycle}: {why}"
