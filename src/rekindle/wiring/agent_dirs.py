"""The folders that a project's agents work in, and the list of them that hooks read.

    python -I -m rekindle.wiring.agent_dirs PROJECT

hook.py cannot read rekindle.yaml: it starts this program if the list is older than the manifest.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.manifest import FILE
from rekindle.errors import RekindleError, storing
from rekindle.plugins import ALIASES
from rekindle.policy.agent_dirs import AgentDir, choose_agents
from rekindle.policy.settings import AgentDefaults
from rekindle.stores.files.layout import Root
from rekindle.system import disk
from rekindle.wiring.trust import is_accepted_dir, is_trusted

_SCHEMA = 1


def dir_of(project: Project, name: str) -> Path:
    """Return the folder that an agent works in, without links."""
    return (project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)).resolve()


def of_project(project: Project) -> list[AgentDir]:
    return [
        AgentDir(name, ALIASES.get(agent.harness, agent.harness), str(dir_of(project, name)))
        for name, agent in project.manifest.agents.items()
    ]


def choose_agent(project: Project, place: Path) -> str | None:
    """Return the only agent of the project, or the one that works in `place`; None: unclear."""
    names = list(project.manifest.agents)
    if len(names) > 1:
        names = choose_agents(of_project(project), str(place.resolve()))
    return names[0] if len(names) == 1 else None


def folders_of(folder: Path) -> list[Path]:
    """Return where hooks of a project's agents are looked for, its own folder first.

    These are the folders that the agents work in, and those that records of hooks name. A folder
    outside the project counts only if the operator accepted it: a manifest can name any folder.
    """
    from rekindle.flows.install_hooks import recorded_folders  # noqa: PLC0415 - every command pays

    below = recorded_folders(folder)
    with suppress(RekindleError):  # a manifest that cannot be read is reported by others
        project = config.load(folder)
        dirs = {name: dir_of(project, name) for name in project.manifest.agents}
        below += [at for name, at in dirs.items() if is_accepted_dir(project, name, at)]
    own = folder.resolve()
    return [folder, *dict.fromkeys(at for at in below if at != own)]


def renew(folder: Path) -> None:
    """Write the list that hooks read, with the stamp of the manifest that it is made from."""
    with storing(folder / FILE):
        # Before it is read: a list that looks older than it is costs a start, no more.
        found = (folder / FILE).stat()
    project = config.load(folder)
    head = f"{_SCHEMA} {found.st_mtime_ns} {found.st_size} {folder.resolve()}"
    lines = [f"{one.agent} {one.harness} {one.path}" for one in of_project(project)]
    # A path with a line end would be read as two lines: only hooks that name that agent find it.
    text = "".join(f"{line}\n" for line in (head, *lines) if "\n" not in line)
    disk.replace(Root(folder).agent_dirs, os.fsencode(text))


def main(folder: Path) -> None:
    with suppress(RekindleError):  # a session that begins must not notice
        if is_trusted(folder):
            renew(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
