"""The definition of a run survives JSON, with every key."""

import msgspec

from rekindle.documents import manifest
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import make_plan

TEXT = """\
version: 1
agents: {trades: {harness: claude-code}}
pipelines:
  ship:
    budget: {usd: 30}
    steps:
      - {id: plan, prompt: {file: plan.md}, outputs: {items: items.json}}
      - id: build
        depends_on: [plan]
        prompt: Build {{ item }}.
        handover:
          compaction: {trigger: "token_limit_80%"}
          contract: [{type: test_suite, command: just test}]
        strategy: {matrix: {from: plan.items}}
      - {id: lint, run: just lint, handover: {contract: {type: non_empty_file, source: a}}}
"""


def make_definition():
    parsed, marked = manifest.read_manifest(TEXT)
    return RunDefinition(
        pipeline="ship",
        base="c0ffee",
        definition=parsed.pipelines["ship"],
        plan=make_plan(parsed, marked, "ship"),
        prompts={"plan": "Plan.", "build": "Build {{ item }}."},
    )


def test_a_definition_is_read_as_it_was_written():
    definition = make_definition()
    assert msgspec.json.decode(msgspec.json.encode(definition), type=RunDefinition) == definition


def test_finds_a_step_by_its_id():
    assert make_definition().find_step("lint").run == ["just", "lint"]
