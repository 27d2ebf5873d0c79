"""Interfaces through which a coordinator reaches its workers, the repository and the operator."""

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
    """A running worker's state, read from its agent's log."""

    end: WorkerOutcome | Literal[""] = ""
    """How the agent's run ended (`done` if its result can be checked); empty while it runs."""
    why: str = ""
    """Reason why the worker failed; empty if it did not."""
    is_capped: bool = False
    """Whether the worker ended only because the budget of the whole run is spent."""
    usd: float = 0.0
    tokens: int = 0
    is_estimated: bool = False
    harness: str = ""
    """Agent CLI that reached a usage limit; empty if none did."""
    until: datetime | None = None
    """Time at which the usage limit ends."""


class CoordinatorPorts(msgspec.Struct, frozen=True, kw_only=True):
    folder: RunFolder
    clock: Callable[[], datetime]
    rest: Callable[[float], None]
    """Waits for the given number of seconds, or until a signal arrives."""
    is_interrupted: Callable[[], bool]
    ensure_worker: Callable[[PipelineState, WorkerBegan], str]
    """Creates and starts a worker's agent, if necessary.

    Returns why the agent cannot be started, or "". Such a reason fails the attempt.

    Raises:
        RekindleError: The worker cannot start until the operator acts, for example by accepting a
            changed rekindle.yaml.
    """
    read_worker: Callable[[WorkerState], WorkerView]
    stop_worker: Callable[[WorkerState], None]
    check_worker: Callable[[WorkerId, WorkerState, WorkerView], WorkerEnded]
    """Stores and checks the result of a finished worker. This may take minutes."""
    find_items: Callable[[FindItems], ItemsFound]
    merge: Callable[[MergeCommits], StepMerged]
    ask_person: Callable[[PipelineState, str, MergeStage], None]
    """Prepares a branch on which the operator can merge, and notifies the operator."""
    find_merged: Callable[[PipelineState, str, MergeStage], StepMerged | None]
    """Returns the operator's merge, or None if there is none yet."""
    end: Callable[[PipelineOutcome, str, str], None]
    """Stores the run's result (outcome, commit and reason), and notifies the operator."""
    note: Callable[[str], None]
    """Records why the run is waiting, for `pipeline status`."""
    watch_workers: Callable[[list[str]], None]
    """Starts missing supervisors."""
