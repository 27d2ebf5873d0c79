"""Build the reader for the status rows of a project's agents."""

from rekindle.config import Project
from rekindle.flows.operator.read_rows import RowReader
from rekindle.stores.files import FileStore
from rekindle.system import clock


def make_row_reader(project: Project, store: FileStore) -> RowReader:
    """Return a reader that describes times in the operator's time zone."""
    runtime = project.settings.runtime
    zone = clock.find_zone(runtime.brief.zone) if runtime.brief.zone else None
    return RowReader(
        store, project.manifest.agents, runtime, clock.read_clock, zone=zone, is_alive=is_alive
    )


def is_alive(process: str) -> bool:
    """Return whether a process that a person started is still running."""
    from rekindle.system.processes.launch_processes import is_alive  # noqa: PLC0415 - only sessions without a supervisor need it

    return is_alive(process)
