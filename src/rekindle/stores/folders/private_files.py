"""A project's private files: outside its folder, where no sandboxed agent can write.

Everything inside a workspace counts as written by the agent. The operator's decisions, and the
records that distinguish a genuine log from a forged one, are stored below the user's folder
instead:

    projects/NAME-HASH/project.json      identity of the folder that the user trusts
    projects/NAME-HASH/fleet.json        the `fleet:` that commands may connect to
    projects/NAME-HASH/manifest.json     manifest of a folder without rekindle.yaml
    projects/NAME-HASH/agents/NAME/      the operator's commands to one agent, and related records
    projects/NAME-HASH/pipelines/NAME/   the accepted settings and the runs of one pipeline
    projects/NAME-HASH/schedules/        the scheduled runs that were started, skipped or missed
    projects/NAME-HASH/search.db         the index of `rekindle search`, which can be rebuilt

HASH is a prefix of the SHA-256 of the project's path, so two projects with the same name have
different folders.
"""

import hashlib
import os
import re
from pathlib import Path

import msgspec

from rekindle.errors import translate_os_errors
from rekindle.formats.identifiers import (
    AGENT_NAME,
    require_agent_name,
)
from rekindle.system.files import (
    durable_files,
    user_folder,
)

_PROJECTS = "projects"
_AGENTS = "agents"
_RECORD = "project.json"
_HASH_LENGTH = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class PrivateAgent(msgspec.Struct, frozen=True):
    """An agent's private files."""

    path: Path

    @property
    def inbox(self) -> Path:
        """Inbox for the operator's commands."""
        return self.path / "inbox"

    @property
    def seal(self) -> Path:
        """File with the sealed length and hash of the log."""
        return self.path / "seal"

    @property
    def spent(self) -> Path:
        """The run's spending, recorded independently of the log."""
        return self.path / "spent.json"

    @property
    def accepting(self) -> Path:
        """The run's spending, saved while the operator accepts a log."""
        return self.path / "accepting.json"

    @property
    def last_question(self) -> Path:
        """Number of the last question, recorded independently of the log."""
        return self.path / "last-question"

    @property
    def settings(self) -> Path:
        """The agent's settings, as last accepted by the operator."""
        return self.path / "settings.json"

    @property
    def manifest(self) -> Path:
        """Manifest of an agent that a program runs without rekindle.yaml."""
        return self.path / "manifest.json"

    @property
    def launch(self) -> Path:
        """Folder for files that a launch passes to its CLI, such as hooks and policy."""
        return self.path / "launch"

    @property
    def marks(self) -> Path:
        """Folder in which hooks in a sandbox write marker files and records."""
        return self.path / "marks"

    @property
    def asked(self) -> Path:
        """Folder in which CLIs run to answer one-off questions."""
        return self.path / "asked"

    @property
    def environment(self) -> Path:
        """The operator's environment for the watchdog, without secrets."""
        return self.path / "environment.json"

    @property
    def window(self) -> Path:
        """Marker for a supervisor that runs in a tmux window (`up --tmux`)."""
        return self.path / "window"

    @property
    def processes(self) -> Path:
        """Record of the agent's background processes."""
        return self.path / "processes.json"


class PrivateProject(msgspec.Struct, frozen=True):
    """A project's private files."""

    project: Path
    """The project's folder, with links resolved."""

    @property
    def _name(self) -> str:
        mark = hashlib.sha256(os.fsencode(self.project)).hexdigest()
        return f"{_UNSAFE.sub('_', self.project.name)[:40]}-{mark[:_HASH_LENGTH]}"

    @property
    def path(self) -> Path:
        return user_folder.find_user_folder() / _PROJECTS / self._name

    @property
    def record(self) -> Path:
        return self.path / _RECORD

    @property
    def manifest(self) -> Path:
        """Manifest of a folder without rekindle.yaml, whose sessions a plugin records."""
        return self.path / "manifest.json"

    @property
    def workspaces(self) -> Path:
        """Folder with the agents' own clones and work trees, outside the private files."""
        return user_folder.find_workspaces_folder() / self._name

    @property
    def pipelines(self) -> Path:
        """Folder with the runs of all pipelines."""
        return self.path / "pipelines"

    def list_pipelines(self) -> list[str]:
        """Return the names of the pipelines that have private files."""
        return _list_names(self.pipelines)

    def pipeline_settings(self, name: str) -> Path:
        """Return the file with a pipeline's settings, as last accepted by the operator."""
        return self.pipelines / require_agent_name(name) / "settings.json"

    def make_pipeline(self, name: str) -> None:
        """Create the private folder of a pipeline."""
        self.make()
        durable_files.make_folder(self.pipelines)
        durable_files.make_folder(self.pipeline_settings(name).parent)

    @property
    def outputs(self) -> Path:
        """Folder with the outputs of pipelines, outside the private files."""
        return user_folder.find_outputs_folder() / self._name

    @property
    def fleet(self) -> Path:
        """The `fleet:` setting that the operator last accepted."""
        return self.path / "fleet.json"

    @property
    def schedules(self) -> Path:
        """Folder with the schedule records of agents and pipelines."""
        return self.path / "schedules"

    @property
    def search(self) -> Path:
        """Index of the agents' transcripts, relays and decisions."""
        return self.path / "search.db"

    def agent(self, name: str) -> PrivateAgent:
        return PrivateAgent(self.path / _AGENTS / require_agent_name(name))

    def agents(self) -> list[str]:
        """Return the names of the agents that have private files."""
        return _list_names(self.path / _AGENTS)

    def make(self) -> None:
        user_folder.make_user_folder(_PROJECTS, self._name, _AGENTS)

    def remove_agents(self) -> None:
        """Remove the records of all agents."""
        _remove_tree(self.path / _AGENTS)

    def remove(self) -> None:
        """Remove all records of the project."""
        _remove_tree(self.path)

    def make_agent(self, name: str) -> PrivateAgent:
        """Create the agent's private folder and return it."""
        self.make()
        private = self.agent(name)
        durable_files.make_folder(private.path)
        for folder in (private.inbox, private.launch, private.marks, private.asked):
            durable_files.make_folder(folder)
        return private


def _list_names(folder: Path) -> list[str]:
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return sorted(filter(AGENT_NAME.match, names))


def list_records() -> list[Path]:
    """Return the records of all projects that the user trusts on this host."""
    with translate_os_errors(user_folder.find_user_folder()):
        return sorted((user_folder.find_user_folder() / _PROJECTS).glob(f"*/{_RECORD}"))


def _remove_tree(path: Path) -> None:
    from shutil import rmtree  # noqa: PLC0415 - would slow down every command

    with translate_os_errors(path):
        rmtree(path)


def render_path(path: Path) -> str:
    """Return a path as text that is valid in JSON and safe to print."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def find_workspace_project(start: Path) -> Path | None:
    """Return the project of the agent whose clone or work tree contains the folder, or None."""
    above = user_folder.find_workspaces_folder()
    if above not in start.parents:
        return None
    name = start.relative_to(above).parts[0]
    data = durable_files.read_bytes(user_folder.find_user_folder() / _PROJECTS / name / _RECORD)
    try:
        path = Path(msgspec.json.decode(data or b"{}")["path"])
    except (msgspec.MsgspecError, LookupError, TypeError):
        return None
    return path if PrivateProject(path).workspaces.name == name else None


def find_private_project(folder: Path) -> PrivateProject:
    """Return the private files of a project. Links to its folder are resolved."""
    return PrivateProject(folder.resolve())
