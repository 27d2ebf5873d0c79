"""A project folder, as programs and screens use it."""

import os
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, cast

from rekindle import config
from rekindle.api.agent import Agent
from rekindle.api.agent_store import AgentStore, open_agent_store, read_known
from rekindle.api.fleet_alternatives import refuse_fleet
from rekindle.api.fleet_rows import read_fleet_rows
from rekindle.api.operator import Operator
from rekindle.config import Project
from rekindle.documents.events import QuestionAsked
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.morning_page import MorningPage
from rekindle.documents.search.search_types import SearchQuery
from rekindle.errors import (
    AuditError,
    BusyError,
    ManifestError,
    ManifestMissingError,
    NewerSchemaError,
    RekindleError,
    UsageError,
)
from rekindle.flows.operator.read_rows import RowReader
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock
from rekindle.system.files import file_status
from rekindle.thresholds.screens import SHOWN_LAST
from rekindle.wiring.row_setup import make_row_reader

if TYPE_CHECKING:
    from rekindle.wiring.search_setup import SearchResult


class Home:
    """A project with its agents, on this host or on a fleet.

    All methods can be called from several threads. If rekindle.yaml changes, the next call uses the
    new version. Close it after use, or use it in a `with` statement.
    """

    def __init__(self, folder: str | Path = ".", operator: Operator | None = None) -> None:
        """Open the project that contains a folder. This reads rekindle.yaml and nothing else."""
        start = Path(folder).absolute()
        path = config.find_project(start)
        if path is None:
            raise ManifestMissingError(str(start))
        self.path = path
        self.operator = operator or Operator()
        self._lock = RLock()
        self._opened = self._read_project()

    @property
    def name(self) -> str:
        """Return the name of the project's folder."""
        return os.fsencode(self.path.name).decode("utf-8", "replace")

    @property
    def project(self) -> Project:
        return self._open().project

    @property
    def store(self) -> AgentStore:
        with self._lock:
            return self._open().store

    def _open(self) -> "_OpenProject":
        with self._lock:
            if self._opened.stamp != _make_stamp(self.path):
                opened = self._read_project()
                self._opened.close()
                self._opened = opened
            return self._opened

    def _read_project(self) -> "_OpenProject":
        # Read the stamp first. If the manifest changes in between, the next call reads it again.
        stamp = _make_stamp(self.path)
        project = config.load_project(self.path)
        if project.path != self.path:  # the manifest is gone, but a folder above has one
            raise ManifestError(
                f"it is gone from {self.path}", hint="restore it, or connect to another folder"
            )
        return _OpenProject(project, self.operator, stamp)

    def open_last(self) -> "_OpenProject":
        """Return the project, as it was last read if rekindle.yaml is broken now.

        Raises:
            ManifestError: The folder is gone.
        """
        with self._lock:
            try:
                return self._open()
            except (ManifestError, NewerSchemaError):
                if not self.path.is_dir():
                    raise
                return self._opened

    def close(self) -> None:
        """Close the connection to the fleet's engine, if there is one."""
        with self._lock:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def require_files(self, command: str) -> FileStore:
        """Return the files on this host.

        Raises:
            UsageError: The agents are on a fleet, where this does not work.
        """
        refuse_fleet(self.project, f"rekindle {command}")
        return cast(FileStore, self.store)

    def agents(self) -> list[str]:
        """Return the agents in rekindle.yaml, and the running workers of pipeline runs."""
        project = self.project
        if not project.workers:
            return project.declared_agents
        from rekindle.wiring.pipelines.read_runs import list_running_workers  # noqa: PLC0415 - rarely needed

        return [*project.declared_agents, *list_running_workers(project)]

    def agent(self, name: str) -> Agent:
        """Return a handle for an agent. This reads nothing.

        Raises:
            UnknownAgentError: There is no agent with this name.
        """
        return Agent(self, self.project.require_agent(name))

    def rows(self, names: Sequence[str] = ()) -> list[AgentRow]:
        """Return the state of the named agents, or of all agents.

        Raises:
            UnknownAgentError: There is no agent with one of these names.
        """
        with self._lock:
            opened = self._open()
            named = [opened.project.require_agent(name) for name in names]
            return opened.read_rows(named or self.agents())

    def questions(self) -> list[QuestionAsked]:
        """Return the open questions of all agents, oldest first."""
        from rekindle.policy.operator.questions import list_open_questions  # noqa: PLC0415 - few need it

        now = clock.read_clock()
        opened = [
            question
            for name in self.agents()
            for question in list_open_questions(read_known(self.store, name), now)
        ]
        return sorted(opened, key=lambda question: question.ts)

    def search(
        self,
        words: str | Sequence[str] = (),
        *,
        file: str = "",
        agents: Sequence[str] = (),
        since: datetime | None = None,
        most: int = SHOWN_LAST,
    ) -> "SearchResult":
        """Find turns, relays and decisions that contain all words, newest first.

        The result can be iterated over. Its `damaged` names what could not be read.
        """
        from rekindle.policy.search.search_query import render_match  # noqa: PLC0415 - needs sqlite
        from rekindle.wiring import search_setup, transcript_setup  # noqa: PLC0415 - as above

        match = render_match((words,) if isinstance(words, str) else tuple(words), file)
        if not match:
            raise UsageError(
                "there is no word to search for",
                hint="name words or a file: `rekindle search WORDS`, `rekindle search --file PATH`",
            )
        project, files = self.project, self.require_files("search")
        agents = [project.require_agent(name) for name in agents]
        for name in agents or project.manifest.agents:
            try:
                transcript_setup.archive_agent(project, files, name)
            except BusyError:
                continue  # another process is archiving, so use the existing archive
            except RekindleError as error:
                self.operator.tell(f"Note: {name}: {error}")
        query = SearchQuery(match=match, agents=agents, since=since, most=most)
        result = search_setup.search(project, files, query)
        for damage in result.damaged:
            self.operator.tell(f"Note: {damage}")
        return result

    def morning(self) -> MorningPage:
        """Return what each agent has done, why it stopped, what comes next and what it cost."""
        from rekindle.wiring.brief_setup import make_morning_builder  # noqa: PLC0415 - slow to load

        project, files = self.project, self.require_files("brief --all")
        return make_morning_builder(project, files).page(self.name, project.declared_agents)


