"""Names of the branches and refs that pipeline runs create in the user's repository."""

from rekindle.documents.pipelines.pipeline_events import MergeStage


def name_result_branch(pipeline: str, run: int) -> str:
    """Return the name of the branch with a run's result."""
    return f"rekindle/{pipeline}/{run}"


def name_merge_branch(pipeline: str, run: int, step: str, stage: MergeStage) -> str:
    """Return the branch on which a person resolves merge conflicts of a step or of the run."""
    place = f"{step}-inputs" if stage == "inputs" else step or "result"
    return f"{name_result_branch(pipeline, run)}-{place}"


def make_run_refs(pipeline: str, run: int) -> str:
    """Return the prefix of the refs that keep a run's commits."""
    return f"refs/rekindle/pipelines/{pipeline}/{run}/"


def render_fetch_command(pipeline: str, run: int, branch: str, remote: str) -> str:
    """Return the command that fetches a run's commits and one of its branches."""
    refs = f"{make_run_refs(pipeline, run)}*"
    return f"git fetch {remote} '{refs}:{refs}' {branch}:{branch}"
