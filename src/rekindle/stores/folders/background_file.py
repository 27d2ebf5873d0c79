"""Read and write the record of an agent's background processes.

The supervisor ends the processes in this record, so the file is stored outside the workspace, where
the agent cannot change it.
"""

from pathlib import Path

from rekindle.documents.launches import background_record
from rekindle.documents.launches.background_record import BackgroundRecord
from rekindle.errors import StoreError
from rekindle.stores.folders import private_files
from rekindle.system.files import durable_files


def read_background(project: Path, agent: str) -> BackgroundRecord:
    """Return the record of an agent's background processes; empty if it is unreadable."""
    try:
        return background_record.parse(
            durable_files.read_bytes(
                private_files.find_private_project(project).agent(agent).processes
            )
        )
    except StoreError:
        return BackgroundRecord()


def write_background(project: Path, agent: str, record: BackgroundRecord) -> None:
    private = private_files.find_private_project(project).make_agent(agent)
    durable_files.replace_file(private.processes, background_record.render(record))
