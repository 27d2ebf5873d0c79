"""Let the operator merge changes that git cannot merge, and find the merge."""

from rekindle.documents.pipelines.pipeline_events import MergeStage, StepMerged
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.step_status import find_conflicting
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.run_refs import keep_commit, make_merge_branch, name_merge


class PersonMerges:
    """The merges that the operator makes for one run."""

    def __init__(self, folder: RunFolder, definition: RunDefinition, source: WorkingCopy) -> None:
        self._folder, self._plan, self._source = folder, definition.plan, source

    def prepare(self, state: PipelineState, step: str, stage: MergeStage) -> list[str]:
        """Create the branch for a merge. Return the commands for the operator to run."""
        branch = make_merge_branch(self._folder, step, stage)
        merge = state.merges[step, stage]
        ref = f"refs/heads/{branch}"
        if self._source.find_ref(ref) is None:
            self._source.move(ref, merge.commit)
        conflicting = find_conflicting(self._plan, state, step, stage)
        return [
            f"git checkout {branch}",
            *(f"git merge {commit[:12]}   # {name}" for name, commit in conflicting),
        ]

    def find(self, state: PipelineState, step: str, stage: MergeStage) -> StepMerged | None:
        """Return the merge on the branch, or None if it does not contain all changes."""
        branch = make_merge_branch(self._folder, step, stage)
        tip = self._source.find_ref(f"refs/heads/{branch}")
        merge = state.merges[step, stage]
        wanted = [commit for _, commit in find_conflicting(self._plan, state, step, stage)]
        if tip is None or not self._source.is_kept((*wanted, merge.commit), by=(tip.oid,)):
            return None
        keep_commit(self._source, self._folder, name_merge(step, stage), tip.oid)
        return StepMerged(
            ts=clock.read_clock(),
            step=step,
            stage=stage,
            commit=tip.oid,
            merged=merge.conflicts,
        )
