"""`rekindle pipeline` commands for a project on a fleet."""

import time

from rekindle.cli.main import INTERRUPTED
from rekindle.cli.options import open_fleet, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.cli.pipelines.pipeline_logs import follow_run
from rekindle.cli.pipelines.pipeline_status import (
    make_json,
    print_all,
    render_lines,
    watch_row,
)
from rekindle.cli.pipelines.run_log import RunLog
from rekindle.cli.pipelines.run_outcomes import (
    finish_run,
    is_resumable,
    print_continues,
    print_stopped,
    refuse_resume,
)
from rekindle.cli.trust_prompt import ensure_trust, print_changes
from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import PipelineResumed, PipelineStopped
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import UsageError
from rekindle.fleet.commands.fetch_run import FetchedRuns
from rekindle.fleet.commands.fleet_run_events import FleetRunEvents
from rekindle.fleet.commands.fleet_runs import FleetRuns
from rekindle.policy.pipelines.pipeline_state import stamp_command
from rekindle.system import clock
from rekindle.thresholds.screens import STOP_POLL_SECONDS, STOP_WAIT_SECONDS
from rekindle.wiring.access.trust_checks import accept_pipeline
from rekindle.wiring.pipelines.clean_run import CleanedRun
from rekindle.wiring.pipelines.read_runs import RunReading


def start_on_fleet(
    project: Project, pipeline: str, text: str, *, detach: bool, trust: bool, as_json: bool
) -> int:
    """Start a run on the fleet, and show its progress."""
    require_operator(project)
    ensure_trust(project, trust=trust)
    print_changes(pipeline, accept_pipeline(project, pipeline))
    runs = _open_runs(project)
    row = runs.start(pipeline, text).row
    if not detach:
        return _follow(runs, row, as_json=as_json)
    if as_json:
        print_json({"pipeline": row.pipeline, "run": row.run})
    else:
        echo(f"✓ started {row.pipeline} {row.run} on the fleet")
        echo(f"Next: `rekindle pipeline status {row.pipeline} {row.run} --watch`.")
    return 0


def show_on_fleet(
    project: Project, pipeline: str | None, number: int | None, *, watch: bool, as_json: bool
) -> None:
    """Show all runs on the fleet, or one of them."""
    runs = _open_runs(project)
    if pipeline is None:
        print_all([reading.row for reading in runs.read_all()], as_json=as_json)
        return
    row = runs.find(pipeline, number).row
    if as_json:
        print_json({"runs": [make_json(row)]})
    elif watch:
        watch_row(lambda: runs.read(row.pipeline, row.run).row)
    else:
        for line in render_lines(row):
            echo(*line)


def stop_on_fleet(project: Project, pipeline: str, number: int | None) -> None:
    """Stop a run on the fleet, and wait up to a limit for it to end."""
    require_operator(project)
    runs = _open_runs(project)
    reading = runs.find(pipeline, number, lambda reading: not reading.row.is_over, "to stop")
    row = reading.row
    if not row.is_over:
        ts = stamp_command(reading.state, clock.read_clock())
        runs.submit(row, PipelineStopped(ts=ts))
        deadline = time.monotonic() + STOP_WAIT_SECONDS
        row = runs.read(row.pipeline, row.run).row
        while not row.is_over and time.monotonic() < deadline:
            time.sleep(STOP_POLL_SECONDS)
            row = runs.read(row.pipeline, row.run).row
        print_stopped(row)
        return
    echo(f"· {row.pipeline} {row.run} is not running: it is {row.state}")


def resume_on_fleet(
    project: Project,
    pipeline: str,
    number: int | None,
    raised: dict[str, float],
    *,
    detach: bool,
    trust: bool,
) -> int:
    """Continue a run on the fleet that was stopped or reached its budget."""
    require_operator(project)
    ensure_trust(project, trust=trust)
    runs = _open_runs(project)
    reading = runs.find(pipeline, number, lambda reading: is_resumable(reading.row), "to resume")
    row = reading.row
    refuse_resume(row, raised)
    ts = stamp_command(reading.state, clock.read_clock())
    runs.submit(row, PipelineResumed(ts=ts, budget=raised))
    if detach:
        echo(f"✓ {row.pipeline} {row.run} continues")
        return 0
    return _follow(runs, row, as_json=False)


def open_events_on_fleet(
    project: Project, pipeline: str, number: int | None
) -> tuple[RunReading, FleetRunEvents]:
    """Return a run on the fleet and its logs."""
    runs = _open_runs(project)
    reading = runs.find(pipeline, number)
    return reading, runs.open_events(reading.row)


def clean_on_fleet(
    project: Project, pipeline: str, number: int | None, *, every: bool
) -> tuple[RunRow, CleanedRun]:
    """Remove a finished run's workers and other leftovers from the fleet."""
    require_operator(project)
    runs = _open_runs(project)
    reading = runs.find(pipeline, number, lambda reading: reading.row.is_over, "that is over")
    return reading.row, runs.clean(reading, every=every)


def open_results_on_fleet(project: Project, *, operator: bool) -> FetchedRuns:
    """Return the project's runs. Finding a run also fetches its commits."""
    if operator:
        require_operator(project)
    return FetchedRuns(project, _open_runs(project))


def _open_runs(project: Project) -> FleetRuns:
    fleet = project.settings.fleet
    if fleet is None:
        raise UsageError(
            "rekindle.yaml does not name a fleet", hint="add `fleet: {address: HOST:PORT}`"
        )
    return FleetRuns(project, fleet, open_fleet(project, fleet))


def _follow(runs: FleetRuns, row: RunRow, *, as_json: bool) -> int:
    """Show a run until it ends, and return the exit code. Ctrl-C leaves it running."""
    try:
        if as_json:
            follow_run(RunLog(runs.open_events(row)), as_json=True)
            return finish_run(runs.read(row.pipeline, row.run).row)
        last = watch_row(lambda: runs.read(row.pipeline, row.run).row)
    except KeyboardInterrupt:
        print_continues(f"{row.pipeline} {row.run}")
        return INTERRUPTED
    return finish_run(last)
