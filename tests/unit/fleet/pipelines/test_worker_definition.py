"""The definition of an agent that works on a step of a pipeline on a fleet."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events, manifest
from rekindle.documents.manifest_pipelines import PipelineStep, StepContract, StepHandover
from rekindle.documents.pipelines.pipeline_events import PipelineStarted, WorkerBegan
from rekindle.fleet.pipelines.worker_definition import define_worker, find_check
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MANIFEST = """\
version: 1
agents:
  helper: {harness: command, command: [work, "naïve 🎉"]}
runtime: {restart: {cooldown: 5s}}
pipelines:
  ship:
    steps: [{id: plan, prompt: "Plan it"}]
"""
TESTS = StepContract(type="test_suite", command=["pytest", "a b"])


@pytest.mark.parametrize(
    ("step", "command"),
    [
        (PipelineStep(id="s"), None),
        (PipelineStep(id="s", run=["make"]), ["make"]),
        (PipelineStep(id="s", handover=StepHandover(contract=TESTS)), ["pytest", "a b"]),
        (
            PipelineStep(id="s", until=["done"], handover=StepHandover(contract=[TESTS])),
            ["sh", "-c", "done && pytest 'a b'"],
        ),
    ],
)
def test_the_tests_of_a_step_decide_whether_its_agent_is_done(step, command):
    assert find_check(step) == command


def test_a_worker_has_its_own_entry_and_the_settings_of_the_project():
    pipeline = manifest.parse(MANIFEST).pipelines["ship"]
    plan = RunPlan(pipeline="ship", steps=(StepPlan(id="plan", harness="command"),))
    started = PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0")
    registered = RegisteredPipeline(
        definition=RunDefinition(pipeline="ship", run=1, base="c0", definition=pipeline, plan=plan),
        agent=AgentDefinition(manifest=MANIFEST, pool="p", heartbeat_seconds=5),
        lines=(events.render(started).decode(),),
    )
    began = WorkerBegan(ts=NOW, step="plan", attempt=1, agent="ship-1-plan", commit="c0")
    worker = PipelineWorker(workflow="w", attempt=1)
    entry, definition = define_worker(
        registered, registered.fold(), began, prompt="Plan it\n", worker=worker, now=NOW
    )
    parsed = manifest.parse(definition.manifest)
    assert parsed.agents == {"ship-1-plan": entry}
    assert (entry.command, entry.workspace, entry.cycles) == (["work", "naïve 🎉"], None, 1)
    assert (parsed.runtime, parsed.pipelines) == ({"restart": {"cooldown": "5s"}}, {})
    assert definition.files[entry.prompt] == "Plan it\n"
    assert definition.worker == worker
