"""Stop a pipeline run without reading rekindle.yaml, which may be invalid or missing."""

from pathlib import Path

from rekindle.cli.options import find_current_folder
from rekindle.cli.output import echo
from rekindle.cli.running.stop_command import stop_by_locks
from rekindle.documents.pipelines.pipeline_events import PipelineStopped
from rekindle.errors import RekindleError
from rekindle.policy.pipelines.pipeline_state import stamp_command
from rekindle.stores.folders import private_files
from rekindle.stores.pipelines.run_folder import RunFolder, list_runs
from rekindle.system import clock
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.running_agents import RunningAgents


def stop_run_without_manifest(pipeline: str, number: int | None, error: RekindleError) -> None:
    """Stop an open run and its workers. `error` explains why the manifest cannot be used.

    Raises:
        RekindleError: There is no such run, or an agent calls the command.
    """
    found = _find_open_run(pipeline, number)
    if found is None:
        raise error
    path, folder = found
    state, running = folder.read_state(), RunningAgents().find(path)
    workers = [worker.agent for _, worker in state.list_running()]
    refuse_agent_of(path, {*running, *workers}, "rekindle pipeline stop")
    folder.submit(PipelineStopped(ts=stamp_command(state, clock.read_clock())))
    locks = {name: running[name] for name in workers if name in running}
    stop_by_locks(path, locks, error, as_json=False)
    name = f"{pipeline} {folder.run}"
    echo(f"· {name} is stopping: none of its workers is running")
    echo(f"Next: correct or restore rekindle.yaml, then `rekindle pipeline stop {name}`.")


def _find_open_run(pipeline: str, number: int | None) -> tuple[Path, RunFolder] | None:
    """Return the nearest folder with an open run of the pipeline, and the newest such run."""
    here = find_current_folder()
    start = private_files.find_workspace_project(here) or here
    for path in (start, *start.parents):
        for folder in reversed(list_runs(private_files.find_private_project(path), pipeline)):
            if number in {None, folder.run} and folder.is_open():
                return path, folder
    return None
