"""Which personas a pipeline and its workers use."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest import AgentEntry
from rekindle.documents.manifest_keys import Compaction, Handover
from rekindle.policy.settings.used_personas import (
    find_agent_personas,
    find_all_personas,
    find_pipeline_personas,
    find_worker_personas,
    keep_personas,
)


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ("prompt: Write.", {"default"}),
        ("prompt: Write., persona: writer", {"writer"}),
        # The worker runs with the default persona, and gets the sandbox of the step's persona.
        ("run: just, persona: writer", {"writer", "default"}),
        (
            "prompt: Write., persona: writer, handover: {compaction: {persona: clerk}}",
            {"writer", "clerk"},
        ),
        ("prompt: Write., persona: writer, handover: {compaction: off}", {"writer"}),
        (
            "prompt: Write., persona: writer, merge: {conflicts: agent, persona: merger}",
            {"writer", "merger"},
        ),
        ("prompt: Write., persona: writer, merge: {conflicts: agent}", {"writer"}),
    ],
)
def test_the_personas_of_a_pipeline(step, names):
    text = f"version: 1\npipelines: {{ship: {{steps: [{{id: all, {step}}}]}}}}\n"
    pipeline = manifest.parse(text).pipelines["ship"]
    assert find_pipeline_personas(pipeline) == {"summarizer", *names}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        (AgentEntry(harness="command"), {"default"}),
        (AgentEntry(harness="command", persona="writer"), {"writer"}),
        (
            AgentEntry(
                harness="command", handover=Handover(compaction=Compaction(persona="clerk"))
            ),
            {"default", "clerk"},
        ),
    ],
)
def test_the_personas_of_a_worker(entry, names):
    assert find_worker_personas(entry) == {"summarizer", *names}


def test_other_personas_are_removed():
    both = manifest.parse("version: 1\npersonas: {one: {adapter: codex}, two: {adapter: codex}}\n")
    assert [*keep_personas(both, {"two", "three"}).personas] == ["two"]


def test_the_personas_of_a_manifest():
    text = """\
version: 1
agents:
  one: {harness: [codex, {use: claude-code, persona: second}], persona: first, review: critic}
  two: {harness: codex}
  three: {harness: [{use: codex, persona: third}, claude-code]}
pipelines: {ship: {steps: [{id: all, prompt: Write., persona: writer}]}}
"""
    read = manifest.parse(text)
    assert find_agent_personas(read.agents["one"]) == {"first", "second", "critic"}
    assert find_agent_personas(read.agents["two"]) == {"default"}
    assert find_agent_personas(read.agents["three"]) == {"third", "default"}
    others = {"first", "second", "third", "critic", "default", "writer", "summarizer"}
    assert find_all_personas(read) == others
