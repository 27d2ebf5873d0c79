"""The definition of one pipeline run, which never changes after it is written.

Changes to rekindle.yaml during a run do not affect its steps.
"""

import msgspec

from rekindle.documents.manifest import AgentEntry
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.policy.pipelines.run_plan import RunPlan


class RunDefinition(msgspec.Struct, frozen=True, kw_only=True):
    pipeline: str
    run: int = 0
    """Number of the run, starting at 1; 0 until the run has a folder."""
    base: str
    """Commit that the run starts from."""
    input: str = ""
    """Text for `{{ input }}` in prompts."""
    definition: Pipeline
    plan: RunPlan
    prompts: dict[str, str] = {}
    """Text of each step's prompt, before names in it are replaced."""
    schemas: dict[str, str] = {}
    """Text of each JSON Schema, by its `schema_path`."""

    def find_step(self, step: str) -> PipelineStep:
        return next(other for other in self.definition.steps if other.id == step)


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's agent, which is not listed in rekindle.yaml."""

    step: str
    worker: str = ""
    """Key of the worker; empty if the step has no matrix."""
    attempt: int
    entry: AgentEntry
    commit: str
    """Commit that the worker starts from."""
    seq: int | None = None
    """Position in the agent's log before the attempt was started; None until then."""
