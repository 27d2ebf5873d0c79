"""The engine's record of a pipeline run: its definition, its log and its workers' reports."""

from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import (
    AnyPipelineEvent,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    WorkerEnded,
    WorkerReported,
    parse_pipeline_event,
)
from rekindle.errors import DocumentError
from rekindle.formats import json_codec, validation
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import WorkerReport
from rekindle.policy.pipelines.pipeline_state import PipelineState, fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.settings.runtime_settings import FLEET_HISTORY_EVENTS
from rekindle.thresholds.fleet_limits import (
    FLEET_LONG_EVENT_CHARACTERS,
    FLEET_REASON_CHARACTERS,
    FLEET_REASONS_BYTES,
)


class RegisteredPipeline(msgspec.Struct, frozen=True, kw_only=True):
    definition: RunDefinition
    agent: AgentDefinition
    """Definition that all workers share. Each worker adds its own entry and prompt."""
    lines: tuple[str, ...] = ()
    """The run's log."""
    begun: tuple[tuple[str, int], ...] = ()
    """Agents that were created, with the attempts that were started."""
    reports: dict[str, WorkerReport] = {}
    """The last report of each agent."""
    most_events: int = FLEET_HISTORY_EVENTS
    """Maximum number of events in the engine's history before the engine starts a new one."""

    @property
    def due(self) -> datetime | None:
        """Return the due time for which a schedule started the run, or None."""
        first = parse_pipeline_event(self.lines[0].encode()) if self.lines else None
        return first.due if isinstance(first, PipelineStarted) else None

    def read_events(self) -> list[AnyPipelineEvent | UnknownEvent]:
        return [parse_pipeline_event(line.encode()) for line in self.lines]

    def fold(self) -> PipelineState:
        """Return the state of the run."""
        return fold(self.read_events())

    def append(self, event: AnyPipelineEvent) -> "RegisteredPipeline":
        """Add an event to the log, which must fit into one message to the engine.

        The number of lines never decreases, because `pipeline logs` counts them to find new ones.
        """
        line = events.render(event).decode()
        place = self._find_report(event) if isinstance(event, WorkerReported) else None
        if place is not None:
            lines = (*self.lines[:place], line, *self.lines[place + 1 :])
        else:
            lines = (*self.lines, line)
        if isinstance(event, WorkerEnded) and event.why:
            lines = _cut_reasons(lines)
        return msgspec.structs.replace(self, lines=lines)

    def _find_report(self, new: WorkerReported) -> int | None:
        """Return the place of the report that a new report replaces, or None."""
        for place in reversed(range(len(self.lines))):
            if new.kind not in self.lines[place]:
                continue
            last = parse_pipeline_event(self.lines[place].encode())
            if isinstance(last, WorkerReported) and _is_replaced(last, new):
                return place
        return None


def _is_replaced(last: WorkerReported, new: WorkerReported) -> bool:
    """Return whether a report adds only spending to an earlier report on the same attempt."""
    is_same = (last.step, last.worker, last.attempt) == (new.step, new.worker, new.attempt)
    return is_same and not last.harness and not new.harness


def _cut_reasons(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Cut older failure reasons if the log has too many long ones."""
    room, after = FLEET_REASONS_BYTES, [*lines]
    for place in reversed(range(len(lines))):
        if len(lines[place]) < FLEET_LONG_EVENT_CHARACTERS:
            continue
        event = parse_pipeline_event(lines[place].encode())
        if not isinstance(event, WorkerEnded) or len(event.why) <= FLEET_REASON_CHARACTERS:
            continue
        room -= len(lines[place].encode())
        if room < 0:
            why = event.why[: FLEET_REASON_CHARACTERS - 1] + "…"
            after[place] = events.render(msgspec.structs.replace(event, why=why)).decode()
    return tuple(after)


def begin_run(
    template: RegisteredPipeline,
    base: str,
    number: int,
    now: datetime,
    due: datetime | None = None,
    *,
    by: str = "",
) -> RegisteredPipeline:
    """Return a new run, which the user `by` starts, or a schedule with the due time `due`."""
    defined = msgspec.structs.replace(template.definition, base=base)
    started = PipelineStarted(
        ts=now,
        pipeline=defined.pipeline,
        run=number,
        base=base,
        input=defined.input,
        definition=json_codec.hash_bytes(validation.encode_json(defined)),
        due=due,
        by=by,
    )
    definition = msgspec.structs.replace(defined, run=number)
    return msgspec.structs.replace(template, definition=definition).append(started)


def explain_refused_line(line: str, state: PipelineState) -> str:
    """Explain why the operator's command is refused, or return "" if it is accepted."""
    try:
        event = parse_pipeline_event(line.encode())
    except DocumentError as error:
        return str(error)
    if not isinstance(event, PipelineStopped | PipelineResumed):
        return "only stop and resume are commands"
    return f"the run is {state.ended}" if state.ended in {"done", "failed"} else ""
