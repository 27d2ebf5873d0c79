"""One step is refused for what it says itself."""

import pytest

from rekindle.documents import manifest
from rekindle.errors import ManifestError
from rekindle.policy.pipelines.step_checks import require_valid_step
from rekindle.policy.pipelines.step_context import StepContext

HEAD = """\
version: 1
agents: {trades: {harness: claude-code}}
personas: {builder: {}}
pipelines:
  ship:
    steps:
"""


def check(step):
    parsed, marked = manifest.read_manifest(f"{HEAD}      - {step}\n")
    require_valid_step(StepContext(parsed, marked, "ship", 0), ())


@pytest.mark.parametrize(
    "step",
    ["{id: plan, persona: builder, prompt: Plan it.}", "{id: lint, run: [just, lint]}"],
)
def test_a_step_with_one_task_is_accepted(step):
    assert check(step) is None


@pytest.mark.parametrize(
    "step",
    [
        "{id: plan}",
        "{id: plan, persona: builder, prompt: Plan it., run: [just, lint]}",
        "{id: plan, persona: unknown, prompt: Plan it.}",
        "{id: plan, persona: builder, prompt: 'Do {{ item }}.'}",
    ],
)
def test_a_step_that_cannot_run_is_refused_with_its_line(step):
    with pytest.raises(ManifestError) as raised:
        check(step)
    assert raised.value.line == 7
    assert raised.value.hint
