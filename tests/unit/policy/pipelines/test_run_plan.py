"""The plan of a run: a pipeline's definition with its defaults."""

from rekindle.documents import manifest
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan, make_plan

TEXT = """\
version: 1
agents: {trades: {harness: claude-code}}
personas: {builder: {adapter: codex}}
pipelines:
  ship:
    budget: {usd: 30}
    steps:
      - {id: plan, prompt: Plan., outputs: {items: items.json}}
      - id: build
        depends_on: [plan]
        persona: builder
        prompt: Build {{ item }}.
        retry: {attempts: 2}
        optional: on
        budget: {usd: 4}
        strategy: {matrix: {from: plan.items, max_concurrency: 3, fail_fast: on, needs: any}}
        merge: {conflicts: agent, persona: default}
      - {id: lint, run: just lint, depends_on: [plan], strategy: {matrix: {from: plan.items}}}
"""


def test_a_plan_has_all_options_and_defaults():
    assert make_plan(*manifest.read_manifest(TEXT), "ship") == RunPlan(
        pipeline="ship",
        steps=(
            StepPlan(id="plan", harness="claude-code", max_concurrency=4),
            StepPlan(
                id="build",
                depends_on=("plan",),
                is_matrix=True,
                attempts=2,
                max_concurrency=3,
                fail_fast=True,
                needs="any",
                optional=True,
                conflicts="agent",
                harness="codex",
                merge_harness="claude-code",
                budget=Budget(usd=4),
            ),
            StepPlan(id="lint", depends_on=("plan",), is_matrix=True, harness=""),
        ),
        budget=Budget(usd=30),
    )
