"""What an agent must not write, because it decides what runs outside the agent's sandbox.

A CLI reads the settings in a project when it starts, and runs their hooks and servers as the user;
git runs the programs that a repository's own settings name; the manifest names commands of the
supervisor. Personas of CLIs that hold an agent's file tools to paths deny all of these. A shell is
not held by that: only a sandbox holds it.
"""

import sys
from pathlib import Path

import rekindle
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders import agent_folder
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search

_BESIDE_WORK = (".git", ".claude", ".codex", ".gemini", ".agents", ".mcp.json", ".env")
"""Gemini CLI passes the variables of a `.env` on to every program that it starts, as `BASH_ENV`. It
is denied for Claude Code too: two CLIs may work in one folder."""


def list_protected(project: Path, folder: Path) -> tuple[str, ...]:
    """Return what an agent of the project, which works in `folder`, must not write."""
    project = project.resolve()
    own = (
        project / MANIFEST_FILE,
        project / agent_folder.REKINDLE_FOLDER,
        user_folder.find_user_folder(),
    )
    beside = (place / name for place in dict.fromkeys((project, folder)) for name in _BESIDE_WORK)
    return tuple(map(str, (*own, *beside)))


def explain_exposed(project: Project, name: str) -> str:
    """Return what an agent could change although it runs outside the sandbox; empty if nothing."""
    folder = (project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)).resolve()
    program_search.exclude_folders(folder)
    ours = {
        "the Python that runs Rekindle": Path(sys.executable),
        "the package rekindle": Path(rekindle.__file__).parent,
        "your own Rekindle folder": user_folder.find_user_folder(),
    }
    inside = [
        words for words, path in ours.items() if program_search.is_in_workspace(path.absolute())
    ]
    return f"the agent can write to {', '.join(inside)}" if inside else ""


EXPOSED_HINT = "install Rekindle outside the project (`uv tool install rekindle-agents`)"
