"""Fields of records that are not given: nothing happened, nothing is known."""

import inspect

import msgspec
import pytest

from rekindle.documents import service_units, state
from rekindle.documents.events import (
    document_events,
    event,
    handoff_events,
    operator_events,
    ownership_events,
    run_events,
    session_events,
)
from rekindle.documents.hooks import hook_record
from rekindle.documents.launches import background_record, brake, launch_types
from rekindle.documents.screens import agent_night, agent_row
from rekindle.documents.transcripts import turns
from rekindle.policy.briefs import brief_content, brief_request, brief_schedule
from rekindle.policy.exits import restart, stop_reasons
from rekindle.policy.fleet import agent_registry
from rekindle.policy.night import timeline
from rekindle.policy.operator import build_row
from rekindle.policy.progress import idle
from rekindle.policy.projection import fold, open_loops, projection, sessions
from rekindle.policy.relay import trim
from rekindle.policy.stall import stall_response, verdict
from rekindle.policy.summaries import summary_request
from rekindle.policy.supervision import budget, hang, next_move, run_moves, watchdog_table

MODULES = [
    *(document_events, event, handoff_events, operator_events, ownership_events, run_events),
    *(session_events, hook_record, background_record, brake, launch_types, agent_night, agent_row),
    *(
        service_units,
        state,
        turns,
        brief_content,
        brief_request,
        brief_schedule,
        timeline,
        restart,
        stop_reasons,
    ),
    *(agent_registry, build_row, idle, fold, open_loops, projection, sessions, trim),
    *(stall_response, verdict, summary_request, budget, hang, next_move, run_moves, watchdog_table),
]
GIVEN = {
    "LaunchEnded.started": True,
    "LaunchRecord.started": True,
    "Capabilities.hooks": True,
    "Capabilities.launch_hooks": True,
    "Capabilities.resumes": True,
    "Capabilities.names_sessions": True,
    "Capabilities.questions": True,
    "TranscriptCursor.number": 1,
    "TimelineMoment.count": 1,
    "TimelineLine.count": 1,
    "RegisteredAgent.most_events": 1000,
    "ProcessSigns.reports": True,
    "AgentLimits.checkpoints": True,
    "StartAttempt.times": 1,
    "Capabilities.reports_tokens": True,
    "Capabilities.terminal": True,
}
"""Fields with another default: a launch has started, a CLI can do what most CLIs can."""


def list_defaults(module):
    """Yield the name and the default of each field that is a number or a yes or no."""
    for name, record in vars(module).items():
        if not inspect.isclass(record) or record.__module__ != module.__name__:
            continue
        if issubclass(record, msgspec.Struct):
            fields = {field.name: field.default for field in msgspec.structs.fields(record)}
        else:
            fields = getattr(record, "_field_defaults", {})
        for field, default in fields.items():
            if isinstance(default, int | float):
                yield f"{name}.{field}", default


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_field_that_is_not_given(module):
    """A number is 0 and a fact is not so; an event has the first version of its schema."""
    defaults = dict(list_defaults(module))
    assert defaults
    for name, default in defaults.items():
        expected = 1 if name.endswith(".v") else GIVEN.get(name, type(default)(0))
        assert default == expected, name
