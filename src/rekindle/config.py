"""Finding and reading rekindle.yaml."""

from pathlib import Path

import msgspec

from rekindle.documents import manifest
from rekindle.documents.manifest import FILE, Manifest
from rekindle.documents.yamltext import Marked
from rekindle.errors import ManifestError, ManifestMissingError, UnknownAgentError, storing
from rekindle.policy import settings
from rekindle.policy.settings import Settings
from rekindle.system import disk


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
        if (folder / FILE).is_file():
            return folder
    return None


def load(start: Path) -> Project:
    folder = find(start)
    if folder is None:
        raise ManifestMissingError(str(start))
    found, marked = manifest.read(read_text(folder))
    return Project(folder, found, marked, settings.resolve(marked))


def read_text(folder: Path) -> str:
    with storing(folder / FILE):
        data = (folder / FILE).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"is not UTF-8 text (byte {error.start})") from error


def write_new(folder: Path, text: str) -> None:
    """Put a manifest where there is none, or a changed one in the place of the old."""
    manifest.read(text)  # never write what we would refuse to read
    disk.replace(folder / FILE, text.encode())
    with storing(folder / FILE):
        (folder / FILE).chmod(0o644)
