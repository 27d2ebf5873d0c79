"""Decide an agent's next move from its projection, on one host or in a fleet."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

from rekindle.documents.launches.route import Route
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.progress import idle
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.routes.choose_route import RouteChoice, choose_route
from rekindle.policy.settings.runtime_settings import RuntimeSettings
from rekindle.policy.supervision import run_moves


class AgentLimits(msgspec.Struct, frozen=True):
    """Limits that apply to an agent."""

    runtime: RuntimeSettings = RuntimeSettings()
    budget: Budget | None = None
    threshold: int | None = None
    """Percentage of the context window at which a fresh session takes over; None for never."""
    stays: bool = False
    """Whether a person is working with the agent in its terminal."""
    checkpoints: bool = True
    """Whether a checkpoint is written at a handoff."""
    routes: tuple[Route, ...] = ()
    """Routes on which the agent's work can run, in order of preference."""
    carries: bool = False
    """Whether the CLI of the current route can continue a session of another account."""


def choose_agent_route(
    projection: Projection,
    limits: AgentLimits,
    now: datetime,
    holds: Mapping[Route, datetime] = MappingProxyType({}),
) -> RouteChoice | None:
    """Return the route for the agent's next launch, or None if it has only one."""
    if len(limits.routes) <= 1:
        return None
    return choose_route(
        limits.routes,
        projection.attempts.values(),
        cycle=projection.current_cycle,
        now=now,
        limits=limits.runtime.restart,
        since=projection.run.since,
        asked=projection.run.route,
        holds=holds,
    )


def decide_move(
    projection: Projection, limits: AgentLimits, now: datetime, choice: RouteChoice | None = None
) -> run_moves.Move:
    """Return the agent's next move, on the chosen route if it has several."""
    return run_moves.decide_next_move(
        projection.run,
        select_open_launches(projection),
        now=now,
        runtime=limits.runtime,
        cap=limits.budget,
        stays=limits.stays,
        threshold=limits.threshold,
        checkpoint=find_checkpoint(projection) if limits.checkpoints else sessions.NOT_IN_LOG,
        fruitless=measure_idle_work(projection),
        choice=choice,
        carries=limits.carries,
    )


def is_quota_lifted(projection: Projection, seq: int = sessions.NOT_IN_LOG) -> bool:
    """Return whether the launch at a log position, or the next one, may use the quota of others.

    It may if the operator restarted the agent after the launch before it.
    """
    before = (launch.seq for launch in projection.attempts.values() if launch.seq < seq)
    return max(before, default=0) < projection.run.lifted < seq


def measure_idle_work(projection: Projection) -> idle.IdleWork:
    """Return the work since the last progress or the operator's last command."""
    run = projection.run
    return idle.sum_idle_launches(
        projection.attempts.values(),
        projection.ended,
        began=run.began,
        intervened=run.intervened,
        stopped=run.stopped,
    )


def select_open_launches(projection: Projection) -> list[sessions.LaunchRecord]:
    """Return the current cycle's launches."""
    return list(
        sessions.select_cycle_launches(projection.attempts, projection.current_cycle).values()
    )


def find_checkpoint(projection: Projection) -> int:
    """Return the log position of the last checkpoint that any session may use, or 0."""
    checkpoint = projection.documents.get("checkpoint")
    return checkpoint.seq if checkpoint and not checkpoint.session else 0