class _OpenProject:
    """A project as it was read, with its store and its rows."""

    def __init__(self, project: Project, operator: Operator, stamp: object) -> None:
        self.project, self._operator, self.stamp = project, operator, stamp

    @cached_property
    def store(self) -> AgentStore:
        if self.project.settings.fleet is not None:
            self._operator.ensure_trust(self.project)

        def note(error: AuditError) -> None:
            self._operator.tell(f"Note: {error} (→ {error.hint})")

        return open_agent_store(
            self.project, note, lambda words: self._operator.tell(f"Note: {words}")
        )

    @cached_property
    def _reader(self) -> RowReader:
        return make_row_reader(self.project, cast(FileStore, self.store))

    def read_rows(self, names: list[str]) -> list[AgentRow]:
        store: Any = self.store
        if isinstance(store, FileStore):
            return [self._reader.row(name) for name in names]
        readings = read_fleet_rows(self.project, store, names, clock.read_clock())
        return [reading.row for reading in readings]

    def close(self) -> None:
        if "store" in self.__dict__ and hasattr(self.store, "close"):
            self.store.close()


def _make_stamp(folder: Path) -> object:
    """Return a value that changes with the manifest, and with the workers of pipeline runs."""
    manifest = file_status.make_file_stamp(folder / MANIFEST_FILE)
    private = find_private_project(folder)
    if not private.pipelines.exists():
        return manifest
    from rekindle.stores.pipelines.run_folder import list_runs  # noqa: PLC0415 - few projects have runs

    return manifest, [run.stamp_workers() for run in list_runs(private)]
