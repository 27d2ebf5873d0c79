"""The store, with everybody who reads hooks. Every command needs it: it imports little."""

from rekindle.config import Project
from rekindle.harnesses import claude_code
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.system import clock, host

HARNESSES: dict[str, Harness] = {claude_code.NAME: claude_code}


def open_store(project: Project) -> FileStore:
    return FileStore(
        project.path,
        host=host.identify(),
        settings=project.settings,
        clock=clock.now,
        harnesses={name: harness.read_hook for name, harness in HARNESSES.items()},
    )
