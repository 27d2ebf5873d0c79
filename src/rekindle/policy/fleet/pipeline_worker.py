"""A fleet agent that works for a pipeline run, and its reports to the run's workflow."""

from datetime import datetime
from typing import Literal

import msgspec

from rekindle.policy.projection.projection import Projection


class PipelineWorker(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline run that an agent works for."""

    workflow: str
    """Id of the run's workflow."""
    attempt: int
    """Number of the attempt, starting at 1."""
    seq: int = 0
    """Position in the agent's log before the attempt."""
    inputs: str = ""
    """Git ref on the remote with the outputs of earlier steps; empty if there are none."""


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's progress in one attempt."""

    agent: str
    attempt: int
    state: Literal["running", "over", "stopped"] = "running"
    usd: float = 0.0
    """Cost of the attempt so far, in dollars."""
    tokens: int = 0
    is_estimated: bool = False
    """Whether a part of the cost was computed from tokens."""
    until: datetime | None = None
    """Time at which the usage limit ends; None if the agent is not waiting for one."""


def make_report(agent: str, worker: PipelineWorker, projection: Projection) -> WorkerReport | None:
    """Return a report on an agent that no host is running, or None before the attempt begins."""
    run = projection.run
    if run.wanted <= worker.seq:
        return None
    spent, wait = run.run_spending(), run.waiting
    report = WorkerReport(
        agent=agent,
        attempt=worker.attempt,
        usd=spent.usd,
        tokens=spent.tokens,
        is_estimated=spent.is_estimated,
    )
    change = msgspec.structs.replace
    if run.is_over and run.ended.seq > worker.seq:
        return change(report, state="over")
    if run.desired == "stopped":
        return change(report, state="stopped")
    if wait is not None and wait.why == "limit":
        return change(report, until=wait.until)
    return report
