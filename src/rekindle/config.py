"""Functions that find and read rekindle.yaml."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle.documents import manifest
from rekindle.documents.manifest import (
    MANIFEST_FILE,
    Manifest,
)
from rekindle.errors import (
    ManifestError,
    ManifestMissingError,
    OversizedError,
    UnknownAgentError,
    UnsafePathError,
    translate_os_errors,
)
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.settings import runtime_settings
from rekindle.policy.settings.runtime_settings import (
    EDIT_LOCK_SECONDS,
    Settings,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks
from rekindle.system.processes import program_search


class Project(msgspec.Struct, frozen=True):
    """A folder with a manifest, and the manifest's contents."""

    path: Path
    manifest: Manifest
    marked: MarkedData
    settings: Settings

    def require_agent(self, name: str) -> str:
        if name not in self.manifest.agents:
            raise UnknownAgentError(name, self.manifest.agents)
        return name


def find_project(start: Path) -> Path | None:
    """Return the nearest folder with a manifest, searching from `start` upwards."""
    for folder in (start, *start.parents):
        with translate_os_errors(folder / MANIFEST_FILE):
            if (folder / MANIFEST_FILE).exists():
                return folder
    return None


def load_project(start: Path) -> Project:
    folder = find_project(start)
    if folder is None:
        raise ManifestMissingError(str(start))
    parsed, marked = manifest.read_manifest(read_manifest_text(folder))
    resolved = runtime_settings.resolve_settings(marked)
    _require_zone(resolved.runtime.brief.zone, marked)
    if resolved.fleet is not None:
        from rekindle.policy.fleet import connection_check  # noqa: PLC0415 - slows every start

        connection_check.require_valid_fleet(resolved.fleet, marked)
    program_search.exclude_folders(folder)
    return Project(folder, parsed, marked, resolved)


def _require_zone(name: str, marked: MarkedData) -> None:
    try:
        if name:
            clock.find_zone(name)
    except LookupError as error:
        raise ManifestError(
            f"there is no time zone {name!r}",
            line=marked.line(("runtime", "brief", "zone")),
            hint="use a name such as Europe/Zurich, or leave `zone` out for this machine's",
        ) from error


def list_agents(folder: Path) -> list[str]:
    """Return the agents in a folder's manifest; empty if the manifest is missing or empty."""
    text = read_manifest_text(folder) if (folder / MANIFEST_FILE).exists() else ""
    return list(manifest.parse(text).agents) if text.strip() else []


def read_manifest_text(folder: Path) -> str:
    try:
        data = durable_files.read_user_file(folder / MANIFEST_FILE, runtime_settings.MANIFEST_BYTES)
    except (OversizedError, UnsafePathError) as error:
        raise ManifestError(error.reason, hint=error.hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"is not UTF-8 text (byte {error.start})") from error


def rewrite_manifest(folder: Path, change: Callable[[str], str]) -> tuple[str, str]:
    """Change the manifest's text under a lock, and return the text before and after the change.

    Without the lock, two concurrent `init` commands would undo each other's change.
    """
    root = RekindleFolder(folder)
    root.make()
    # The manifest may be a symbolic link that the user made; its target is changed.
    path = (folder / MANIFEST_FILE).resolve()
    with file_locks.hold_lock(root.path / "lock", EDIT_LOCK_SECONDS) as lock:
        if lock is None:
            raise ManifestError("another process is changing it", hint="repeat the command")
        durable_files.sweep_temporary(path.parent, of=path.name)
        before = read_manifest_text(folder) if path.exists() else ""
        after = change(before)
        manifest.read_manifest(after)  # never write a manifest that Rekindle would refuse to read
        if after != before:
            with translate_os_errors(path):
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            durable_files.replace_file(path, after.encode(), mode=mode)
    return before, after
