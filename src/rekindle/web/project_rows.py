"""Read the agents of all projects of the user, and read again only what has changed."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import NotFoundError, RekindleError
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.operator.build_row import build_broken_row
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock
from rekindle.system.processes import launch_processes
from rekindle.thresholds.web_limits import UI_BATCH_SECONDS, UI_PROJECTS_SECONDS
from rekindle.web.web_row import encode_row
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store


class WebProject:
    """One project, as it was when its manifest was last read."""

    def __init__(self, folder: Path) -> None:
        self.stamp = stamp_manifest(folder)
        self.project: Project = config.load_project(folder)
        self.redaction = Redaction(tuple(self.project.manifest.redact.allow))
        self.store: FileStore = open_store(self.project)
        runtime = self.project.settings.runtime
        self._reader = RowReader(
            self.store,
            self.project.manifest.agents,
            runtime,
            clock.read_clock,
            zone=clock.find_zone(runtime.brief.zone) if runtime.brief.zone else None,
            is_alive=launch_processes.is_alive,
        )
        self._encoded: dict[str, tuple[AgentRow, bytes]] = {}

    def read(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the project's rows as JSON, each with its key. `name` is the project's name."""
        for agent in self.project.declared_agents:
            row = self._reader.row(agent)
            before, encoded = self._encoded.get(agent, (None, b""))
            if before is not row:
                encoded = encode_row(name, row, self.redaction)
                self._encoded[agent] = row, encoded
            yield f"{name}/{agent}", encoded


class WebProjects:
    """The current project and all other projects that the user trusts on this host."""

    def __init__(self, start: Path | None) -> None:
        """Create the list. `start` is the current project's folder, if there is one."""
        self._start = start
        self._projects: dict[Path, WebProject] = {}
        self._folders: dict[str, Path] = {}
        self._listed = 0.0

    def read(self) -> Iterator[Mapping[str, bytes]]:
        """Yield the rows of all agents in batches."""
        batch: dict[str, bytes] = {}
        began = time.monotonic()
        for name in self.list_names():
            for key, row in self._read_project(name):
                batch[key] = row
                if time.monotonic() - began > UI_BATCH_SECONDS:
                    yield batch
                    batch, began = {}, time.monotonic()
        yield batch

    def list_names(self) -> list[str]:
        """Return the projects' names: the last parts of their paths that are unique."""
        if not self._folders or time.monotonic() - self._listed > UI_PROJECTS_SECONDS:
            own = [self._start] if self._start else []
            folders = list(dict.fromkeys([*own, *trust_checks.list_trusted()]))
            names = name_folders([render_path(folder) for folder in folders])
            self._folders = dict(zip(names, folders, strict=True))
            self._listed = time.monotonic()
        return list(self._folders)

    def find(self, name: str) -> WebProject:
        """Return a project by its name, with its current manifest."""
        if name not in self._folders and name not in self.list_names():
            raise NotFoundError(f"there is no project {name!r}", hint="open the list of all agents")
        return self._open(self._folders[name])

    def _open(self, folder: Path) -> WebProject:
        known = self._projects.get(folder)
        if known is None or known.stamp != stamp_manifest(folder):
            known = self._projects[folder] = WebProject(folder)
        return known

    def _read_project(self, name: str) -> Iterator[tuple[str, bytes]]:
        try:
            yield from self.find(name).read(name)
        except RekindleError as error:
            row = build_broken_row("-", "", str(error), error.hint)
            yield f"{name}/-", encode_row(name, row, Redaction())


def stamp_manifest(folder: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever the manifest does, or None if it cannot be read."""
    try:
        status = (folder / MANIFEST_FILE).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
