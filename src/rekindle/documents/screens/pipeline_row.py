"""One row per pipeline run, for `pipeline status`, `status` and the live view."""

from datetime import datetime
from typing import Literal

import msgspec

RunStanding = Literal[
    "running", "waiting", "needs you", "stopping", "stopped", "over budget", "failed", "done"
]
StepStanding = Literal[
    "waiting", "running", "merging", "needs you", "stopped", "failed", "skipped", "done"
]


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a step. The JSON reference quotes the field docs."""

    step: str
    """Id of the step."""
    state: StepStanding
    """`waiting`, `running`, `merging`, `needs you`, `stopped`, `failed`, `skipped` or `done`."""
    is_matrix: bool = False
    """Whether the step has one worker per item."""
    workers: int | None = 1
    """Number of workers, or null until the list of items has been read."""
    done: int = 0
    """Number of workers that are done."""
    running: int = 0
    """Number of workers that are running their first attempt."""
    retrying: int = 0
    """Number of workers that are repeating an attempt, or are about to."""
    failed: int = 0
    """Number of workers that have failed."""
    usd: float = 0.0
    """Amount that the step has spent, in dollars."""
    tokens: int = 0
    """Number of tokens that the step has used."""
    is_estimated: bool = False
    """Whether a part of the amount was computed from tokens."""

    @property
    def pending(self) -> int:
        """Return the number of workers that have not started."""
        return max(0, (self.workers or 0) - self.done - self.running - self.retrying - self.failed)


class PersonTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that only a person can do."""

    step: str
    """Id of the step; empty if the task is about the whole run."""
    worker: str = ""
    """Key of the worker; empty for a merge or a step without a matrix."""
    text: str
    """What the run is waiting for."""
    commands: tuple[str, ...] = ()
    """Commands for the person to run, in order."""


class WorkerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that failed, or a step whose list of items cannot be used."""

    step: str
    """Id of the step."""
    worker: str = ""
    """Key of the worker; empty if the step has no matrix."""
    agent: str = ""
    """Name of the worker's agent; empty if no worker was started."""
    why: str = ""
    """Why the worker or step failed."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run, as every screen shows it. The JSON reference quotes the field docs."""

    pipeline: str
    """Name of the pipeline."""
    run: int
    """Number of the run."""
    state: RunStanding
    """`running`, `waiting`, `needs you`, `stopping`, `stopped`, `over budget`, `failed` or `done`.
    """
    reason: str = ""
    """Reason for the state, as text."""
    is_coordinated: bool = True
    """Whether the run's coordinator is running."""
    began: datetime | None = None
    """When the run started, or null if it has not."""
    updated: datetime | None = None
    """Time of the run's last event, or null if it has none."""
    stopped_seconds: float = 0.0
    """Number of seconds for which the run was stopped before it was resumed. They do not count as
    hours of its budget.
    """
    until: datetime | None = None
    """When the usage limit that the run is waiting for resets, or null if there is none."""
    usd: float = 0.0
    """Amount that the run has spent, in dollars."""
    tokens: int = 0
    """Number of tokens that the run has used."""
    is_estimated: bool = False
    """Whether a part of the amount was computed from tokens."""
    usd_cap: float | None = None
    """Maximum amount that the run may spend, in dollars, or null for no limit."""
    tokens_cap: int | None = None
    """Maximum number of tokens that the run may use, or null for no limit."""
    hours_cap: float | None = None
    """Maximum duration of the run, in hours, or null for no limit."""
    steps: tuple[StepRow, ...] = ()
    """The steps, in the order of the manifest."""
    tasks: tuple[PersonTask, ...] = ()
    """Tasks that the run is waiting for a person to do."""
    failures: tuple[WorkerFailure, ...] = ()
    """Workers that have failed. Those that failed the run come first."""
    branch: str = ""
    """Branch with the result; empty until the run is done."""
    commit: str = ""
    """Commit with the result; empty until the run is done."""
    command: str = ""
    """Next command for the operator; empty if none is needed."""

    @property
    def is_over(self) -> bool:
        return self.state in {"stopped", "over budget", "failed", "done"}
