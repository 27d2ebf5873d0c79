"""Where the background processes of an agent are recorded: among its private files.

A supervisor ends what the record names, so no agent may write it.
"""

from pathlib import Path

from rekindle.documents import background
from rekindle.documents.background import Record
from rekindle.errors import StoreError
from rekindle.stores import private
from rekindle.system import disk


def read(project: Path, agent: str) -> Record:
    """Return what is recorded of an agent; nothing if it cannot be read."""
    try:
        return background.parse(disk.read(private.of_project(project).agent(agent).processes))
    except StoreError:
        return Record()


def write(project: Path, agent: str, record: Record) -> None:
    found = private.of_project(project).make_agent(agent)
    disk.replace(found.processes, background.render(record))
