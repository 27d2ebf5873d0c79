"""List the clones and work trees of a project's agents, and find problems in them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.config import Project
from rekindle.errors import translate_os_errors
from rekindle.stores.files.folder_check import FolderProblem
from rekindle.stores.folders import private_files
from rekindle.system.git import own_configuration
from rekindle.system.git.agent_checkout import HALF_MADE
from rekindle.system.remove_folder import remove_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace, find_workspace, read_record
from rekindle.wiring.save_work import save_on_branch

Condition = Literal["complete", "half-created", "aside", "unknown", "cut off"]
_TAKE = "take what you need from it, then remove it: rm -r {folder}"
_EXPLANATIONS: dict[Condition, str] = {
    "aside": "Rekindle moved it aside, because it was not usable, and it may contain work",
    "unknown": "it has no readable record, and may contain work",
    "cut off": "the repository that it belongs to is not there, so its work cannot be saved",
}


class StoredWorkspace(msgspec.Struct, frozen=True):
    """A folder in which an agent works or worked."""

    agent: str
    folder: Path
    kind: str
    """`clone` or `worktree`; `folder` if it is unknown."""
    condition: Condition
    workspace: AgentWorkspace | None = None
    """The checkout; None if its repository is missing."""

    @property
    def obstacle(self) -> str:
        """Reason why the work in the folder cannot be saved; empty if it can be saved."""
        return _EXPLANATIONS.get(self.condition, "")

    @property
    def hint(self) -> str:
        return _TAKE.format(folder=self.folder)

    def remove(self) -> None:
        """Save the work on the agent's branch, then remove the folder.

        Raises:
            WorkspaceError: A file or a commit would be lost.
        """
        if self.workspace is None:
            remove_folder(self.folder)
            return
        if self.condition == "complete":
            save_on_branch(self.workspace)
        self.workspace.remove()


def list_stored_workspaces(project: Path) -> list[StoredWorkspace]:
    """Return the folders of a project's agents, including agents that are not in the manifest."""
    above = private_files.find_private_project(project).workspaces
    if not above.is_dir():
        return []
    with translate_os_errors(above):
        folders = sorted(entry for entry in above.iterdir() if entry.is_dir())
    return [_describe_folder(project, folder) for folder in folders]


def _describe_folder(project: Path, folder: Path) -> StoredWorkspace:
    agent, is_aside, suffix = folder.name.partition(".")
    make = partial(StoredWorkspace, agent, folder)
    if suffix.startswith(HALF_MADE.removeprefix(".")):
        return make("folder", "half-created")
    record = read_record(folder.with_name(f"{folder.name}.json"))
    if is_aside or record is None:
        return make("folder", "aside" if is_aside else "unknown")
    repository = own_configuration.find_top(project)
    if repository is None:
        return make(record.kind, "cut off" if record.is_complete else "half-created")
    workspace = AgentWorkspace(project, repository, agent, record.kind)
    if not record.is_complete:
        return make(record.kind, "half-created", workspace)
    if not workspace.exists:
        return make(record.kind, "unknown")
    is_cut_off = workspace.checkout.find_missing() is not None
    return make(record.kind, "cut off" if is_cut_off else "complete", workspace)


def find_workspace_problems(project: Project, name: str) -> Iterator[FolderProblem]:
    """Yield the problems with an agent's own checkout, each with a command that fixes it."""
    declared = find_workspace(project, name)
    for stored in list_stored_workspaces(project.path):
        if stored.agent != name:
            continue
        if stored.condition == "half-created":
            words = f"the {stored.kind} {stored.folder} is not complete"
            fix = f"`rekindle run {name}` creates it again, or `rekindle forget` removes it"
            yield FolderProblem(words, fix, is_note=True)
        elif stored.condition == "cut off":
            missing = stored.workspace.checkout.find_missing() if stored.workspace else None
            words = f"its {stored.kind} reads {missing}, which does not exist"
            fix = f"`rekindle merge {name} --check` connects it with your repository again"
            yield FolderProblem(words, fix)
        elif stored.obstacle:
            words = f"{stored.folder} is not used: {stored.obstacle}"
            yield FolderProblem(words, stored.hint, is_note=True)
        elif declared is None:
            words = f"it now works in your checkout, and also has the {stored.kind} {stored.folder}"
            fix = f"`rekindle merge {name}`, then `rekindle clean {name}`"
            yield FolderProblem(words, fix, is_note=True)
    if declared is not None and not declared.folder.exists():
        former = declared.find_former_folder()
        if former is not None:
            words = f"you have moved the project, and its {declared.checkout.kind} is in {former}"
            fix = f"`rekindle run {name}` or `rekindle merge {name}` moves it"
            yield FolderProblem(words, fix, is_note=True)
