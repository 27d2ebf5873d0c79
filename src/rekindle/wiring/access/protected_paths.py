"""Files that an agent must not write, because they decide what runs outside its sandbox.

When a CLI starts, it reads the settings in the project, and runs their hooks and servers as the
user. Git runs the programs that a repository's own settings name. The manifest names commands that
the supervisor runs. If a CLI's file tools can be limited to paths, all of these files are denied.
Only a sandbox limits a shell.
"""

import os
import sys
from pathlib import Path

import rekindle
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.policy.settings.runtime_settings import AgentDefaults
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
    inside = [
        words
        for words, path in _list_own_files().items()
        if program_search.is_in_workspace(path.absolute())
    ]
    return f"the agent can write to {', '.join(inside)}" if inside else ""


def explain_temporary(project: Project, name: str) -> str:
    """Return which of Rekindle's own files are where a sandbox lets the agent write, or ""."""
    entry = project.manifest.agents[name]
    harness = HARNESSES.get(entry.harness)
    persona = project.manifest.personas.get(entry.persona or AgentDefaults().persona)
    if harness is None or not harness.CAN.writes_temporary or (persona and not persona.writes):
        return ""
    files = _list_own_files()
    if not project.path.resolve().is_relative_to(find_agent_dir(project, name)):
        files["the manifest and the state of the project"] = project.path
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder:
            files[f"the PATH folder {folder}"] = Path(folder)
    chosen = (entry.env or {}).get("TMPDIR", "$TMPDIR")
    own = os.environ.get(chosen[1:], "") if chosen.startswith("$") else chosen
    roots = [root for root in (_TEMPORARY, own) if root.startswith("/") and "\0" not in root]
    exposed = []
    for root in dict.fromkeys(Path(root).resolve() for root in roots):
        inside = [words for words, path in files.items() if path.resolve().is_relative_to(root)]
        exposed += [f"{root}, which contains {', '.join(inside)}"] if inside else []
    return f"the agent can write to {'; and to '.join(exposed)}" if exposed else ""


def _list_own_files() -> dict[str, Path]:
    """Return the files that no agent may write, by their description."""
    return {
        "the Python that runs Rekindle": Path(sys.executable),
        "the package rekindle": Path(rekindle.__file__).parent,
        "your own Rekindle folder": user_folder.find_user_folder(),
    }


_TEMPORARY = "/tmp"  # noqa: S108 - Codex's sandbox lets its agent write there
TEMPORARY_HINT = (
    "move it, or set `exclude_slash_tmp` and `exclude_tmpdir_env_var` in your own settings for"
    " Codex"
)
EXPOSED_HINT = "install Rekindle outside the project (`uv tool install rekindle-agents`)"
