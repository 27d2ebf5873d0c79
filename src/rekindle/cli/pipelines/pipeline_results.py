"""`rekindle pipeline diff` and `rekindle pipeline merge`: show or merge a run's result."""

import click

from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json
from rekindle.cli.pipelines.pipeline_logs import require_place
from rekindle.cli.pipelines.run_selection import (
    add_run_arguments,
    open_results,
    step_option,
    worker_option,
)
from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.documents.screens import pull_request_body
from rekindle.errors import CheckFailedError, MergeConflictError, NotFoundError, UsageError
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.pipelines.step_status import MERGE_KEYS, DoneStep, find_statuses
from rekindle.system.git import pull_request
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines import result_merge, result_push
from rekindle.wiring.pipelines.read_runs import RunReading
from rekindle.wiring.pipelines.result_merge import ResultMerge


@click.command(short_help="Show what a run, a step or a worker changed.")
@add_run_arguments
@step_option
@worker_option
@click.option("--stat", is_flag=True, help="List only the changed files.")
def diff(
    pipeline: str, number: int | None, step: str | None, worker: str | None, stat: bool
) -> None:
    """Show what changed in the last run of pipeline NAME, or in run N.

    With --step, show only the changes from that step, once it is done. Add --worker to show the
    changes from a single worker, even if it failed.
    """
    if worker is not None and step is None:
        raise UsageError("--worker needs --step", hint="add the id of the worker's step: --step ID")
    project, runs = open_results()
    reading = runs.find(
        pipeline,
        number,
        lambda reading: step is not None or bool(reading.row.commit),
        "that is done",
    )
    require_place(reading, step, worker)
    before, after = _find_commits(reading, step, worker)
    text = result_merge.compare_commits(project, before, after, stat=stat)
    if not text:
        echo("No file differs.")
        return
    for line in text.splitlines():
        echo(line)


@click.command(short_help="Merge a run's result into your branch.")
@add_run_arguments
@click.option("--check", is_flag=True, help="Show the changes or conflicts without merging.")
@click.option(
    "--pr", is_flag=True, help="Push the result and create a pull request with `gh` instead."
)
@json_option
def merge(pipeline: str, number: int | None, check: bool, pr: bool, as_json: bool) -> None:
    """Merge the result from the last run of pipeline NAME, or from run N, into your branch.

    If there is a conflict, or if the merge would overwrite one of your changes, your checkout does
    not change. With --pr, Rekindle pushes the result to your branch's remote instead, and creates a
    pull request for your branch with `gh`.
    """
    if check and pr:
        raise UsageError("--check and --pr cannot be used together", hint="use only one of them")
    project, runs = open_results(operator=True)
    reading = runs.find(pipeline, number, lambda reading: bool(reading.row.commit), "that is done")
    _require_result(reading)
    if pr:
        _create_pull_request(project, reading, as_json=as_json)
        return
    planned = result_merge.plan_result_merge(project, reading.row.branch, reading.row.commit)
    if planned.commits and not planned.conflicts and not check:
        result_merge.bring_in_result(project, planned)
    if as_json:
        print_json(_make_row(reading, planned, is_merged=not check and not planned.conflicts))
    if planned.conflicts:
        raise MergeConflictError(
            planned.branch,
            planned.target,
            tuple(map(to_one_line, planned.conflicts)),
            hint=f"resolve them with `git merge {planned.branch}`",
        )
    if not as_json:
        _print_merge(reading, planned, check=check)


def _find_commits(reading: RunReading, step: str | None, worker: str | None) -> tuple[str, str]:
    """Return the commits before and after the run, a step or a worker."""
    if step is None:
        _require_result(reading)
        return reading.definition.base, reading.row.commit
    begins = [
        event
        for event in reading.events
        if isinstance(event, WorkerBegan) and event.step == step
        # The worker that merges a step's inputs starts before all of them are merged.
        if event.worker not in MERGE_KEYS.values()
    ]
    if worker is not None:
        after = reading.state.find_worker(step, worker).commit
        words = f"the worker {worker} of the step {step} has not ended an attempt yet"
    else:
        status = find_statuses(reading.definition.plan, reading.state)[step]
        after = status.commit if isinstance(status, DoneStep) else ""
        words = f"the step {step} is not done"
    if not after or not begins:
        workers = ", ".join(
            key
            for (place, key), state in reading.state.workers.items()
            if place == step and key
            if state.commit
        )
        name, number = reading.row.pipeline, reading.row.run
        hint = f"`rekindle pipeline status {name} {number}` shows how far it is"
        if workers and worker is None:
            hint = f"--worker shows the changes of one worker: {workers}"
        raise NotFoundError(words, hint=hint)
    return begins[0].commit, after


def _require_result(reading: RunReading) -> None:
    row = reading.row
    if not row.commit:
        command = row.command or f"rekindle pipeline status {row.pipeline} {row.run}"
        raise CheckFailedError(
            f"run {row.run} of {row.pipeline} has no result: it is {row.state}",
            hint=f"`{command}`; `--step ID` of `pipeline diff` shows the steps that are done",
        )


def _print_merge(reading: RunReading, planned: ResultMerge, *, check: bool) -> None:
    row = reading.row
    if not planned.commits:
        echo(f"Nothing to merge: {planned.target} has the result of {row.pipeline} {row.run}.")
        return
    for line in planned.stat.splitlines():
        echo(line)
    commits = render_count(planned.commits, "commit")
    did = f"· {commits} of {planned.branch} can be merged" if check else f"✓ merged {commits}"
    echo(f"{did} into {planned.target}")
    if not check:
        echo(
            f"Next: `rekindle pipeline clean {row.pipeline} {row.run}` removes the folders of "
            "its workers."
        )


def _create_pull_request(project: Project, reading: RunReading, *, as_json: bool) -> None:
    row, text = reading.row, open_store(project).redaction.text(reading.definition.input)
    target = result_push.find_push_target(project)
    program = pull_request.require_program(
        f"install it, or create the pull request yourself: git push {target.remote} {row.branch}"
    )
    folder = result_push.push_result(project, target, row.branch, row.commit)
    if not as_json:
        echo(f"✓ pushed {row.branch} to {target.remote}")
    url = pull_request.create_pull_request(
        program,
        folder,
        head=row.branch,
        base=target.base,
        title=pull_request_body.render_title(row, text),
        body=pull_request_body.render_body(row, text),
    )
    if as_json:
        print_json(
            {
                "pipeline": row.pipeline,
                "run": row.run,
                "branch": row.branch,
                "target": target.base,
                "is_merged": False,
                "commit": row.commit,
                "url": url,
            }
        )
    else:
        echo(f"✓ created {url}")


def _make_row(reading: RunReading, planned: ResultMerge, *, is_merged: bool) -> dict[str, object]:
    return {
        "pipeline": reading.row.pipeline,
        "run": reading.row.run,
        "branch": planned.branch,
        "target": planned.target,
        "commits": planned.commits,
        "is_merged": is_merged and planned.commits > 0,
        "commit": planned.commit or None,
        "conflicts": list(planned.conflicts),
    }
