"""All projects that the user trusts on this host, each opened once."""

import time
from pathlib import Path

from rekindle.api.home import Home
from rekindle.api.operator import Operator
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import NotFoundError
from rekindle.stores.folders.private_files import render_path
from rekindle.thresholds.web_limits import UI_PROJECTS_SECONDS
from rekindle.wiring.access import trust_checks


class TrustedHomes:
    """The current project and all other projects that the user trusts on this host."""

    def __init__(self, start: Path | None = None, operator: Operator | None = None) -> None:
        """Create the list. `start` is the current project's folder, if there is one."""
        self._start, self._operator = start, operator
        self._homes: dict[Path, Home] = {}
        self._folders: dict[str, Path] = {}
        self._listed = 0.0

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
        """Return a project by its name.

        Raises:
            NotFoundError: There is no such project.
        """
        if name not in self._folders and name not in self.list_names():
            raise NotFoundError(f"there is no project {name!r}", hint="open the list of all agents")
        folder = self._folders[name]
        if folder not in self._homes:
            self._homes[folder] = Home(folder, self._operator)
        return self._homes[folder]
