"""Find and remove every trace of Rekindle on this host, for one project or for all.

The user's own files stay: rekindle.yaml, prompts, and the branches of the audit trail in git.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec

from rekindle.errors import OwnershipError, RekindleError
from rekindle.flows.hooks import install_hooks
from rekindle.flows.hooks.hook_locations import (
    HookLocation,
    list_levels,
    locate_hooks,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.hook import record_writer
from rekindle.policy.setup import cron_lines
from rekindle.policy.setup.cron_lines import CronUse
from rekindle.stores.files.supervisor_locks import find_lock_files
from rekindle.stores.folders import (
    private_files,
    trust_records,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.folders.private_files import render_path
from rekindle.stores.log import inbox
from rekindle.system import crontab
from rekindle.system.files import durable_files, file_locks, user_folder
from rekindle.system.git import own_configuration
from rekindle.system.remove_folder import remove_folder
from rekindle.wiring import agent_dir_list
from rekindle.wiring.open_store import HARNESSES
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.starting.unit_files import find_units


class InstalledTrace(msgspec.Struct, frozen=True):
    """A trace that Rekindle has left, and the function that removes it."""

    words: str
    remove: Callable[[], object]


class Leftover(msgspec.Struct, frozen=True):
    """A possible trace that is not removed, because it may be the user's own."""

    words: str
    reason: str
    hint: str


def refuse_running(folder: Path) -> None:
    """Refuse to forget a project in which an agent, a leftover process or the daemon is running.

    Raises:
      OwnershipError: One of them is running.
    """
    root = RekindleFolder(folder)
    held = set(RunningAgents().find(folder))
    held |= {name for name in root.names() if file_locks.is_locked(root.agent(name).supervisor)}
    if file_locks.is_locked(root.path / "daemon"):
        held.add("its daemon")
    if held:
        _refuse_use(folder, ", ".join(sorted(held)))


def refuse_daemon() -> None:
    if file_locks.is_locked(user_folder.find_user_folder() / "daemon"):
        _refuse_use(user_folder.find_user_folder(), "the daemon for all projects")


def _refuse_use(folder: Path, running: str) -> NoReturn:
    raise OwnershipError(
        f"{render_path(folder)} is in use: {running}",
        hint="run `rekindle down` there to stop the agents, stop the daemon, then try again",
    )


def find_traces(folder: Path, *, keep_history: bool = False) -> Iterator[InstalledTrace | Leftover]:
    """Yield the traces of a project, in the order in which they are removed."""
    yield from _find_hook_traces(_list_locations(folder))
    yield from (_make_file_trace(path, "unit") for path in find_units(folder))
    yield from _find_cron_traces(str(folder))
    project, root = private_files.find_private_project(folder), RekindleFolder(folder)
    for name in root.names():
        spooled = inbox.list_spooled_segments(root.agent(name).path)
        yield from (
            _make_file_trace(segment.path, "records of installed hooks") for segment in spooled
        )
    # Locks come before the record, because its device and inode identify them if the folder is
    # missing.
    for path in find_lock_files(folder, trust_records.read_recorded_identity(project)):
        yield _make_file_trace(path, "lock")
    for path in own_configuration.list_configurations(folder):
        words = f"configuration for git: {_render_path(path)}"
        yield InstalledTrace(words, partial(remove_folder, path))
    if durable_files.path_exists(project.path):
        yield InstalledTrace(
            f"records of the project: {_render_path(project.path)}", project.remove
        )
    if durable_files.path_exists(root.path) and not keep_history:
        words = f"logs, relays and transcripts: {_render_path(root.path)}"
        yield InstalledTrace(words, partial(remove_folder, root.path))


def find_user_traces() -> Iterator[InstalledTrace | Leftover]:
    """Yield the user's traces that do not belong to a single project."""
    places = [
        locate_hooks(cli, "user", None, os.environ)
        for cli in HARNESSES.working()
        if "user" in list_levels(cli)
    ]
    yield from _find_hook_traces(places)
    yield from (
        _make_file_trace(path, "unit")
        for path in find_units(user_folder.find_user_folder(), every=True)
    )
    yield from _find_cron_traces("")
    folders = {*(place.home for place in places), *map(Path, record_writer.spool_folders())}
    for path in sorted(folders - {user_folder.find_user_folder() / "spool"}):
        if durable_files.path_exists(path):
            yield InstalledTrace(
                f"records of installed hooks: {_render_path(path)}", partial(remove_folder, path)
            )
    if durable_files.path_exists(user_folder.find_user_folder()):
        own = user_folder.find_user_folder()
        yield InstalledTrace(
            f"your Rekindle folder: {_render_path(own)}", partial(remove_folder, own)
        )


def _list_locations(folder: Path) -> list[HookLocation]:
    return [
        locate_hooks(cli, level, folder, os.environ, at)
        for cli in HARNESSES.working()
        for level in list_levels(cli)
        if level != "user"
        for at in agent_dir_list.list_hook_folders(folder)
    ]


def _find_hook_traces(places: list[HookLocation]) -> Iterator[InstalledTrace | Leftover]:
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
            reason = f"it is a link to {_render_path(place.target)}, outside the project"
            yield Leftover(words, reason, "remove the link if it is not yours")
        else:
            yield InstalledTrace(words, partial(install_hooks.uninstall_hooks, place))


def _find_cron_traces(folder: str) -> Iterator[InstalledTrace | Leftover]:
    for line in crontab.read_crontab():
        words = f"line in your crontab: {to_one_line(line)}"
        use = cron_lines.find_use(line, folder)
        if use is CronUse.ALONE:
            yield InstalledTrace(words, partial(_remove_cron_line, line))
        elif use is CronUse.AMONG_OTHERS:
            yield Leftover(words, "it may also start other commands", "edit it with `crontab -e`")


def _remove_cron_line(line: str) -> None:
    crontab.write_crontab(cron_lines.remove_cron_lines(crontab.read_crontab(), [line]))


def _make_file_trace(path: Path, kind: str) -> InstalledTrace:
    return InstalledTrace(f"{kind}: {_render_path(path)}", partial(durable_files.remove_file, path))


def _render_path(path: Path) -> str:
    return to_one_line(render_path(path))
