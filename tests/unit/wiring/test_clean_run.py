"""Which work of a run its result contains."""

from types import SimpleNamespace

import pytest

import worktrees
from rekindle.documents.manifest_pipelines import PipelineStep
from rekindle.policy.pipelines.pipeline_state import PipelineState, WorkerState
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.clean_run import is_work_contained


@pytest.mark.parametrize(
    ("written", "is_contained"), [("sub/items.json", True), ("items.json", False)]
)
def test_outputs_of_a_project_in_a_subfolder_are_not_missing_in_the_result(
    tmp_path, written, is_contained
):
    def git(*words):
        return worktrees.git(tmp_path, *words).decode().strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "result")
    result = git("rev-parse", "HEAD")
    (tmp_path / "sub").mkdir()
    (tmp_path / written).write_text("[]\n")
    git("add", "-A")
    git("commit", "-qm", "work with outputs")
    step = PipelineStep(id="plan", outputs={"items": "items.json"})
    reading = SimpleNamespace(
        row=SimpleNamespace(commit=result),
        state=PipelineState(workers={("plan", ""): WorkerState(commit=result)}),
        definition=SimpleNamespace(find_step=lambda _: step),
    )
    source, tip = WorkingCopy(tmp_path), git("rev-parse", "HEAD")
    found = is_work_contained(source, reading, ("plan", ""), tip, tmp_path / "sub")
    assert found == is_contained
