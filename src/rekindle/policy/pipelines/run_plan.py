"""The plan for a pipeline run: its definition with all defaults filled in."""

import msgspec

from rekindle.documents.manifest import Manifest
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.manifest_pipelines import (
    Conflicts,
    Matrix,
    Needs,
    PipelineStep,
    StepMerge,
    StepRetry,
)
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.pipelines.step_context import StepContext
from rekindle.thresholds.pipeline_limits import PIPELINE_CONCURRENCY


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    depends_on: tuple[str, ...] = ()
    is_matrix: bool = False
    attempts: int = 1
    """Number of failed checks after which a worker counts as failed."""
    max_concurrency: int = PIPELINE_CONCURRENCY
    fail_fast: bool = False
    """Whether the step stops all its workers once it can no longer succeed."""
    needs: Needs = "all"
    optional: bool = False
    """Whether later steps run without this step's changes if it fails."""
    conflicts: Conflicts = "person"
    harness: str = ""
    """Agent CLI that the workers use; empty for a command, which has no usage limits."""
    merge_harness: str = ""
    """Agent CLI that the merging worker uses."""
    budget: Budget | None = None
    """Caps on each worker."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    pipeline: str
    steps: tuple[StepPlan, ...]
    """The steps in manifest order, which is also the order in which they are merged."""
    budget: Budget | None = None
    """Caps on the whole run."""

    def find_step(self, step: str) -> StepPlan:
        return next(other for other in self.steps if other.id == step)


def make_plan(manifest: Manifest, marked: MarkedData, name: str) -> RunPlan:
    """Return the plan for a pipeline that has passed the checks."""
    pipeline = manifest.pipelines[name]
    contexts = [
        StepContext(manifest, marked, name, number) for number in range(len(pipeline.steps))
    ]
    return RunPlan(
        pipeline=name,
        steps=tuple(_plan_step(context, context.step) for context in contexts),
        budget=pipeline.budget,
    )


def _plan_step(context: StepContext, step: PipelineStep) -> StepPlan:
    matrix = step.matrix or Matrix(source="")
    merge = step.merge or StepMerge()
    harness = "" if step.run is not None else context.find_harness(step.persona) or ""
    merging = context.find_harness(merge.persona or step.persona) or ""
    return StepPlan(
        id=step.id,
        depends_on=tuple(step.depends_on or ()),
        is_matrix=step.matrix is not None,
        attempts=(step.retry or StepRetry()).attempts or 1,
        max_concurrency=matrix.max_concurrency or PIPELINE_CONCURRENCY,
        fail_fast=bool(matrix.fail_fast),
        needs=matrix.needs or "all",
        optional=bool(step.optional),
        conflicts=merge.conflicts or "person",
        harness=harness,
        merge_harness=merging if merge.conflicts == "agent" else "",
        budget=step.budget,
    )
