"""The units of a project's daemon and timer in the user's own folders, and their names."""

import os
from pathlib import Path

from rekindle.documents.identity import derived_id
from rekindle.errors import storing


def unit_name(folder: Path, *, briefs: bool = False, every: bool = False) -> str:
    """Return the name of a project's unit; of the one for all projects if `every`."""
    name = "rekindle" if every else f"rekindle-{derived_id(str(folder))}"
    return f"{name}-briefs" if briefs else name


def unit_path(kind: str, name: str) -> Path:
    if kind == "systemd":
        return _systemd() / f"{name}.service"
    return Path.home() / "Library/LaunchAgents" / f"{name}.plist"


def find_units(folder: Path, *, every: bool = False) -> list[Path]:
    """Return the files and links that exist of a project's units, of either kind."""
    found: list[Path] = []
    for briefs in (False, True):
        name = unit_name(folder, briefs=briefs, every=every)
        service = unit_path("systemd", name)
        units = [service, service.with_suffix(".timer")]
        with storing(service):
            # `systemctl enable` makes links: default.target.wants/NAME.
            links = [link for unit in units for link in _systemd().glob(f"*.wants/{unit.name}")]
        there = [*links, *units, unit_path("launchd", name)]
        found += [path for path in there if path.is_symlink() or path.exists()]
    return found


def _systemd() -> Path:
    own = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(own) / "systemd/user"
