"""Find and remove everything that Rekindle has stored on this host for one project or all.

The user's own files stay: rekindle.yaml, prompts, and the audit trail's branches in git.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec

from rekindle.documents import clone_files
from rekindle.documents.commits.snapshot_commit import Snapshot
from rekindle.errors import OwnershipError, RekindleError
from rekindle.flows.hooks import install_hooks
from rekindle.flows.hooks.hook_locations import (
    HookLocation,
    list_levels,
    locate_hooks,
)
from rekindle.flows.plugins.install_plugin import PluginPlace, remove_plugin
from rekindle.formats.counts import render_count
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
from rekindle.stores.pipelines import run_folder
from rekindle.system import crontab
from rekindle.system.files import durable_files, file_locks, user_folder
from rekindle.system.git import own_configuration
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.system.remove_folder import remove_folder
from rekindle.wiring import agent_dir_list
from rekindle.wiring.open_store import HARNESSES
from rekindle.wiring.plugin_places import find_places
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.starting.unit_files import find_units
from rekindle.wiring.stored_workspaces import list_stored_workspaces


class InstalledTrace(msgspec.Struct, frozen=True):
    """Something that Rekindle has stored, and a function that removes it."""

    words: str
    remove: Callable[[], object]


class Leftover(msgspec.Struct, frozen=True):
    """Something that is not removed, because it may be the user's own."""

    words: str
    reason: str
    hint: str


def refuse_running(folder: Path) -> None:
    """Refuse to forget a project while an agent, a leftover process or the daemon is running in it.

    Raises:
      OwnershipError: One of them is running.
    """
    root = RekindleFolder(folder)
    held = set(RunningAgents().find(folder))
    held |= {name for name in root.names() if file_locks.is_locked(root.agent(name).supervisor)}
    if file_locks.is_locked(root.path / "daemon"):
        held.add("its daemon")
    runs = run_folder.list_runs(private_files.find_private_project(folder))
    held |= {f"run {run.run} of {run.pipeline}" for run in runs if run.is_coordinated()}
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
    """Yield everything that Rekindle has stored for a project, in the order of removal."""
    yield from _find_hook_traces(_list_locations(folder))
    yield from (_make_file_trace(path, "unit") for path in find_units(folder))
    yield from _find_cron_traces(str(folder))
    project, root = private_files.find_private_project(folder), RekindleFolder(folder)
    for name in root.names():
        spooled = inbox.list_spooled_segments(root.agent(name).path)
        yield from (
            _make_file_trace(segment.path, "records of installed hooks") for segment in spooled
        )
    # Remove locks before the record. Once the folder is gone, only the record identifies them.
    for path in find_lock_files(folder, trust_records.read_recorded_identity(project)):
        yield _make_file_trace(path, "lock")
    # Clones come before snapshots and the configuration, because saving their work needs git.
    yield from _find_workspace_traces(folder)
    # Snapshots come before the configuration, which git needs to remove them.
    if not keep_history:
        yield from _find_snapshots(folder, root.names())
    for path in own_configuration.list_configurations(folder):
        words = f"configuration for git: {_render_path(path)}"
        yield InstalledTrace(words, partial(remove_folder, path))
    if durable_files.path_exists(project.outputs):
        words = f"outputs of pipelines: {_render_path(project.outputs)}"
        yield InstalledTrace(words, partial(remove_folder, project.outputs))
    if durable_files.path_exists(project.path):
        yield InstalledTrace(
            f"records of the project: {_render_path(project.path)}", project.remove
        )
    if durable_files.path_exists(root.path) and not keep_history:
        words = f"logs, relays and transcripts: {_render_path(root.path)}"
        yield InstalledTrace(words, partial(remove_folder, root.path))


def _find_workspace_traces(folder: Path) -> Iterator[InstalledTrace | Leftover]:
    """Yield the agents' own clones and work trees. Their work is saved before they are removed."""
    for stored in list_stored_workspaces(folder):
        words = f"{stored.kind} of {stored.agent}: {_render_path(stored.folder)}"
        if stored.obstacle:
            yield Leftover(words, stored.obstacle, stored.hint)
        else:
            yield InstalledTrace(words, stored.remove)


def list_work_branches(folder: Path) -> list[str]:
    """Return the branches of agents with their own checkouts; empty without a repository."""
    top = own_configuration.find_top(folder)
    with suppress(RekindleError):
        refs = clone_files.parse_refs(os.fsdecode(WorkingCopy(top).refs())) if top else {}
        return clone_files.list_work_branches(refs)
    return []


def _find_snapshots(folder: Path, names: Collection[str]) -> Iterator[InstalledTrace]:
    """Yield the agents' snapshots in the repository. Ignore a missing or broken repository."""
    with suppress(RekindleError):
        snapshots = WorkSnapshots(folder)
        found = [one for one in snapshots.list() if one.label.agent in names]
        if found:
            words = f"{render_count(len(found), 'snapshot')} of the work tree: refs/rekindle in git"
            yield InstalledTrace(words, partial(_remove_snapshots, folder, found))


def _remove_snapshots(folder: Path, snapshots: list[Snapshot]) -> None:
    WorkSnapshots(folder).remove(snapshots)


def find_user_traces() -> Iterator[InstalledTrace | Leftover]:
    """Yield everything stored for the user that is not specific to one project."""
    places = [
        locate_hooks(cli, "user", None, os.environ)
        for cli in HARNESSES.working()
        if "user" in list_levels(cli)
    ]
    yield from _find_hook_traces(places)
    for _, place in find_places():
        if durable_files.path_exists(place.record):
            words = f"the plugin in {place.cli.title}"
            yield InstalledTrace(words, partial(_remove_plugin, place))
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
    workspaces = user_folder.find_workspaces_folder()
    if locks := sorted(workspaces.glob("*.lock")):
        words = f"locks for new clones: {_render_path(workspaces)}"
        yield InstalledTrace(words, partial(_remove_locks, workspaces, locks))
    if durable_files.path_exists(user_folder.find_user_folder()):
        own = user_folder.find_user_folder()
        yield InstalledTrace(
            f"your Rekindle folder: {_render_path(own)}", partial(remove_folder, own)
        )


def _remove_plugin(place: PluginPlace) -> None:
    remove_plugin(place)


def _remove_locks(folder: Path, locks: list[Path]) -> None:
    for path in locks:
        durable_files.remove_file(path)
    with suppress(OSError):  # a clone whose work could not be saved is still there
        folder.rmdir()


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
