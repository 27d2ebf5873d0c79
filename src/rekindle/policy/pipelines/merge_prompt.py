"""Compose the prompt for a worker that merges conflicting changes."""

from collections.abc import Sequence

from rekindle.documents.pipelines.pipeline_events import MergeStage
from rekindle.policy.pipelines.step_status import Part
from rekindle.policy.pipelines.worker_prompt import render_retry

_TASK = """\
{situation}, and git cannot merge all of their changes.
The current commit contains the changes that it could merge. Merge the others, one after the other,
in this order:
{commands}

For each one: read what both sides changed and why (`git log -p`), and resolve every conflict so
that the intent of both sides is preserved. Do not only choose one side. Leave no conflict markers
(`<<<<<<<`, `=======`, `>>>>>>>`) in any file, then commit the merge before you start the next one.

Do not rebase, squash, reset or cherry-pick, because every commit in the list must be an ancestor of
your last commit. Change nothing that the merges do not need.
"""
_SITUATIONS: dict[MergeStage, str] = {
    "inputs": "Step {step} needs the changes of several earlier steps",
    "workers": "Several workers of step {step} have changed the project",
    "result": "The last steps of the pipeline have changed the project",
}
_SOURCES: dict[MergeStage, str] = {"inputs": "step", "workers": "worker", "result": "step"}


def compose_merge_prompt(
    step: str,
    stage: MergeStage,
    commits: Sequence[Part],
    *,
    attempt: int = 1,
    why: str = "",
) -> str:
    """Return the prompt for a worker that starts from a merge of the other changes.

    `commits` contains the conflicting changes, each with its worker's key or its step's id.
    """
    commands = "\n".join(
        f"{number}. `git merge --no-edit {commit}` (of {_SOURCES[stage]} {source})"
        for number, (source, commit) in enumerate(commits, start=1)
    )
    task = _TASK.format(situation=_SITUATIONS[stage].format(step=step), commands=commands)
    notice = render_retry(attempt, why)
    return f"{task}\n{notice}\n" if notice else task
