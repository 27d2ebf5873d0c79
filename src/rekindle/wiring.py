"""The composition root: the only module that knows every concrete class."""

from collections.abc import Callable

from rekindle.config import Project
from rekindle.errors import AuditError
from rekindle.harnesses import claude_code
from rekindle.stores.files import FileStore
from rekindle.stores.git import AuditTrail
from rekindle.system import clock, host


def open_store(project: Project, say: Callable[[AuditError], None] | None = None) -> FileStore:
    """The project's store; `say` is told, once, what stands in the way of the audit trail."""
    return FileStore(
        project.path,
        host=host.identify(),
        settings=project.settings,
        clock=clock.now,
        harnesses={claude_code.NAME: claude_code.read_hook},
        audit=AuditTrail(project.path, clock=clock.now, say=say or (lambda _: None)),
    )
