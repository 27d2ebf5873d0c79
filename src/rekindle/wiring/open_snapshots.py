"""Find a work tree's snapshots, even without a manifest or `.rekindle`."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents.commits.snapshot_commit import Snapshot
from rekindle.errors import (
    ManifestError,
    NotFoundError,
    OwnershipError,
    RekindleError,
    UsageError,
)
from rekindle.formats.counts import render_count
from rekindle.policy.snapshots.snapshot_names import LIST_HINT
from rekindle.stores.folders import trust_records
from rekindle.system.git import own_configuration
from rekindle.system.git.repository import Repository
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.system.processes import launch_processes, program_search
from rekindle.thresholds.storage import REWIND_SECONDS, WORKTREE_CALL_SECONDS
from rekindle.wiring.agent_dir_list import choose_agent, find_agent_dir
from rekindle.wiring.agent_workspaces import find_workspace
from rekindle.wiring.running_agents import RunningAgents


class SnapshotPlace(msgspec.Struct, frozen=True):
    """A work tree with its agents' snapshots."""

    project: Project | None
    """The current folder's project; None if its manifest is missing or unreadable."""
    folder: Path
    """A folder in the work tree, which may be missing."""

    def open(self) -> WorkSnapshots:
        return WorkSnapshots(self.folder, seconds=REWIND_SECONDS)

    def shows(self, agent: str) -> bool:
        """Return whether an agent's snapshots are listed for this work tree.

        The user's repository also has the snapshots of agents with their own clones.
        """
        if self.project is None or agent not in self.project.manifest.agents:
            return True
        workspace = find_workspace(self.project, agent)
        return workspace is None or not workspace.exists or self.folder == workspace.folder

    def list_sharing(self) -> list[str]:
        """Return the project's agents that work in this work tree."""
        if self.project is None:
            return []
        top = own_configuration.find_top(self.folder)
        dirs = {name: find_agent_dir(self.project, name) for name in self.project.declared_agents}
        return [name for name, at in dirs.items() if own_configuration.find_top(at) == top]


def find_place(start: Path, agent: str | None) -> SnapshotPlace:
    """Return an agent's work tree, or that of the folder `start` if no agent is given."""
    project = _find_project(start)
    if project is not None and agent in project.manifest.agents:
        return make_place(project, agent)
    return SnapshotPlace(project, start)


def list_places(start: Path) -> list[SnapshotPlace]:
    """Return each work tree in which one of the current project's agents works."""
    project = _find_project(start)
    if project is None:
        return [SnapshotPlace(None, start)]
    places: dict[Path | None, SnapshotPlace] = {}
    for name in project.declared_agents:
        place = make_place(project, name)
        places.setdefault(own_configuration.find_top(place.folder), place)
    return list(places.values())


def make_place(project: Project, agent: str) -> SnapshotPlace:
    """Return an agent's work tree, or the user's if its own clone does not exist."""
    workspace = find_workspace(project, agent)
    if workspace is None:
        return SnapshotPlace(project, find_agent_dir(project, agent))
    return SnapshotPlace(project, workspace.folder if workspace.exists else project.path)


def choose_snapshot_agent(place: SnapshotPlace, start: Path, listed: list[Snapshot]) -> str:
    """Return the agent to use for a command that does not name one.

    Raises:
        NotFoundError: There is no snapshot.
        UsageError: Several agents have snapshots.
    """
    if place.project is not None and (chosen := choose_agent(place.project, start)):
        return chosen
    names = sorted({one.label.agent for one in listed})
    if not names:
        raise NotFoundError(f"there is no snapshot of {place.folder}", hint=LIST_HINT)
    if len(names) > 1:
        hint = f"name one of them: {', '.join(names)}"
        raise UsageError("which agent? several have snapshots of this work tree", hint=hint)
    return names[0]


def refuse_removed(place: SnapshotPlace, agent: str) -> None:
    """Refuse to restore a snapshot of an agent's removed clone in the user's checkout.

    Raises:
        NotFoundError: The agent's clone or work tree does not exist.
    """
    if place.project is None or agent not in place.project.manifest.agents:
        return
    workspace = find_workspace(place.project, agent)
    if workspace is not None and not workspace.exists:
        raise NotFoundError(
            f"{agent} has no clone or work tree at the moment",
            hint=f"`rekindle run {agent}` creates it again, with the files of its last snapshot",
        )


def refuse_working(place: SnapshotPlace) -> None:
    """Refuse to change a work tree in which an agent is working.

    Raises:
        OwnershipError: An agent is working there.
    """
    top = own_configuration.find_top(place.folder)
    if top is None:
        return
    projects = {*trust_records.list_recorded(), *((place.project.path,) if place.project else ())}
    running, names = RunningAgents(), set()
    for folder in projects:
        found = running.find(folder)
        names |= {name for name in found if _works_in(folder, name, top)}
    for launch in launch_processes.find_launches():
        project = launch.project.resolve()
        if project.is_relative_to(top) and not _has_own_checkout(project, launch.agent):
            names.add(launch.agent)
    if names:
        listed = ", ".join(sorted(names))
        commands = " and ".join(f"`rekindle stop {name}`" for name in sorted(names))
        raise OwnershipError(
            f"{listed} works in {top}: a rewind would change its files meanwhile",
            hint=f"run {commands}, then repeat the command",
        )


def _works_in(project: Path, agent: str, top: Path) -> bool:
    with suppress(RekindleError, KeyError):
        return find_agent_dir(config.load_project(project), agent).is_relative_to(top)
    return project.resolve().is_relative_to(top)


def _has_own_checkout(project: Path, agent: str) -> bool:
    with suppress(RekindleError, KeyError):
        workspace = find_workspace(config.load_project(project), agent)
        return workspace is not None and workspace.exists
    return False


def _find_project(start: Path) -> Project | None:
    """Return the project of a folder, or None if an agent removed or damaged its manifest."""
    try:
        return config.load_project(start)
    except ManifestError:
        # Otherwise Rekindle might run a `git` that an agent has placed here.
        program_search.exclude_folders(own_configuration.find_top(start) or start)
        return None


MIRROR_HINT = "never run `git push --mirror`, which would publish them; push branches by name"


def explain_mirror(project: Project, agent: str) -> str:
    """Return a warning if snapshots could be pushed to a remote, or ""."""
    workspace = find_workspace(project, agent)
    folder = workspace.checkout.repository if workspace else find_agent_dir(project, agent)
    with suppress(RekindleError):
        repository = Repository(folder, timeout=WORKTREE_CALL_SECONDS)
        count = len(WorkSnapshots(folder).list())
        if count and repository.look("remote").strip():
            return (
                f"the repository has {render_count(count, 'snapshot')} of its work tree, which may"
                " contain secrets that .gitignore does not list"
            )
    return ""


def iterate_snapshots(places: list[SnapshotPlace]) -> Iterator[tuple[SnapshotPlace, Snapshot]]:
    """Yield each work tree's snapshots."""
    for place in places:
        opened = place.open()
        for one in opened.list():
            if one.worktree == opened.worktree and place.shows(one.label.agent):
                yield place, one
