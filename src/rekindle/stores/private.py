"""A project's private files: outside its folder, where no sandboxed agent can write.

Everything inside a workspace counts as written by the agent. What the operator decides, and what
tells an honest log from a forged one, is kept below the user's own folder instead:

    projects/NAME-HASH/project.json      which folder this is, and that the user trusts it
    projects/NAME-HASH/fleet.json        the `fleet:` that commands may connect to
    projects/NAME-HASH/agents/NAME/      the operator's commands to one agent, and what they fixed

HASH is the start of a SHA-256 of the project's path, so that two projects of one name differ.
"""

import hashlib
import os
import re
from pathlib import Path

import msgspec

from rekindle.documents.identity import AGENT_NAME, agent_name
from rekindle.errors import storing
from rekindle.system import disk, user_folder

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
        """The operator's commands that are not in the log yet."""
        return self.path / "inbox"

    @property
    def seal(self) -> Path:
        """Where the log ends, and the hash of what it ends with."""
        return self.path / "seal"

    @property
    def spent(self) -> Path:
        """What the run has spent, whatever the log says later."""
        return self.path / "spent.json"

    @property
    def accepting(self) -> Path:
        """There while the operator accepts a log: what the run had spent before."""
        return self.path / "accepting.json"

    @property
    def settings(self) -> Path:
        """The settings of the agent that the operator accepted last."""
        return self.path / "settings.json"

    @property
    def launch(self) -> Path:
        """The files that a launch passes to its CLI: its hooks, its policy."""
        return self.path / "launch"

    @property
    def asked(self) -> Path:
        """The folders that questions to a CLI are asked in."""
        return self.path / "asked"

    @property
    def environment(self) -> Path:
        """The operator's environment, without secrets, for a supervisor the watchdog starts."""
        return self.path / "environment.json"

    @property
    def window(self) -> Path:
        """There while the agent's supervisor belongs in a tmux window: `up --tmux` started it."""
        return self.path / "window"

    @property
    def processes(self) -> Path:
        """What runs in the background of the agent; the supervisor ends what it names."""
        return self.path / "processes.json"


class PrivateProject(msgspec.Struct, frozen=True):
    """The private files of one project."""

    project: Path
    """The project's folder, without links."""

    @property
    def _name(self) -> str:
        mark = hashlib.sha256(os.fsencode(self.project)).hexdigest()
        return f"{_UNSAFE.sub('_', self.project.name)[:40]}-{mark[:_HASH_LENGTH]}"

    @property
    def path(self) -> Path:
        return user_folder.path() / _PROJECTS / self._name

    @property
    def record(self) -> Path:
        return self.path / _RECORD

    @property
    def fleet(self) -> Path:
        """The fleet of the manifest that the operator accepted last."""
        return self.path / "fleet.json"

    def agent(self, name: str) -> PrivateAgent:
        return PrivateAgent(self.path / _AGENTS / agent_name(name))

    def agents(self) -> list[str]:
        """Return the agents that have private files."""
        try:
            found = [entry.name for entry in os.scandir(self.path / _AGENTS)]
        except OSError:
            return []
        return sorted(filter(AGENT_NAME.match, found))

    def make(self) -> None:
        user_folder.make(_PROJECTS, self._name, _AGENTS)

    def remove_agents(self) -> None:
        """Remove everything that is recorded for the project's agents."""
        _remove_tree(self.path / _AGENTS)

    def remove(self) -> None:
        """Remove everything that is recorded for the project."""
        _remove_tree(self.path)

    def make_agent(self, name: str) -> PrivateAgent:
        """Make the agent's private folder, and return it."""
        self.make()
        found = self.agent(name)
        disk.make_folder(found.path)
        for folder in (found.inbox, found.launch, found.asked):
            disk.make_folder(folder)
        return found


def list_records() -> list[Path]:
    """Return the records of all projects that the user has accepted on this host."""
    with storing(user_folder.path()):
        return sorted((user_folder.path() / _PROJECTS).glob(f"*/{_RECORD}"))


def _remove_tree(path: Path) -> None:
    from shutil import rmtree  # noqa: PLC0415 - every start would pay for it

    with storing(path):
        rmtree(path)


def render_path(path: Path) -> str:
    """Return a path as text that JSON and a terminal can take, whatever bytes it has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def of_project(folder: Path) -> PrivateProject:
    """Return the private files of a project, whichever links lead to its folder."""
    return PrivateProject(folder.resolve())
