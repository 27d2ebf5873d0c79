"""Where a CLI looks for hooks: one settings file for each level and folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from rekindle.documents import hooksettings, jsontext
from rekindle.documents.hooksettings import HookFiles
from rekindle.documents.identity import one_line
from rekindle.errors import UsageError
from rekindle.ports import Harness
from rekindle.stores.files import layout

Level = Literal["local", "project", "user"]
LEVELS: tuple[Level, ...] = get_args(Level)


class Place(msgspec.Struct, frozen=True):
    """One settings file, and the folder that has the record of it."""

    harness: Harness
    level: Level
    files: HookFiles
    settings: Path
    home: Path
    own: Path
    """The CLI's folder of the person's own settings."""
    folder: Path | None = None
    """The folder in which sessions find these settings; None: in every folder."""

    @property
    def old_program(self) -> Path:
        """Where earlier versions put the hook program."""
        return self.home / hooksettings.PROGRAM

    @property
    def record(self) -> Path:
        # A user may have several configuration folders, a project several agents.
        if self.level == "user":
            name = jsontext.fingerprint(os.fsencode(self.settings))[:12]
        else:
            name = f"{self.harness.NAME}-{self.level}"
            if self.folder and self.folder.resolve() != self.home.parent.resolve():
                below = os.path.relpath(self.folder, self.home.parent)  # a project may be moved
                name += f"-{jsontext.fingerprint(os.fsencode(below))[:12]}"
        return self.home / f"hooks-{name}.json"

    @property
    def shown(self) -> str:
        return one_line(str(self.settings))

    @property
    def target(self) -> Path:
        """The settings file itself, if the path leads to it by links."""
        return Path(os.path.realpath(self.settings))  # resolve() raises an error for a loop

    @property
    def is_outside(self) -> bool:
        """Whether links lead from a project's settings to a file that is not the project's."""
        return self.level != "user" and self.root_of(self.target) is None

    def root_of(self, target: Path) -> Path | None:
        """Return the folder, the project's or the agent's, that must have the settings in it.

        An agent or a cloned repository can make a link to a file elsewhere. None: the file is
        elsewhere, or the settings are the user's, whose links are the user's own.
        """
        if self.level == "user":
            return None
        folders = (self.home.parent, self.folder or self.home.parent)
        roots = (Path(os.path.realpath(folder)) for folder in folders)
        return next((root for root in roots if target.parent.is_relative_to(root)), None)


def levels_of(harness: Harness) -> tuple[Level, ...]:
    """The levels that a CLI has; the first is the one that touches the fewest people."""
    return tuple(level for level in LEVELS if getattr(harness.HOOK_FILES, level, None))


def first_level(harness: Harness) -> Level:
    levels = levels_of(harness)
    if not levels:
        raise _without_hooks(harness)
    return levels[0]


def _without_hooks(harness: Harness) -> UsageError:
    return UsageError(
        f"{harness.NAME} has no hooks", hint="`rekindle run` follows what it prints instead"
    )


def place_of(
    harness: Harness,
    level: Level,
    project: Path | None,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Place:
    """Return the settings file of a level; `folder` is the agent's, if not the project's own."""
    files = harness.HOOK_FILES
    if files is None:
        raise _without_hooks(harness)
    name = getattr(files, level)
    if not name:
        hint = f"say --for with one of: {', '.join(levels_of(harness))}"
        raise UsageError(f"{harness.NAME} has no {level} hooks", hint=hint)
    moved, above = environment.get(files.moved_by), environment.get(files.home_moved_by)
    own = Path(moved) if moved else Path(above or Path.home()) / files.folder
    own = own.absolute()
    if level == "user":
        data = environment.get("XDG_DATA_HOME", "")
        # The XDG specification has relative paths ignored.
        home = Path(data) if data.startswith("/") else Path.home() / ".local/share"
        return Place(harness, level, files, own / name, home / "rekindle", own)
    if project is None:
        raise UsageError("there is no project here", hint="run `rekindle init`, or say --for user")
    folder = folder or project
    settings = folder / files.folder / name
    return Place(harness, level, files, settings, project / layout.FOLDER, own, folder)
