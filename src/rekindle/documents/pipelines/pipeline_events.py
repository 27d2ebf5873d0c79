"""Events: everything that happens in a pipeline run, as one JSON line per event.

A run has its own log, with the same common fields as an agent's log. `AnyPipelineEvent` lists every
kind. Kinds that only a later version of Rekindle knows are read as `UnknownEvent`.
"""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from rekindle.documents.events.event import SCHEMA, Event, UnknownEvent
from rekindle.errors import DocumentError
from rekindle.formats import json_codec

MergeStage = Literal["inputs", "workers", "result"]
"""Results to merge: those of a step's dependencies, of its workers, or of the last steps, which
become the result of the run.
"""
WorkerOutcome = Literal["done", "failed", "stopped"]
PipelineOutcome = Literal["done", "failed", "budget", "stopped"]


class PipelineEvent(Event, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base class for the events of a pipeline run."""


class PipelineStarted(PipelineEvent, frozen=True, kw_only=True, tag="pipeline.started"):
    summary = "A run of a pipeline started."
    pipeline: str
    run: int
    """Number of the run, starting at 1."""
    base: str
    """Commit that the run starts from."""
    input: str = ""
    """Text for `{{ input }}` in prompts."""
    definition: str = ""
    """Hash of the pipeline's definition, which is stored in the run's folder."""
    due: datetime | None = None
    """Due time of the schedule that started the run, or None if the operator started it."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class ItemsFound(PipelineEvent, frozen=True, kw_only=True, tag="items.found"):
    summary = "The items of a matrix step were read. Later changes to the list have no effect."
    step: str
    workers: tuple[str, ...] = ()
    """Keys of the workers, one per item."""
    sha: str = ""
    """Hash of the file that lists the items."""
    why: str = ""
    """Why the list cannot be used. Without a list, the step fails."""


class WorkerBegan(PipelineEvent, frozen=True, kw_only=True, tag="worker.began"):
    summary = "A worker starts an attempt. Its folder and its agent are created after this event."
    step: str
    worker: str = ""
    """Key of the worker; empty if the step has no matrix."""
    attempt: int
    """Number of the attempt, starting at 1. A resumed attempt gets a new number."""
    agent: str
    commit: str
    """Commit that the worker starts from."""


class WorkerReported(PipelineEvent, frozen=True, kw_only=True, tag="worker.reported"):
    summary = "A running worker spent more, or reached a usage limit."
    step: str
    worker: str = ""
    attempt: int
    usd: float = 0.0
    """Cost of the attempt so far, in dollars."""
    tokens: int = 0
    """Number of tokens that the attempt has used so far."""
    is_estimated: bool = False
    """Whether a part of the cost was computed from tokens."""
    harness: str = ""
    """Agent CLI that reached a usage limit; empty if there was none."""
    until: datetime | None = None
    """Time at which the usage limit resets."""


class WorkerEnded(PipelineEvent, frozen=True, kw_only=True, tag="worker.ended"):
    summary = "A worker's attempt ended, and its work is stored in a commit."
    step: str
    worker: str = ""
    attempt: int
    outcome: WorkerOutcome
    """`done` if all checks passed, `failed` if one did not, `stopped` if it was interrupted."""
    commit: str = ""
    why: str = ""
    """Why the attempt failed, which the next attempt is told, or why its work was not pushed."""
    usd: float = 0.0
    """Cost of the attempt, in dollars."""
    tokens: int = 0
    """Number of tokens that the attempt used."""
    is_estimated: bool = False
    """Whether a part of the cost was computed from tokens."""


class StepMerged(PipelineEvent, frozen=True, kw_only=True, tag="step.merged"):
    summary = "Results were merged. Changes that git cannot merge are listed as conflicts."
    step: str = ""
    """Id of the step; empty for the result of the run."""
    stage: MergeStage = "workers"
    commit: str
    """Merged commit, without the conflicting changes."""
    merged: tuple[str, ...] = ()
    """Workers or steps whose changes are in the commit."""
    conflicts: tuple[str, ...] = ()
    """Workers or steps whose conflicting changes still have to be merged."""
    dropped: tuple[str, ...] = ()
    """Workers or steps whose conflicting changes were left out."""


class PersonAsked(PipelineEvent, frozen=True, kw_only=True, tag="person.asked"):
    summary = "A person was asked to merge conflicting changes."
    step: str = ""
    stage: MergeStage = "workers"


class PipelineStopped(PipelineEvent, frozen=True, kw_only=True, tag="pipeline.stopped"):
    summary = "The operator stopped the run."
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class PipelineResumed(PipelineEvent, frozen=True, kw_only=True, tag="pipeline.resumed"):
    summary = "The operator resumed the run, possibly with a larger budget."
    budget: dict[str, float] = msgspec.field(default_factory=dict)
    """New caps for the whole run, by unit: usd, tokens or hours."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class PipelineEnded(PipelineEvent, frozen=True, kw_only=True, tag="pipeline.ended"):
    summary = "The run ended. A run that was stopped or reached its budget can be resumed."
    outcome: PipelineOutcome
    commit: str = ""
    """Result of the run; empty unless it is done."""
    why: str = ""


AnyPipelineEvent = (
    PipelineStarted
    | ItemsFound
    | WorkerBegan
    | WorkerReported
    | WorkerEnded
    | StepMerged
    | PersonAsked
    | PipelineStopped
    | PipelineResumed
    | PipelineEnded
)
PIPELINE_EVENT_KINDS: tuple[type[PipelineEvent], ...] = get_args(AnyPipelineEvent)
_decoder: msgspec.json.Decoder[AnyPipelineEvent] = msgspec.json.Decoder(AnyPipelineEvent)
_TAGS = {str(kind.__struct_config__.tag) for kind in PIPELINE_EVENT_KINDS}


def parse_pipeline_event(line: bytes) -> AnyPipelineEvent | UnknownEvent:
    """Parse the event in a line of a run's log.

    Kinds that this version does not know are allowed. `documents.events.render` writes the lines.
    """
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raw = json_codec.decode_object(line, "event", schema=SCHEMA)
        kind = raw.get("kind")
        if not isinstance(kind, str) or kind in _TAGS:
            raise DocumentError("event", f"is not valid for its kind ({error})") from error
        try:
            return msgspec.convert(raw, UnknownEvent)
        except msgspec.ValidationError as unfit:
            raise DocumentError("event", f"is not valid for its kind ({unfit})") from unfit
    json_codec.refuse_newer_schema(event.v, "event", SCHEMA)
    if event.ts.tzinfo is None:
        raise DocumentError("event", "has a time without a time zone")
    return event
