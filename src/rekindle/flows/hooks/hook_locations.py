"""Find the settings files in which a CLI looks for hooks."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from rekindle.documents.hooks.hook_settings import HookFiles
from rekindle.errors import UsageError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.ports import Harness
from rekindle.stores.folders import agent_folder

HookLevel = Literal["local", "project", "user"]
HOOK_LEVELS: tuple[HookLevel, ...] = get_args(HookLevel)


class HookLocation(msgspec.Struct, frozen=True):
    """A settings file, and the folder that records the hooks installed in it."""

    harness: Harness
    level: HookLevel
    files: HookFiles
    settings: Path
    home: Path
    own: Path
    """The CLI's configuration folder, with the user's own settings."""
    folder: Path | None = None
    """Folder whose sessions use these settings; None for all folders."""

    @property
    def record(self) -> Path:
        # The name must be unique: a user can have several configuration folders, and a project
        # several agents.
        if self.level == "user":
            name = json_codec.hash_bytes(os.fsencode(self.settings))[:12]
        else:
            name = f"{self.harness.NAME}-{self.level}"
            if self.folder and self.folder.resolve() != self.home.parent.resolve():
                # Use a relative path, because the project may be moved.
                below = os.path.relpath(self.folder, self.home.parent)
                name += f"-{json_codec.hash_bytes(os.fsencode(below))[:12]}"
        return self.home / f"hooks-{name}.json"

    @property
    def shown(self) -> str:
        return to_one_line(str(self.settings))

    @property
    def target(self) -> Path:
        """The actual settings file, with links resolved."""
        # Path.resolve() fails if links form a loop.
        return Path(os.path.realpath(self.settings))

    @property
    def is_outside(self) -> bool:
        """Whether the project's settings file is a link to a file outside the project."""
        return self.level != "user" and self.root_of(self.target) is None

    def root_of(self, target: Path) -> Path | None:
        """Return the project or agent folder that contains the settings file, or None.

        A link created by an agent or a cloned repository may point anywhere. None means that the
        file is outside these folders. The user's own settings file may link anywhere, so the result
        for it is always None.
        """
        if self.level == "user":
            return None
        folders = (self.home.parent, self.folder or self.home.parent)
        roots = (Path(os.path.realpath(folder)) for folder in folders)
        return next((root for root in roots if target.parent.is_relative_to(root)), None)


def list_levels(harness: Harness) -> tuple[HookLevel, ...]:
    """Return a CLI's settings levels, starting with the narrowest."""
    return tuple(level for level in HOOK_LEVELS if getattr(harness.HOOK_FILES, level, None))


def choose_default_level(harness: Harness) -> HookLevel:
    levels = list_levels(harness)
    if not levels:
        raise _make_no_hooks_error(harness)
    return levels[0]


def _make_no_hooks_error(harness: Harness) -> UsageError:
    return UsageError(
        f"{harness.NAME} has no hooks", hint="`rekindle run` reads its output instead"
    )


def locate_hooks(
    harness: Harness,
    level: HookLevel,
    project: Path | None,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> HookLocation:
    """Return the settings file for a level. `folder` is the agent's own folder, if any."""
    files = harness.HOOK_FILES
    if files is None:
        raise _make_no_hooks_error(harness)
    name = getattr(files, level)
    if not name:
        hint = f"use --for with one of: {', '.join(list_levels(harness))}"
        raise UsageError(f"{harness.NAME} has no {level} hooks", hint=hint)
    own = Path(files.find_own_folder(environment, str(Path.home()))).absolute()
    if level == "user":
        data = environment.get("XDG_DATA_HOME", "")
        # The XDG specification says that relative paths must be ignored.
        home = Path(data) if data.startswith("/") else Path.home() / ".local/share"
        return HookLocation(harness, level, files, own / name, home / "rekindle", own)
    if project is None:
        raise UsageError(
            "this folder is not in a project", hint="run `rekindle init`, or use --for user"
        )
    folder = folder or project
    settings = folder / files.folder / name
    return HookLocation(
        harness, level, files, settings, project / agent_folder.REKINDLE_FOLDER, own, folder
    )
