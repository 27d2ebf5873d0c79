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
    parse_pipeline_event,
)
from rekindle.errors import DocumentError
from rekindle.formats import json_codec, validation
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import WorkerReport
from rekindle.policy.pipelines.pipeline_state import PipelineState, fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.settings.runtime_settings import FLEET_HISTORY_EVENTS


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

    def read_events(self) -> list[AnyPipelineEvent | UnknownEvent]:
        return [parse_pipeline_event(line.encode()) for line in self.lines]

    def fold(self) -> PipelineState:
        """Return the state of the run."""
        return fold(self.read_events())

    def append(self, event: AnyPipelineEvent) -> "RegisteredPipeline":
        line = events.render(event).decode()
        return msgspec.structs.replace(self, lines=(*self.lines, line))


def begin_run(
    template: RegisteredPipeline,
    base: str,
    number: int,
    now: datetime,
    due: datetime | None = None,
) -> RegisteredPipeline:
    """Return a new run. `due` is the due time of the schedule that starts it."""
    defined = msgspec.structs.replace(template.definition, base=base)
    started = PipelineStarted(
        ts=now,
        pipeline=defined.pipeline,
        run=number,
        base=base,
        input=defined.input,
        definition=json_codec.hash_bytes(validation.encode_json(defined)),
        due=due,
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
