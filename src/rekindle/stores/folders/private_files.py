"""A project's private files: outside its folder, where no sandboxed agent can write.

Everything inside a workspace counts as written by the agent. The operator's decisions, and the
records that distinguish a genuine log from a forged one, are stored below the user's folder
instead:

    projects/NAME-HASH/project.json      identity of the folder that the user trusts
    projects/NAME-HASH/fleet.json        the `fleet:` that commands may connect to
    projects/NAME-HASH/agents/NAME/      the operator's commands to one agent, and related records

HASH is a prefix of the SHA-256 of the project's path, so that two projects with the same name have
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
    """The private files of one agent."""

    path: Path

    @property
    def inbox(self) -> Path:
        """Return the inbox with the operator's commands that are not in the log yet."""
        return self.path / "inbox"

    @property
    def seal(self) -> Path:
        """Return the file with the log's sealed length and its chain of hashes."""
        return self.path / "seal"

    @property
    def spent(self) -> Path:
        """Return the file with the run's spending, which changes to the log do not affect."""
        return self.path / "spent.json"

    @property
    def accepting(self) -> Path:
        """Return the file with the run's spending while the operator accepts a log."""
        return self.path / "accepting.json"

    @property
    def last_question(self) -> Path:
        """Return the file with the last question's number, independent of the log."""
        return self.path / "last-question"

    @property
    def settings(self) -> Path:
        """Return the file with the agent's settings that the operator accepted last."""
        return self.path / "settings.json"

    @property
    def launch(self) -> Path:
        """Return the folder for files that a launch passes to its CLI, such as hooks and policy."""
        return self.path / "launch"

    @property
    def asked(self) -> Path:
        """Return the folder with a working folder for each question that Rekindle asks a CLI."""
        return self.path / "asked"

    @property
    def environment(self) -> Path:
        """Return the file with the operator's environment, without secrets, for the watchdog."""
        return self.path / "environment.json"

    @property
    def window(self) -> Path:
        """Return the marker for a supervisor in a tmux window, as started by `up --tmux`."""
        return self.path / "window"

    @property
    def processes(self) -> Path:
        """Return the record of the agent's background processes, which the supervisor kills."""
        return self.path / "processes.json"


class PrivateProject(msgspec.Struct, frozen=True):
    """The private files of one project."""

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
    def fleet(self) -> Path:
        """Return the file with the manifest's `fleet:` that the operator accepted last."""
        return self.path / "fleet.json"

    def agent(self, name: str) -> PrivateAgent:
        return PrivateAgent(self.path / _AGENTS / require_agent_name(name))

    def agents(self) -> list[str]:
        """Return the names of the agents that have private files."""
        try:
            names = [entry.name for entry in os.scandir(self.path / _AGENTS)]
        except OSError:
            return []
        return sorted(filter(AGENT_NAME.match, names))

    def make(self) -> None:
        user_folder.make_user_folder(_PROJECTS, self._name, _AGENTS)

    def remove_agents(self) -> None:
        """Remove all records of the project's agents."""
        _remove_tree(self.path / _AGENTS)

    def remove(self) -> None:
        """Remove all records of the project."""
        _remove_tree(self.path)

    def make_agent(self, name: str) -> PrivateAgent:
        """Create the agent's private folder, and return it."""
        self.make()
        private = self.agent(name)
        durable_files.make_folder(private.path)
        for folder in (private.inbox, private.launch, private.asked):
            durable_files.make_folder(folder)
        return private


def list_records() -> list[Path]:
    """Return the records of all projects that the user has accepted on this host."""
    with translate_os_errors(user_folder.find_user_folder()):
        return sorted((user_folder.find_user_folder() / _PROJECTS).glob(f"*/{_RECORD}"))


def _remove_tree(path: Path) -> None:
    from shutil import rmtree  # noqa: PLC0415 - slows every start

    with translate_os_errors(path):
        rmtree(path)


def render_path(path: Path) -> str:
    """Return a path as text that JSON and terminals can represent, whatever bytes it contains."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def find_private_project(folder: Path) -> PrivateProject:
    """Return the private files of a project, with links to its folder resolved."""
    return PrivateProject(folder.resolve())
