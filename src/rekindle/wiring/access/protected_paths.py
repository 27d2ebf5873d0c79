"""List the files that an agent must not write because they control code outside its sandbox.

When a CLI starts, it reads the project's settings and runs their hooks and servers as the user. Git
runs programs that a repository's settings name. The supervisor runs commands that the manifest
names. If a CLI can limit its file tools to certain paths, all of these files are denied. Shell
commands are limited only by a sandbox.
"""

import os
import sys
from pathlib import Path

import rekindle
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.harnesses.acp.acp_presets import PRESETS
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders import agent_folder
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.open_store import HARNESSES

_BESIDE_WORK = (".git", ".agents", ".mcp.json", ".env")
"""Names of files in the project and the agent's folder, in addition to each CLI's settings.

Gemini CLI passes variables from `.env`, such as `BASH_ENV`, to every program that it runs. `.env`
is denied for Claude Code too, because two CLIs may work in the same folder.
"""


def list_protected(project: Path, folder: Path) -> tuple[str, ...]:
    """Return the paths that an agent must not write while it works in `folder`."""
    project = project.resolve()
    own = (
        project / MANIFEST_FILE,
        project / agent_folder.REKINDLE_FOLDER,
        user_folder.find_user_folder(),
    )
    return (*map(str, own), *list_beside_work(project, folder))


def list_beside_work(project: Path, folder: Path) -> tuple[str, ...]:
    """Return the paths in the project and in `folder` that decide which programs CLIs start."""
    names = (
        *_BESIDE_WORK,
        *(files.folder for files in HARNESSES.list_hook_files()),
        *dict.fromkeys(name for preset in PRESETS.values() for name in preset.settings),
    )
    places = dict.fromkeys((project.resolve(), folder))
    return tuple(str(place / name) for place in places for name in names)


def explain_exposed(project: Project, name: str) -> str:
    """Describe which of Rekindle's own files the agent can write, or return ""."""
    program_search.exclude_folders(find_agent_dir(project, name))
    inside = [
        words
        for words, path in _list_own_files().items()
        if program_search.is_in_workspace(path.absolute())
    ]
    return f"the agent can write to {', '.join(inside)}" if inside else ""


def explain_temporary(project: Project, name: str) -> str:
    """Describe which of Rekindle's own files are in a writable temporary folder, or return ""."""
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
    """Return the files that agents must not write, by description."""
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
