"""What a coordinator needs from the outside world."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    MergeStage,
    PipelineOutcome,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
    WorkerOutcome,
)
from rekindle.policy.pipelines.pipeline_moves import FindItems, MergeCommits
from rekindle.policy.pipelines.pipeline_state import PipelineState, WorkerId, WorkerState
from rekindle.stores.pipelines.run_folder import RunFolder


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A running worker, as its agent's log shows it."""

    end: WorkerOutcome | Literal[""] = ""
    """How the agent's run ended: `done` if its result can be checked; empty while it runs."""
    why: str = ""
    """Why it failed; empty unless it did."""
    is_capped: bool = False
    """Whether it ended only because the budget of the whole run is spent."""
    usd: float = 0.0
    tokens: int = 0
    harness: str = ""
    """Agent CLI that reached a usage limit; empty if none did."""
    until: datetime | None = None
    """Time at which the usage limit ends."""


class CoordinatorPorts(msgspec.Struct, frozen=True, kw_only=True):
    folder: RunFolder
    clock: Callable[[], datetime]
    rest: Callable[[float], None]
    """Waits for some seconds, or until the process is told to exit."""
    is_interrupted: Callable[[], bool]
    ensure_worker: Callable[[PipelineState, WorkerBegan], str]
    """Creates a worker's agent and starts it, unless that has been done. Returns why the agent
    cannot be started, which fails the attempt, or "".

    Raises:
        RekindleError: The worker can start only after the operator has done something, such as
            accept a changed rekindle.yaml.
    """
    read_worker: Callable[[WorkerState], WorkerView]
    stop_worker: Callable[[WorkerState], None]
    check_worker: Callable[[WorkerId, WorkerState, WorkerView], WorkerEnded]
    """Stores the result of a worker that has ended, and checks it. This may take minutes."""
    find_items: Callable[[FindItems], ItemsFound]
    merge: Callable[[MergeCommits], StepMerged]
    ask_person: Callable[[PipelineState, str, MergeStage], None]
    """Prepares a branch on which a person can merge, and notifies the person."""
    find_merged: Callable[[PipelineState, str, MergeStage], StepMerged | None]
    """Returns the merge that a person has made, or None."""
    end: Callable[[PipelineOutcome, str, str], None]
    """Stores the result of the run and notifies the person: outcome, commit and reason."""
    note: Callable[[str], None]
    """Records why the run waits, for `pipeline status`."""
    watch_workers: Callable[[list[str]], None]
    """Starts supervisors that are missing."""
