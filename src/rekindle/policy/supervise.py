"""What an agent needs now, from all that is known of it: the same for a laptop and for a fleet."""

from datetime import datetime

import msgspec

from rekindle.documents.manifest import Budget
from rekindle.policy import idle, run, sessions
from rekindle.policy.fold import Projection
from rekindle.policy.settings import Runtime


class Limits(msgspec.Struct, frozen=True):
    """What an agent is held to."""

    runtime: Runtime = Runtime()
    budget: Budget | None = None
    threshold: int | None = None
    """How full its window may be, in percent, before a fresh session goes on; None: never mind."""
    stays: bool = False
    """A person sits before it."""
    checkpoints: bool = True
    """Somebody writes one where a session hands its work on."""


def decide(
    known: Projection,
    limits: Limits,
    now: datetime,
    *,
    paces_handoffs: bool = True,
    resumes_count: bool = False,
) -> run.Move:
    """Return what to do now; `resumes_count`: see `restart.verdict`."""
    return run.next_move(
        known.run,
        tried(known),
        now=now,
        runtime=limits.runtime,
        cap=limits.budget,
        stays=limits.stays,
        threshold=limits.threshold,
        checkpoint=_checkpointed(known) if limits.checkpoints else sessions.NOT_YET,
        fruitless=measure_idle(known),
        paces_handoffs=paces_handoffs,
        resumes_count=resumes_count,
    )


def has_failed_resume(known: Projection) -> bool:
    """Return whether a session could not be resumed in the cycle that is under way."""
    return any(one.resumes and one.exit == "resume-failed" for one in tried(known))


def measure_idle(known: Projection) -> idle.Idle:
    """Return the work since the last progress, or since the operator was last heard."""
    run = known.run
    return idle.measure(
        known.attempts.values(),
        known.ended,
        began=run.began,
        heeded=run.heeded,
        stopped=run.stopped,
    )


def tried(known: Projection) -> list[sessions.Attempt]:
    """What was tried in the cycle that is under way."""
    return list(sessions.of_cycle(known.attempts, known.cycle_now).values())


def _checkpointed(known: Projection) -> int:
    """Where in the log the last checkpoint is that anybody may go on with; 0: there is none."""
    standing = known.documents.get("checkpoint")
    return standing.seq if standing and not standing.session else 0
