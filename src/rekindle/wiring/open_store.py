"""Open the store and find harnesses. Every command imports this module, so it has few imports."""

from collections.abc import Callable

from rekindle.config import Project
from rekindle.errors import AuditError, ManifestError, StoreError
from rekindle.plugins import (
    Harnesses,
    HookReaders,
)
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import TEXT_BYTES
from rekindle.ports import Harness
from rekindle.stores.audit_trail import AuditTrail
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.files import durable_files

HARNESSES = Harnesses()


def open_store(project: Project, say: Callable[[AuditError], None] | None = None) -> FileStore:
    """Return the project's store. `say` is called with the audit trail's first error."""
    return FileStore(
        project.path,
        host=host.identify_host(),
        settings=project.settings,
        clock=clock.read_clock,
        redaction=Redaction(tuple(project.manifest.redact.allow)),
        harnesses=HookReaders(HARNESSES),
        private=private_files.find_private_project(project.path),
        audit=AuditTrail(project.path, clock=clock.read_clock, say=say or (lambda _: None)),
    )


def find_harness(project: Project, name: str) -> Harness:
    """Return the harness that the manifest names for an agent."""
    harness = project.manifest.agents[name].harness
    if harness not in HARNESSES:
        raise ManifestError(
            f"agent {name}: there is no harness named {harness!r}",
            line=project.marked.line(("agents", name, "harness")),
            hint=f"use one of: {HARNESSES.list_names()}",
        )
    return HARNESSES[harness]


def read_named_file(project: Project, file: str | None, key: str) -> str:
    """Return the text of a file that the manifest names, or "" if it names none."""
    if not file:
        return ""
    if project.floor is not None and not _is_own_file(project, file):
        raise ManifestError(
            f"`{key}:` names a file outside the agent's folders on this host",
            file=file,
            hint=f"correct `{key}:` in rekindle.yaml, and run the agent again",
        )
    try:
        return durable_files.read_user_file(project.path / file, TEXT_BYTES).decode("utf-8")
    except (StoreError, UnicodeDecodeError) as error:
        reason = error.reason if isinstance(error, StoreError) else "is not UTF-8 text"
        raise ManifestError(
            f"cannot be read: {reason}",
            file=file,
            hint=f"create it, or correct `{key}:` in rekindle.yaml",
        ) from error


def _is_own_file(project: Project, file: str) -> bool:
    """Return whether a file is in the project, also if its path contains links."""
    return (project.path / file).resolve().is_relative_to(project.path.resolve())
