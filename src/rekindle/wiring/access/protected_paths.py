"""Files that an agent must not write, because they decide what runs outside its sandbox.

When a CLI starts, it reads the settings in the project, and runs their hooks and servers as the
user. Git runs the programs that a repository's own settings name. The manifest names commands that
the supervisor runs. If a CLI's file tools can be limited to paths, all of these files are denied.
Only a sandbox limits a shell.
"""

import sys
from pathlib import Path

import rekindle
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.stores.folders import agent_folder
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.open_store import HARNESSES

_BESIDE_WORK = (".git", ".agents", ".mcp.json", ".env")
"""Names of files in the project and in the agent's folder; each CLI's settings folder is added.

Gemini CLI passes the variables of a `.env`, such as `BASH_ENV`, to every program that it starts.
`.env` is also denied for Claude Code, because two CLIs may work in the same folder.
"""


def list_protected(project: Path, folder: Path) -> tuple[str, ...]:
    """Return the paths that an agent of the project must not write while it works in `folder`."""
    project = project.resolve()
    own = (
        project / MANIFEST_FILE,
        project / agent_folder.REKINDLE_FOLDER,
        user_folder.find_user_folder(),
    )
    names = (*_BESIDE_WORK, *(files.folder for files in HARNESSES.list_hook_files()))
    beside = (place / name for place in dict.fromkeys((project, folder)) for name in names)
    return tuple(map(str, (*own, *beside)))


def explain_exposed(project: Project, name: str) -> str:
    """Return which of Rekindle's own files the agent can write, or "" if none."""
    program_search.exclude_folders(find_agent_dir(project, name))
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
