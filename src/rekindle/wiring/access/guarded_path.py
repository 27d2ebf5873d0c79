"""The PATH for an agent's CLI, ordered so that the CLI does not run programs that the agent wrote.

A CLI starts programs outside its agent's sandbox: git, a shell, its interpreter. A PATH folder
inside the workspace, such as `.venv/bin`, could contain a program with one of these names. The
remedy depends on the CLI:

- If its file tools can be denied certain paths, the PATH keeps its order, and the agent cannot
  write to the folder. A folder that already has a program with such a name, or that cannot be
  denied because the agent works in it, is moved to the end.
- If the agent's commands can have a different PATH, they get the operator's, and the CLI itself
  gets a PATH with the workspace folders at the end.
- Otherwise, both get a PATH with the workspace folders at the end.
"""

import os
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.documents.launches.launch_types import Capabilities
from rekindle.harnesses import command_harness
from rekindle.system.processes import program_search
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.open_store import HARNESSES

_STARTED_BY_CLIS = (
    *("git", "gh", "ssh", "sh", "bash", "zsh", "env", "which", "uname", "ps", "rg", "tmux"),
    *("node", "npm", "npx", "bun"),
)
"""Programs that CLIs run, besides the CLIs themselves."""


class GuardedPath(msgspec.Struct, frozen=True):
    """PATH for a CLI and its agent's commands, and folders that the agent must not write to."""

    cli: str
    agent: str = ""
    """PATH for the agent's commands; empty if it is the same as for the CLI."""
    protected: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    """Folders at the end of the PATH for the agent's commands."""


def guard_path(path: str, folder: Path, can: Capabilities, *, stays: bool) -> GuardedPath:
    """Return the PATH for a CLI. Its agent works in `folder`, and in a terminal if it `stays`."""
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    inside = tuple(entry for entry in entries if program_search.is_in_workspace(entry))
    if can.denies_paths:
        last = {entry for entry in inside if not _can_be_first(Path(entry), folder)}
        denied = (entry for entry in inside if not _contains_folder(Path(entry), folder))
        protected = dict.fromkeys(
            name for entry in denied for name in (entry, str(Path(entry).resolve()))
        )
        ordered = program_search.order_path(path, last.__contains__)
        return GuardedPath(ordered, "", tuple(protected), tuple(sorted(last)))
    ordered = program_search.order_path(path)
    if can.splits_path and not stays:
        return GuardedPath(ordered, os.pathsep.join(entries) if inside else "")
    return GuardedPath(ordered, last=inside)


def explain_path(project: Project, name: str) -> str:
    """Return a note about folders that were moved to the end of the PATH, or ""."""
    entry = project.manifest.agents[name]
    harness = HARNESSES.get(entry.harness)
    if harness is None or harness.NAME == command_harness.NAME or "PATH" in (entry.env or {}):
        return ""
    folder = find_agent_dir(project, name)
    program_search.exclude_folders(folder)
    last = guard_path(
        os.environ.get("PATH", ""), folder, harness.CAN, stays=entry.mode == "stay"
    ).last
    if not last:
        return ""
    return f"{name} searches {', '.join(last)} last for programs, because the agent can write there"


PATH_HINT = (
    "call a program by its path, such as .venv/bin/python, or keep your order with `env: "
    "{PATH: $PATH}`"
)


def _can_be_first(entry: Path, folder: Path) -> bool:
    names = (*_STARTED_BY_CLIS, *(files.program for files in HARNESSES.list_hook_files()))
    return not _contains_folder(entry, folder) and not any(
        (entry / name).exists() for name in names
    )


def _contains_folder(entry: Path, folder: Path) -> bool:
    """Return whether the agent works in this folder and therefore must be able to write to it."""
    return folder.is_relative_to(entry.resolve())
