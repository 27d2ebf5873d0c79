"""`rekindle pipeline run`, `stop` and `resume`: start, stop and continue runs."""

import time

import click

from rekindle.cli.main import INTERRUPTED
from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json
from rekindle.cli.pipelines.pipeline_logs import follow_run
from rekindle.cli.pipelines.pipeline_status import watch_run
from rekindle.cli.pipelines.run_log import RunLog, StoredEvents
from rekindle.cli.pipelines.run_outcomes import (
    finish_run,
    is_resumable,
    print_continues,
    print_stopped,
    refuse_resume,
)
from rekindle.cli.pipelines.run_selection import (
    add_pipeline_argument,
    add_run_arguments,
    load_current_project,
    open_runs,
)
from rekindle.cli.pipelines.stop_anyway import stop_run_without_manifest
from rekindle.cli.running.stop_command import load_to_stop
from rekindle.cli.trust_prompt import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import PipelineResumed, PipelineStopped
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import ManifestError, NewerSchemaError, UsageError
from rekindle.policy.pipelines.pipeline_state import stamp_command
from rekindle.stores.files import FileStore
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.git.work_status import GitStatus
from rekindle.thresholds.screens import STOP_POLL_SECONDS, STOP_WAIT_SECONDS
from rekindle.wiring.access.trust_checks import accept_pipeline
from rekindle.wiring.pipelines import start_run
from rekindle.wiring.pipelines.ensure_coordinator import CoordinatorKeeper, ensure_coordinator
from rekindle.wiring.pipelines.read_runs import RunReader

_UNITS = ("usd", "tokens", "hours")


@click.command(short_help="Start a pipeline, and show its progress.")
@add_pipeline_argument
@click.argument("text", metavar="[INPUT]", required=False, default="")
@click.option("--detach", is_flag=True, help="Exit as soon as the run has started.")
@trust_option
@json_option
def run(pipeline: str, text: str, detach: bool, trust: bool, as_json: bool) -> int:
    """Start a run of pipeline NAME, and show its progress until it is over.

    INPUT is the text for `{{ input }}` in prompts. The run starts from your last commit, so it does
    not include uncommitted changes. It does not change your checkout. The result is a branch, which
    you can merge with `rekindle pipeline merge`.

    If you press Ctrl-C, the run continues in the background. Use `rekindle pipeline stop` to stop
    it. With --json, Rekindle prints each event as it happens, like `rekindle pipeline logs --json`.
    """
    project = load_current_project()
    project.require_pipeline(pipeline)
    _note_uncommitted(project, pipeline)
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return fleet_pipelines.start_on_fleet(
            project, pipeline, text, detach=detach, trust=trust, as_json=as_json
        )
    store, reader = open_runs(project, operator=True)
    ensure_trust(project, trust=trust)
    print_changes(pipeline, accept_pipeline(project, pipeline))
    folder = start_run.start_run(project, pipeline, text)
    ensure_coordinator(project, folder)
    if detach:
        row = reader.read(folder).row
        if as_json:
            print_json({"pipeline": row.pipeline, "run": row.run})
        else:
            echo(f"✓ started {row.pipeline} {row.run}")
            echo(f"Next: `rekindle pipeline status {row.pipeline} {row.run} --watch`.")
        return 0
    return _follow(project, reader, store, folder, as_json=as_json)


@click.command(short_help="Stop a run and its workers.")
@add_run_arguments
def stop(pipeline: str, number: int | None) -> None:
    """Stop the current run of pipeline NAME, or run N, along with its workers.

    Rekindle keeps the work that is already done. To continue the run, use `rekindle pipeline
    resume`.
    """
    try:
        project = load_to_stop()
    except (ManifestError, NewerSchemaError) as error:
        stop_run_without_manifest(pipeline, number, error)
        return
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        fleet_pipelines.stop_on_fleet(project, pipeline, number)
        return
    _, reader = open_runs(project, operator=True)
    reading = reader.find(pipeline, number, lambda reading: not reading.row.is_over, "to stop")
    row = reading.row
    if row.is_over:
        echo(f"· {row.pipeline} {row.run} is not running: it is {row.state}")
        return
    reading.folder.submit(PipelineStopped(ts=stamp_command(reading.state, clock.read_clock())))
    ensure_coordinator(project, reading.folder)
    print_stopped(_await_end(reader, reading.folder))


