"""Names of the branches that pipeline runs create in the user's repository."""

from rekindle.documents.pipelines.pipeline_events import MergeStage


def name_result_branch(pipeline: str, run: int) -> str:
    """Return the name of the branch with a run's result."""
    return f"rekindle/{pipeline}/{run}"


def name_merge_branch(pipeline: str, run: int, step: str, stage: MergeStage) -> str:
    """Return the branch on which a person resolves merge conflicts of a step or of the run."""
    place = f"{step}-inputs" if stage == "inputs" else step or "result"
    return f"{name_result_branch(pipeline, run)}-{place}"
