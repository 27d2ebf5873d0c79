"""Every trace of Rekindle on this host: of one project, or of all.

What the user wrote stays: rekindle.yaml, prompts, and the branches of the audit trail in git.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from rekindle import hook
from rekindle.documents.identity import one_line
from rekindle.errors import InUseError, RekindleError
from rekindle.flows import install_hooks
from rekindle.flows.hook_places import Place, levels_of, place_of
from rekindle.policy import cron_lines
from rekindle.policy.cron_lines import Use
from rekindle.stores import private, trust
from rekindle.stores.files import inbox
from rekindle.stores.files.layout import Root
from rekindle.stores.files.supervision import find_lock_files, outer_locks_held
from rekindle.stores.private import render_path
from rekindle.system import crontab, disk, user_folder
from rekindle.system.remove_folder import remove_folder
from rekindle.wiring import agent_dirs
from rekindle.wiring.store import HARNESSES
from rekindle.wiring.unit_files import find_units


class Trace(msgspec.Struct, frozen=True):
    """Something that Rekindle has left, and how it is removed."""

    words: str
    remove: Callable[[], object]


class Leftover(msgspec.Struct, frozen=True):
    """Something that may be Rekindle's and is not removed, because it is also the user's."""

    words: str
    reason: str
    hint: str


def refuse_running(folder: Path) -> None:
    """Refuse to forget a project in which an agent or the daemon runs.

    Raises:
        InUseError: One does.
    """
    root = Root(folder)
    held = set(outer_locks_held(folder))
    held |= {name for name in root.names() if disk.is_locked(root.agent(name).supervisor)}
    if disk.is_locked(root.path / "daemon"):
        held.add("its daemon")
    if held:
        raise InUseError(render_path(folder), sorted(held))


def refuse_daemon() -> None:
    if disk.is_locked(user_folder.path() / "daemon"):
        raise InUseError(render_path(user_folder.path()), ["the daemon of all projects"])


def find_traces(folder: Path, *, keep_history: bool = False) -> Iterator[Trace | Leftover]:
    """Yield what Rekindle has of a project, in the order in which it is removed."""
    yield from _hooks(_places(folder))
    yield from (_file(path, "unit") for path in find_units(folder))
    yield from _cron(str(folder))
    project, root = private.of_project(folder), Root(folder)
    for name in root.names():
        spooled = inbox.spooled(root.agent(name).path)
        yield from (_file(segment.path, "records of hooks") for segment in spooled)
    # Before the record, which tells the device and inode of a folder that is gone.
    for path in find_lock_files(folder, trust.recorded_identity(project)):
        yield _file(path, "lock")
    if disk.exists(project.path):
        yield Trace(f"records of the project: {_shown(project.path)}", project.remove)
    if disk.exists(root.path) and not keep_history:
        words = f"logs, relays and transcripts: {_shown(root.path)}"
        yield Trace(words, partial(remove_folder, root.path))


def find_user_traces() -> Iterator[Trace | Leftover]:
    """Yield what Rekindle has beside all projects."""
    places = [
        place_of(cli, "user", None, os.environ)
        for cli in HARNESSES.working()
        if "user" in levels_of(cli)
    ]
    yield from _hooks(places)
    yield from (_file(path, "unit") for path in find_units(user_folder.path(), every=True))
    yield from _cron("")
    folders = {*(place.home for place in places), *map(Path, hook.spool_folders())}
    for path in sorted(folders - {user_folder.path() / "spool"}):
        if disk.exists(path):
            yield Trace(f"records of hooks: {_shown(path)}", partial(remove_folder, path))
    if disk.exists(user_folder.path()):
        own = user_folder.path()
        yield Trace(f"your Rekindle folder: {_shown(own)}", partial(remove_folder, own))


def _places(folder: Path) -> list[Place]:
    return [
        place_of(cli, level, folder, os.environ, at)
        for cli in HARNESSES.working()
        for level in levels_of(cli)
        if level != "user"
        for at in agent_dirs.folders_of(folder)
    ]


def _hooks(places: list[Place]) -> Iterator[Trace | Leftover]:
    for place in places:
        words = f"hooks in {place.shown}"
        try:
            if not install_hooks.is_installed(place):
                continue
        except RekindleError as error:
            reason = str(error).removeprefix(f"{place.shown}: ")
            yield Leftover(f"{words}, if there are any", reason, "remove them by hand")
            continue
        if place.is_outside:
            reason = f"it leads to {_shown(place.target)}, outside the project"
            yield Leftover(words, reason, "remove the link if it is not yours")
        else:
            yield Trace(words, partial(install_hooks.uninstall, place))


def _cron(folder: str) -> Iterator[Trace | Leftover]:
    for line in crontab.read():
        words = f"line of your crontab: {one_line(line)}"
        use = cron_lines.find_use(line, folder)
        if use is Use.ALONE:
            yield Trace(words, partial(_uncron, line))
        elif use is Use.AMONG_OTHERS:
            yield Leftover(words, "it may start other commands too", "edit it with `crontab -e`")


def _uncron(line: str) -> None:
    crontab.write(cron_lines.without(crontab.read(), [line]))


def _file(path: Path, kind: str) -> Trace:
    return Trace(f"{kind}: {_shown(path)}", partial(disk.remove, path))


def _shown(path: Path) -> str:
    return one_line(render_path(path))