@click.command(short_help="Resume a run that was stopped or reached its budget.")
@add_run_arguments
@click.option(
    "--budget",
    "caps",
    metavar="UNIT=CAP",
    multiple=True,
    help="New limit for the whole run, such as usd=40, tokens=5000000 or hours=8.",
)
@click.option("--detach", is_flag=True, help="Exit as soon as the run has resumed.")
@trust_option
def resume(
    pipeline: str, number: int | None, caps: tuple[str, ...], detach: bool, trust: bool
) -> int:
    """Resume the last stopped run of pipeline NAME, or run N, and show its progress.

    If the run has reached its budget, use --budget to raise it. This command also restarts a
    coordinator that was killed, and accepts changes to rekindle.yaml.
    """
    raised = _parse_caps(caps)
    project = load_current_project()
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return fleet_pipelines.resume_on_fleet(
            project, pipeline, number, raised, detach=detach, trust=trust
        )
    store, reader = open_runs(project, operator=True)
    reading = reader.find(pipeline, number, lambda reading: is_resumable(reading.row), "to resume")
    refuse_resume(reading.row, raised)
    ensure_trust(project, trust=trust)
    start_run.accept_settings(project, reading.folder)
    for worker, changes in start_run.accept_workers(project, store, reading.folder):
        print_changes(worker, changes)
    if reading.row.is_over or reading.state.is_stopped or raised:
        ts = stamp_command(reading.state, clock.read_clock())
        reading.folder.submit(PipelineResumed(ts=ts, budget=raised))
    ensure_coordinator(project, reading.folder)
    if detach:
        echo(f"✓ {pipeline} {reading.folder.run} continues")
        return 0
    return _follow(project, reader, store, reading.folder, as_json=False)


def _note_uncommitted(project: Project, pipeline: str) -> None:
    """Warn the user if the run does not include uncommitted files."""
    if project.manifest.pipelines[pipeline].base:
        return
    if changed := GitStatus(str(project.path)).changed():
        words = "1 file is" if len(changed) == 1 else f"{len(changed)} files are"
        echo(
            f"! {words} not committed, and not part of the run. To include your changes: "
            "`git add -A && git commit`",
            err=True,
        )


def _follow(
    project: Project, reader: RunReader, store: FileStore, folder: RunFolder, *, as_json: bool
) -> int:
    """Show a run until it ends, and return the exit code. Ctrl-C leaves it running."""
    name = f"{folder.pipeline} {folder.run}"
    keeper = CoordinatorKeeper(project, folder)
    try:
        if as_json:
            run_log = RunLog(StoredEvents(store, folder))
            follow_run(run_log, as_json=True, keep=keeper.check)
            row = reader.read(folder).row
        else:
            row = watch_run(reader, folder, keeper.check)
    except KeyboardInterrupt:
        print_continues(name)
        return INTERRUPTED
    return finish_run(row)


def _await_end(reader: RunReader, folder: RunFolder) -> RunRow:
    """Wait up to a limit for a run to end, and return its row."""
    deadline = time.monotonic() + STOP_WAIT_SECONDS
    while not (row := reader.read(folder).row).is_over and time.monotonic() < deadline:
        time.sleep(STOP_POLL_SECONDS)
    return row


def _parse_caps(caps: tuple[str, ...]) -> dict[str, float]:
    """Return the limits in `--budget` options, by unit."""
    parsed: dict[str, float] = {}
    for cap in caps:
        unit, _, amount = cap.partition("=")
        try:
            parsed[unit] = float(amount)
        except ValueError:
            parsed[unit] = 0.0
        if unit not in _UNITS or not 0 < parsed[unit] < float("inf"):
            raise UsageError(
                f"{cap!r} is not a budget",
                hint=f"use one of {', '.join(_UNITS)} and a number, such as --budget usd=40",
            )
    return parsed
