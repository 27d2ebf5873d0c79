"""Name and find the unit files for a project's daemon and timer."""

import os
from pathlib import Path

from rekindle.errors import translate_os_errors
from rekindle.formats.identifiers import derive_id


def make_unit_name(folder: Path, *, briefs: bool = False, every: bool = False) -> str:
    """Return the unit name for a project or, with `every`, for all projects."""
    name = "rekindle" if every else f"rekindle-{derive_id(str(folder))}"
    return f"{name}-briefs" if briefs else name


def make_unit_path(kind: str, name: str) -> Path:
    if kind == "systemd":
        return _find_systemd_folder() / f"{name}.service"
    return Path.home() / "Library/LaunchAgents" / f"{name}.plist"


def find_units(folder: Path, *, every: bool = False) -> list[Path]:
    """Return a project's existing unit files and links, for systemd and launchd."""
    paths: list[Path] = []
    for briefs in (False, True):
        name = make_unit_name(folder, briefs=briefs, every=every)
        service = make_unit_path("systemd", name)
        units = [service, service.with_suffix(".timer")]
        with translate_os_errors(service):
            # `systemctl enable` creates links such as default.target.wants/NAME.
            links = [
                link
                for unit in units
                for link in _find_systemd_folder().glob(f"*.wants/{unit.name}")
            ]
        there = [*links, *units, make_unit_path("launchd", name)]
        paths += [path for path in there if path.is_symlink() or path.exists()]
    return paths


def _find_systemd_folder() -> Path:
    own = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(own) / "systemd/user"
