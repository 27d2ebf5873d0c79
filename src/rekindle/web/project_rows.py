"""Read the agents of all projects of the user, and read again only what has changed."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rekindle.api.home import Home
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import NotFoundError, RekindleError
from rekindle.policy.operator.build_row import build_broken_row
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.folders.private_files import render_path
from rekindle.thresholds.web_limits import (
    UI_BATCH_AGENTS,
    UI_BATCH_SECONDS,
    UI_PROJECTS_SECONDS,
)
from rekindle.web.web_row import encode_row
from rekindle.wiring.access import trust_checks


class WebProjects:
    """The current project and all other projects that the user trusts on this host."""

    def __init__(self, start: Path | None) -> None:
        """Create the list. `start` is the current project's folder, if there is one."""
        self._start = start
        self._homes: dict[Path, Home] = {}
        self._folders: dict[str, Path] = {}
        self._listed = 0.0
        self._encoded: dict[str, tuple[AgentRow, bytes]] = {}

    def read(self) -> Iterator[Mapping[str, bytes]]:
        """Yield the rows of all agents in batches, each row as JSON by its key."""
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

    def find(self, name: str) -> Home:
        """Return a project by its name."""
        if name not in self._folders and name not in self.list_names():
            raise NotFoundError(f"there is no project {name!r}", hint="open the list of all agents")
        folder = self._folders[name]
        if folder not in self._homes:
            self._homes[folder] = Home(folder)
        return self._homes[folder]

    def _read_project(self, name: str) -> Iterator[tuple[str, bytes]]:
        try:
            home = self.find(name)
            redaction, agents = find_redaction(home), home.agents()
            for start in range(0, len(agents), UI_BATCH_AGENTS):
                for row in home.rows(agents[start : start + UI_BATCH_AGENTS]):
                    yield f"{name}/{row.agent}", self._encode(name, row, redaction)
        except RekindleError as error:
            row = build_broken_row("-", "", str(error), error.hint)
            yield f"{name}/-", self._encode(name, row, Redaction())

    def _encode(self, name: str, row: AgentRow, redaction: Redaction) -> bytes:
        key = f"{name}/{row.agent}"
        before, encoded = self._encoded.get(key, (None, b""))
        if before is not row:
            encoded = encode_row(name, row, redaction)
            self._encoded[key] = row, encoded
        return encoded


def find_redaction(home: Home) -> Redaction:
    """Return the rules by which a project's texts are redacted."""
    return Redaction(tuple(home.project.manifest.redact.allow))
