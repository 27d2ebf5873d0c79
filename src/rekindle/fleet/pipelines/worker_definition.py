"""Define the agent for a worker on a fleet: its manifest, prompt and limits."""

import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents import manifest
from rekindle.documents.manifest import MANIFEST_FILE, AgentEntry
from rekindle.documents.manifest_pipelines import PipelineStep
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.formats import validation, yaml_lines
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.handoff import window_rule
from rekindle.policy.pipelines.pipeline_moves import limit_worker
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.step_status import MERGE_KEYS
from rekindle.policy.pipelines.worker_entry import make_entry, make_merging_entry
from rekindle.policy.supervision.next_move import AgentLimits

_PROMPT = "worker-prompt.md"


def define_worker(
    registered: RegisteredPipeline,
    state: PipelineState,
    began: WorkerBegan,
    *,
    prompt: str,
    worker: PipelineWorker,
    now: datetime,
) -> tuple[AgentEntry, AgentDefinition]:
    """Return the manifest entry and the definition of a worker's agent."""
    shared = registered.agent
    entry = _make_entry(registered, state, began, now)
    relay = shared.limits.runtime.relay
    limits = AgentLimits(
        runtime=shared.limits.runtime,
        budget=entry.budget,
        threshold=window_rule.find_threshold(entry.handover, relay),
    )
    definition = msgspec.structs.replace(
        shared,
        manifest=_render_manifest(shared.manifest, began.agent, entry),
        files={**shared.files, _PROMPT: prompt},
        limits=limits,
        worker=worker,
    )
    return entry, definition


def find_check(step: PipelineStep) -> list[str] | None:
    """Return the command that decides whether a worker is done, or None.

    On a fleet, only the host that runs the agent has its folder. Therefore, `test_suite` contracts
    are part of the agent's `until:` command.
    """
    own = step.until if step.run is None else step.run
    tests = [contract.command for contract in step.contracts if contract.type == "test_suite"]
    commands = [list(command) for command in (own, *tests) if command]
    if len(commands) > 1:
        return ["sh", "-c", " && ".join(shlex.join(command) for command in commands)]
    return commands[0] if commands else None


def _make_entry(
    registered: RegisteredPipeline, state: PipelineState, began: WorkerBegan, now: datetime
) -> AgentEntry:
    run = registered.definition
    step = run.find_step(began.step)
    plan = next(other for other in run.plan.steps if other.id == began.step)
    is_merging = began.worker in MERGE_KEYS.values()
    make: Callable[..., AgentEntry] = make_merging_entry if is_merging else make_entry
    entry = make(
        manifest.parse(registered.agent.manifest),
        run.definition,
        step,
        harness=plan.merge_harness if is_merging else plan.harness,
        prompt=_PROMPT,
        budget=limit_worker(run.plan, state, plan.budget, now),
    )
    check = None if is_merging else find_check(step)
    # Each host already gives the agent its own clone.
    return msgspec.structs.replace(entry, workspace=None, copy=None, until=check)


def _render_manifest(text: str, agent: str, entry: AgentEntry) -> str:
    """Return the operator's manifest with only this agent, and without pipelines."""
    data: dict[str, Any] = dict(yaml_lines.parse(text, MANIFEST_FILE).data)
    data.pop("pipelines", None)
    own = msgspec.to_builtins(entry, enc_hook=validation.encode_custom)
    data["agents"] = {agent: _drop_missing(own)}
    return msgspec.json.encode(data).decode()


def _drop_missing(value: Any) -> Any:
    """Remove the keys that are not set from a value."""
    if isinstance(value, dict):
        return {key: _drop_missing(part) for key, part in value.items() if part is not None}
    return value
