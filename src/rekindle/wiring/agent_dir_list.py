"""The folders that a project's agents work in, and the list of these folders that hooks read.

    python -I -m rekindle.wiring.agent_dir_list PROJECT

The hook cannot parse rekindle.yaml, so it starts this program if the list is older than the
manifest.
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
    """Return the folder that an agent works in, with links resolved."""
    return (project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)).resolve()


def list_agent_dirs(project: Project) -> list[AgentDir]:
    return [
        AgentDir(
            name, ALIASES.get(agent.harness, agent.harness), str(find_agent_dir(project, name))
        )
        for name, agent in project.manifest.agents.items()
    ]


def choose_agent(project: Project, place: Path) -> str | None:
    """Return the project's only agent, or the one that works in `place`; None if ambiguous."""
    names = list(project.manifest.agents)
    if len(names) > 1:
        names = choose_agents(list_agent_dirs(project), str(place.resolve()))
    return names[0] if len(names) == 1 else None


def require_accepted_dirs(project: Project, place: Path) -> None:
    """Refuse to choose an agent by `place` if a `dir:` was changed or the agent is new.

    Raises:
        UsageError: An agent may have changed the manifest so that another agent is chosen.
    """
    names, chosen = list(project.manifest.agents), choose_agent(project, place)
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
    """Return the folders to search for hooks of a project's agents, starting with the project.

    These are the folders that the agents work in, and those in the records of installed hooks. A
    folder outside the project is included only if the operator accepted it, because a manifest can
    name any folder.
    """
    from rekindle.flows.hooks.install_hooks import list_recorded_folders  # noqa: PLC0415 - keeps other commands fast

    below = list_recorded_folders(folder)
    with suppress(RekindleError):  # other commands report a broken manifest
        project = config.load_project(folder)
        dirs = {name: find_agent_dir(project, name) for name in project.manifest.agents}
        below += [at for name, at in dirs.items() if is_accepted_dir(project, name, at)]
    own = folder.resolve()
    return [folder, *dict.fromkeys(at for at in below if at != own)]


def write_agent_dirs(folder: Path) -> None:
    """Write the list that hooks read, with the stamp of the manifest that it is based on."""
    with translate_os_errors(folder / MANIFEST_FILE):
        # The stamp is taken before the manifest is read: if the manifest changes in between, the
        # list is only written once more.
        stat = (folder / MANIFEST_FILE).stat()
    project = config.load_project(folder)
    head = f"{_SCHEMA} {stat.st_mtime_ns} {stat.st_size} {folder.resolve()}"
    lines = [f"{one.agent} {one.harness} {one.path}" for one in list_agent_dirs(project)]
    # A path with a newline would be read as two lines, so it is left out. Its folder is then found
    # only by hooks that name the agent.
    text = "".join(f"{line}\n" for line in (head, *lines) if "\n" not in line)
    durable_files.replace_file(RekindleFolder(folder).agent_dirs, os.fsencode(text))


def main(folder: Path) -> None:
    with suppress(RekindleError):  # an error must not disturb the session that is being started
        if is_trusted(folder):
            write_agent_dirs(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
