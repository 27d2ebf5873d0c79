"""Set up a folder in which a person starts an agent CLI, so that its sessions are recorded.

The user asked for this by installing a plugin. Rekindle writes only `.rekindle`, which git ignores.
The manifest is outside the folder, and `rekindle init` replaces it with a rekindle.yaml.
"""

import os
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.formats.identifiers import make_agent_name
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.files import durable_files, user_folder
from rekindle.wiring.access.trust_checks import accept_project, has_anything_to_trust
from rekindle.wiring.open_store import open_store

RECORD_VARIABLE = "REKINDLE_RECORD"
"""Environment variable: `projects` limits plugins to folders that were set up with `init`."""


def prepare_folder(place: Path, harness: str, home: Path) -> Path | None:
    """Set up the folder for sessions in `place`, and return it if it is new."""
    if os.environ.get(RECORD_VARIABLE) == "projects":
        return None
    place = place.resolve()
    if any(RekindleFolder(folder).agents.is_dir() for folder in (place, *place.parents)):
        return None
    folder = _choose_folder(place, home.resolve())
    if folder is None or has_anything_to_trust(folder) or config.find_project(folder):
        return None
    name = make_agent_name(folder.name)
    # JSON is also YAML, so that the settings are checked like those in a manifest.
    text = msgspec.json.encode({"version": 1, "agents": {name: {"harness": harness}}}).decode()
    project = config.make_project(folder, text)
    private = find_private_project(folder)
    private.make()
    RekindleFolder(folder).make()  # refuses a link, before the folder is trusted
    accept_project(project)
    durable_files.replace_file(private.manifest, text.encode())
    open_store(project).create(name)
    return folder


def _choose_folder(place: Path, home: Path) -> Path | None:
    """Return the git repository around `place`, or `place` itself if it is in the home folder.

    A project in the home folder itself, or above it, would contain all other projects. A folder
    elsewhere, such as one in /tmp, is probably a program's and not a person's.
    """
    for folder in (place, *place.parents):
        if home.is_relative_to(folder):
            break
        if (folder / ".git").exists():
            return folder if _is_own(folder) else None
    is_inside = place != home and place.is_relative_to(home)
    return place if is_inside and _is_own(place) else None


def _is_own(folder: Path) -> bool:
    """Return whether the folder belongs to the user, and is not one of Rekindle's own folders."""
    own = (user_folder.find_user_folder(), user_folder.find_workspaces_folder())
    return folder.stat().st_uid == os.getuid() and not any(map(folder.is_relative_to, own))
