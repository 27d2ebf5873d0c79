"""Finding and reading rekindle.yaml."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle.documents import manifest
from rekindle.documents.manifest import FILE, Manifest
from rekindle.documents.yamltext import Marked
from rekindle.errors import (
    ManifestError,
    ManifestMissingError,
    OversizedError,
    UnknownAgentError,
    UnsafePathError,
    storing,
)
from rekindle.policy import settings
from rekindle.policy.settings import LOCK_WAIT_SECONDS, Settings
from rekindle.stores.files.layout import Root
from rekindle.system import clock, disk, programs


class Project(msgspec.Struct, frozen=True):
    """A folder with a manifest, and what the manifest says."""

    path: Path
    manifest: Manifest
    marked: Marked
    settings: Settings

    def require_agent(self, name: str) -> str:
        if name not in self.manifest.agents:
            raise UnknownAgentError(name, self.manifest.agents)
        return name


def find(start: Path) -> Path | None:
    """The nearest folder, from `start` upwards, that holds a manifest."""
    for folder in (start, *start.parents):
        with storing(folder / FILE):
            if (folder / FILE).exists():
                return folder
    return None


def load(start: Path) -> Project:
    folder = find(start)
    if folder is None:
        raise ManifestMissingError(str(start))
    found, marked = manifest.read(read_text(folder))
    resolved = settings.resolve(marked)
    _require_zone(resolved.runtime.brief.zone, marked)
    if resolved.fleet is not None:
        from rekindle.policy import connection  # noqa: PLC0415 - every start would pay for it

        connection.require_meant(resolved.fleet, marked)
    programs.exclude(folder)
    return Project(folder, found, marked, resolved)


def _require_zone(name: str, marked: Marked) -> None:
    try:
        if name:
            clock.zone(name)
    except LookupError as error:
        raise ManifestError(
            f"there is no time zone {name!r}",
            line=marked.line(("runtime", "brief", "zone")),
            hint="name one as in Europe/Zurich, or leave `zone` out for this machine's",
        ) from error


def agents_of(folder: Path) -> list[str]:
    """The agents of a folder's manifest; none where it has no manifest, or an empty one."""
    text = read_text(folder) if (folder / FILE).exists() else ""
    return list(manifest.parse(text).agents) if text.strip() else []


def read_text(folder: Path) -> str:
    try:
        data = disk.read_named(folder / FILE, settings.MANIFEST_BYTES)
    except (OversizedError, UnsafePathError) as error:
        raise ManifestError(error.reason, hint=error.hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"is not UTF-8 text (byte {error.start})") from error


def rewrite(folder: Path, change: Callable[[str], str]) -> tuple[str, str]:
    """Change the manifest's text, one at a time; returns the text before and after.

    Two `init` at once would each add to what it read, and the later would undo the earlier.
    """
    root = Root(folder)
    root.make()
    # A manifest that is a link is the user's own arrangement: what it points to is changed.
    path = (folder / FILE).resolve()
    with disk.locked(root.path / "lock", LOCK_WAIT_SECONDS * 10) as lock:
        if lock is None:
            raise ManifestError("somebody else is changing it", hint="repeat the command")
        disk.sweep_temporary(path.parent, of=path.name)
        before = read_text(folder) if path.exists() else ""
        after = change(before)
        manifest.read(after)  # never write what we would refuse to read
        if after != before:
            with storing(path):
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            disk.replace(path, after.encode(), mode=mode)
    return before, after
