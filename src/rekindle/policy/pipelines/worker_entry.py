"""Derive a worker's agent entry from its step.

rekindle.yaml does not contain the entry. Keys that the step does not set have defaults for workers:
a separate clone, a sandbox, and one cycle.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from rekindle.documents.manifest import AgentEntry, Manifest, Persona
from rekindle.documents.manifest_keys import Budget, Handover
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep

_Value = TypeVar("_Value")
COMMAND_HARNESS = "command"
_NOTHING = ["true"]
"""Program for an agent whose step has a command instead of a prompt. The supervisor runs that
command as the agent's `until:`.
"""


class InheritedSettings(msgspec.Struct, frozen=True):
    """Settings that all agents with the same CLI share."""

    command: list[str] | None
    env: dict[str, str] | None
    accounts: list[str] | None = None
    """Accounts of all agents. The worker uses the first one that belongs to its CLI."""


def make_entry(
    manifest: Manifest,
    pipeline: Pipeline,
    step: PipelineStep,
    *,
    harness: str,
    prompt: str,
    budget: Budget | None,
) -> AgentEntry:
    """Return the entry for an agent that works on a step. `prompt` is the path to its prompt."""
    entry = _make_common(manifest, pipeline, step.persona, harness, prompt, budget)
    compaction = step.handover.compaction if step.handover else None
    change = msgspec.structs.replace
    if step.run is not None:
        return change(
            entry,
            harness=COMMAND_HARNESS,
            command=_NOTHING,
            env=None,
            accounts=None,
            persona=None,
            until=step.run,
            cycles=1,
            # A command spends neither dollars nor tokens, so only time can end it.
            budget=Budget(hours=budget.hours) if budget and budget.hours is not None else None,
        )
    return change(
        entry,
        cycles=1 if step.cycles is None else step.cycles,
        until=step.until,
        convergence=step.convergence,
        handover=None if compaction is None else Handover(compaction=compaction),
    )


def make_merging_entry(
    manifest: Manifest,
    pipeline: Pipeline,
    step: PipelineStep,
    *,
    harness: str,
    prompt: str,
    budget: Budget | None,
) -> AgentEntry:
    """Return the entry for an agent that merges conflicting changes."""
    named = (step.merge.persona if step.merge else None) or step.persona
    return _make_common(manifest, pipeline, named, harness, prompt, budget)


def _make_common(  # noqa: PLR0917 - one per part of the entry
    manifest: Manifest,
    pipeline: Pipeline,
    persona_name: str | None,
    harness: str,
    prompt: str,
    budget: Budget | None,
) -> AgentEntry:
    persona = manifest.personas.get(persona_name or "default", Persona())
    inherited = find_inherited(manifest, harness)
    return AgentEntry(
        harness=harness,
        prompt=prompt,
        persona=persona_name,
        workspace="clone",
        copy=pipeline.copy,
        prepare=pipeline.prepare,
        cycles=1,
        budget=budget,
        command=persona.command or inherited.command,
        env=inherited.env,
        accounts=inherited.accounts,
        sandbox=True if persona.sandbox is None else persona.sandbox,
    )


def find_inherited(manifest: Manifest, harness: str) -> InheritedSettings:
    """Return what a worker takes over from the agents in rekindle.yaml that use the same CLI."""
    similar = [agent for agent in manifest.agents.values() if agent.harness == harness]
    listed = [agent.accounts or [] for agent in manifest.agents.values()]
    return InheritedSettings(
        command=_find_same(agent.command for agent in similar),
        env=_find_same(agent.env for agent in similar),
        accounts=list(dict.fromkeys(account for each in listed for account in each)) or None,
    )


def _find_same(values: Iterable[_Value | None]) -> _Value | None:
    """Return the value that all agents share, or None if they differ."""
    first, *others = [*values] or [None]
    return first if all(other == first for other in others) else None
