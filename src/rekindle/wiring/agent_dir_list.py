"""The folders in which a project's agents work, and the list of them that hooks read.

    python -I -m rekindle.wiring.agent_dir_list PROJECT

The hook cannot parse rekindle.yaml, so it runs this program if the list is older than the manifest.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import (
    RekindleError,
    UsageError,
    translate_os_errors,
)
from rekindle.plugins import ALIASES
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.setup.agent_dirs import (
    AgentDir,
    choose_agents,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.files import durable_files
from rekindle.thresholds.screens import AGENTS_NAMED
from rekindle.wiring.access.trust_checks import (
    has_moved,
    is_accepted_dir,
    is_trusted,
    is_unknown,
)

_SCHEMA = 1


def find_agent_dir(project: Project, name: str) -> Path:
    """Return the folder in which an agent works, with links resolved.

    An agent's own clone or work tree may not exist yet.
    """
    entry = project.manifest.agents[name]
    declared = (project.path / (entry.dir or AgentDefaults().dir)).resolve()
    if entry.workspace is None or entry.workspace == "here":
        return declared
    from rekindle.system.git import own_configuration  # noqa: PLC0415 - few agents need git

    folder = find_private_project(project.path).workspaces.resolve() / name
    top = own_configuration.find_top(project.path)
    return folder / declared.relative_to(top) if top and declared.is_relative_to(top) else folder


def list_agent_dirs(project: Project) -> list[AgentDir]:
    return [
        AgentDir(
            name, ALIASES.get(agent.harness, agent.harness), str(find_agent_dir(project, name))
        )
        for name, agent in project.manifest.agents.items()
        if name not in project.workers
    ]


def choose_agent(project: Project, place: Path) -> str | None:
    """Return the project's only agent, or the one that works in `place`; None if ambiguous."""
    names = project.declared_agents
    if len(names) > 1:
        names = choose_agents(list_agent_dirs(project), str(place.resolve()))
    return names[0] if len(names) == 1 else None


def require_accepted_dirs(project: Project, place: Path) -> None:
    """Refuse to choose an agent by `place` if a `dir:` was changed or the agent is new.

    Raises:
        UsageError: An agent may have edited the manifest so that another agent is chosen.
    """
    names, chosen = project.declared_agents, choose_agent(project, place)
    moved = [name for name in names if has_moved(project, name)]
    if chosen is not None and is_unknown(project, chosen):
        moved.append(chosen)
    if moved and len(names) > 1:
        shown = ", ".join(moved[:AGENTS_NAMED])
        raise UsageError(
            f"which agent? `dir:` of {shown} was changed without a command from you",
            hint=f"name the agent you mean: {', '.join(names[:AGENTS_NAMED])}",
        )


def list_hook_folders(folder: Path) -> list[Path]:
    """Return the folders that may contain hooks for a project's agents.

    These are the project, the folders in which its agents work, and those in the records of
    installed hooks. A folder outside the project is included only if the operator accepted it,
    because a manifest can name any folder.
    """
    from rekindle.flows.hooks.install_hooks import list_recorded_folders  # noqa: PLC0415 - keeps other commands fast

    below = list_recorded_folders(folder)
    with suppress(RekindleError):  # other commands report the broken manifest
        project = config.load_project(folder)
        dirs = {name: find_agent_dir(project, name) for name in project.declared_agents}
        below += [at for name, at in dirs.items() if is_accepted_dir(project, name, at)]
    own = folder.resolve()
    return [folder, *dict.fromkeys(at for at in below if at != own)]


def write_agent_dirs(folder: Path) -> None:
    """Write the list that hooks read, with a stamp of the manifest.

    A folder that a plugin set up has one agent and needs no list.
    """
    if not (folder / MANIFEST_FILE).exists() and config.has_private_manifest(folder):
        return
    with translate_os_errors(folder / MANIFEST_FILE):
        # Take the stamp before reading, so that the list is rewritten if the manifest changes in
        # between.
        stat = (folder / MANIFEST_FILE).stat()
    project = config.load_project(folder)
    head = f"{_SCHEMA} {stat.st_mtime_ns} {stat.st_size} {folder.resolve()}"
    lines = [
        f"{agent_dir.agent} {agent_dir.harness} {agent_dir.path}"
        for agent_dir in list_agent_dirs(project)
    ]
    # Leave out a path that contains a newline, because it would look like two lines. In such a
    # folder, only hooks that name their agent work.
    text = "".join(f"{line}\n" for line in (head, *lines) if "\n" not in line)
    durable_files.replace_file(RekindleFolder(folder).agent_dirs, os.fsencode(text))


def main(folder: Path) -> None:
    with suppress(RekindleError):  # an error must not disturb the new session
        if is_trusted(folder):
            write_agent_dirs(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
