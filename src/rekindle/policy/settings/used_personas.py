"""Find the personas that a pipeline and its workers use, and which therefore need consent."""

from collections.abc import Container

import msgspec

from rekindle.documents.manifest import AgentEntry, Manifest
from rekindle.documents.manifest_keys import Compaction, Handover
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.policy.settings.runtime_settings import AgentDefaults

SUMMARIZER_PERSONA = "summarizer"
"""Persona that summarizes for every agent."""


def find_pipeline_personas(pipeline: Pipeline) -> set[str]:
    """Return the personas with which a pipeline's workers run, merge and summarize."""
    names = {SUMMARIZER_PERSONA}
    for step in pipeline.steps:
        own = step.persona or AgentDefaults().persona
        names |= {own} | _find_compaction_persona(step.handover)
        if step.run is not None:
            names.add(AgentDefaults().persona)
        if step.merge is not None:
            names.add(step.merge.persona or own)
    return names


def find_worker_personas(entry: AgentEntry) -> set[str]:
    """Return the personas that a worker uses."""
    own = entry.persona or AgentDefaults().persona
    return {SUMMARIZER_PERSONA, own} | _find_compaction_persona(entry.handover)


def find_agent_personas(entry: AgentEntry) -> set[str]:
    """Return the personas of an agent, which no other agent needs to have."""
    own = find_worker_personas(entry) - {SUMMARIZER_PERSONA}
    listed = {item.persona or AgentDefaults().persona for item in entry.harnesses or ()}
    return own | listed | ({entry.review} if entry.review else set())


def find_all_personas(manifest: Manifest) -> set[str]:
    """Return the personas that the agents and pipelines of a manifest use."""
    names = {SUMMARIZER_PERSONA}
    for entry in manifest.agents.values():
        names |= find_agent_personas(entry)
    for pipeline in manifest.pipelines.values():
        names |= find_pipeline_personas(pipeline)
    return names


def keep_personas(manifest: Manifest, names: Container[str]) -> Manifest:
    """Return the manifest with only these personas."""
    kept = {name: persona for name, persona in manifest.personas.items() if name in names}
    return msgspec.structs.replace(manifest, personas=kept)


def _find_compaction_persona(handover: Handover | None) -> set[str]:
    compaction = handover.compaction if handover else None
    named = compaction.persona if isinstance(compaction, Compaction) else None
    return {named} if named else set()
