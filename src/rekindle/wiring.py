"""The composition root: the only module that knows every concrete class."""

from rekindle.config import Project
from rekindle.harnesses import claude_code
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import FileStore
from rekindle.system import clock, host


def open_store(project: Project) -> FileStore:
    return FileStore(
        project.path,
        host=host.identify(),
        settings=project.settings,
        clock=clock.now,
        redaction=Redaction(tuple(project.manifest.redact.allow)),
        harnesses={claude_code.NAME: claude_code.read_hook},
    )
