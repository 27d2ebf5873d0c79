"""Create, update and remove the clones and work trees in which agents work.

    WORKSPACES/PROJECT-HASH/AGENT/        the agent's clone or work tree
    WORKSPACES/PROJECT-HASH/AGENT.json    its record, which shows whether it is complete
    WORKSPACES/PROJECT-HASH/AGENT.lock

If a process is killed while it creates a checkout, the record shows this, and the next process
starts from scratch. No agent is started before the checkout is complete. A folder without a
readable record may contain work, so it is moved aside and never removed.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.errors import ManifestError, WorkspaceError, translate_os_errors
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders import agent_folder, private_files, trust_records
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks, user_folder
from rekindle.system.git import own_configuration
from rekindle.system.git.agent_checkout import AgentCheckout, CheckoutKind, NewCheckout
from rekindle.system.git.publish_work import publish_work
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.remove_folder import remove_folder
from rekindle.thresholds.storage import (
    LOCK_POLL_SECONDS,
    WORKSPACE_CALL_SECONDS,
    WORKSPACES_AT_ONCE,
)
from rekindle.wiring.prepared_clone import make_preparing_opener

_SCHEMA = 1


class WorkspaceRecord(msgspec.Struct, frozen=True):
    """The record of a clone or work tree."""

    kind: CheckoutKind
    base: str = ""
    """Commit that the checkout started from; empty if the checkout is incomplete."""
    repository: str = ""
    """Path of the user's repository."""
    is_complete: bool = True
    """Whether the checkout is complete, so an agent may have worked in it."""
    v: int = _SCHEMA


class AgentWorkspace:
    """An agent's own checkout on this host."""

    def __init__(self, project: Path, repository: Path, agent: str, kind: CheckoutKind) -> None:
        self._private = private_files.find_private_project(project)
        self._project, self._above = project.resolve(), self._private.workspaces
        self.folder = self._above / agent
        self._record = self._above / f"{agent}.json"
        self._lock = self._above / f"{agent}.lock"
        self.checkout = AgentCheckout(repository, self.folder, agent, kind)

    @property
    def exists(self) -> bool:
        """Whether the folder is complete and still has its repository."""
        record = read_record(self._record)
        return record is not None and record.is_complete and (self.folder / ".git").exists()

    def repair(self) -> None:
        """If the user moved the project, move the folder and reconnect it to the repository."""
        with self.hold():
            self._repair()

    def find_former_folder(self) -> Path | None:
        """Return the checkout's folder at a former path of the project, or None."""
        name = self.checkout.agent
        for path in trust_records.list_former_paths(self._private, clock.read_clock()):
            above = private_files.PrivateProject(path).workspaces
            record = read_record(above / f"{name}.json")
            if record is not None and record.is_complete and (above / name / ".git").exists():
                return above / name
        return None

    def open(
        self, copies: tuple[str, ...], prepare: Callable[[], None], *, updates: bool
    ) -> NewCheckout | None:
        """Create a missing or broken checkout, or update it. Return it if it is new, or None.

        `copies` are paths in the project. `prepare` runs the agent's `prepare:` command.
        """
        with self.hold():
            self._repair()
            record = read_record(self._record)
            if self.exists and record is not None and record.kind != self.checkout.kind:
                name = self.checkout.agent
                raise WorkspaceError(
                    "kind",
                    f"{name} works in a {record.kind}, but its `workspace:` is now "
                    f"{self.checkout.kind}",
                    hint=f"save its work and remove the folder: `rekindle clean {name}`",
                )
            if self.exists and self.checkout.is_sound():
                followed = self.checkout.update() if updates else ""
                if followed and record is not None:
                    self._write_record(msgspec.structs.replace(record, base=followed))
                return None
            moved = self._make_room(is_half_created=record is not None and not record.is_complete)
            self._write_record(WorkspaceRecord(self.checkout.kind, is_complete=False))
            with _hold_slot():
                base = self.checkout.create()
                self._copy_files(copies)
            prepare()
            # After a power loss, the record must not outlive the files.
            durable_files.sync_file_system(self.folder)
            repository = private_files.render_path(self.checkout.repository)
            self._write_record(WorkspaceRecord(self.checkout.kind, base, repository))
            return NewCheckout(base, moved)

    def read_base(self) -> str:
        """Return the user's commit that the checkout last started from, or ""."""
        record = read_record(self._record)
        return record.base if record is not None else ""

    def publish(self, now: datetime) -> None:
        """Copy commits and snapshots to the user's repository, if there is a checkout."""
        if self.exists:
            with self.hold():
                publish_work(self.checkout, now)

    def remove(self) -> None:
        """Remove the folder. The caller must have published its commits and a snapshot."""
        with self.hold():
            # If this process is killed, other processes must not use a partly removed folder.
            self._write_record(WorkspaceRecord(self.checkout.kind, is_complete=False))
            self.checkout.clean_up()
            if self.folder.exists():
                remove_folder(self.folder)
            durable_files.remove_file(self._record)
        durable_files.remove_file(self._lock)
        with suppress(OSError):  # other agents still have folders here
            self._above.rmdir()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock of this checkout.

        Raises:
            WorkspaceError: Another process holds it for too long.
        """
        for folder in (*reversed(self._above.parents), self._above):
            if not folder.exists():
                durable_files.make_folder(folder)
        with file_locks.hold_lock(self._lock, WORKSPACE_CALL_SECONDS) as lock:
            if lock is None:
                raise WorkspaceError(
                    "busy",
                    f"another process is creating or changing {self.folder}",
                    hint="wait for it, then repeat the command",
                )
            yield

    def _repair(self) -> None:
        former = None if self.folder.exists() else self.find_former_folder()
        if former is not None:
            record = former.with_name(f"{former.name}.json")
            # Copy the record first. If this process is killed partway, the next one finds the
            # folder at its former path.
            data = durable_files.read_bytes(record) or b""
            durable_files.replace_file(self._record, data)
            with translate_os_errors(former):
                former.rename(self.folder)
            durable_files.remove_file(record)
        current = read_record(self._record)
        if self.exists and current is not None and current.kind == self.checkout.kind:
            self.checkout.repair()

    def _make_room(self, *, is_half_created: bool) -> str:
        """Remove a half-created folder, or move any other folder aside.

        Return the new path of a folder that was moved, or "".
        """
        self.checkout.clean_up()
        with translate_os_errors(self.folder):
            if not self.folder.exists():
                return ""
            if not is_half_created and any(self.folder.iterdir()):
                moved = self.folder.with_name(f"{self.folder.name}.{time.time_ns()}")
                self.folder.rename(moved)
                return str(moved)
        remove_folder(self.folder)
        return ""

    def _write_record(self, record: WorkspaceRecord) -> None:
        durable_files.replace_file(self._record, msgspec.json.encode(record))

    def _copy_files(self, copies: tuple[str, ...]) -> None:
        for path in copies:
            source = self._project / path
            target = self.folder / source.relative_to(self.checkout.repository)
            with translate_os_errors(source):
                if Path(os.path.realpath(source)) != source:
                    raise WorkspaceError(
                        "linked", f"`copy: {to_one_line(path)}` leads through a link", hint="ls -l"
                    )
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
                else:
                    shutil.copy2(source, target, follow_symlinks=False)


def read_record(path: Path) -> WorkspaceRecord | None:
    """Return the record of a checkout, or None if it is missing or unreadable."""
    data = durable_files.read_bytes(path)
    try:
        return msgspec.json.decode(data, type=WorkspaceRecord) if data else None
    except msgspec.MsgspecError:
        return None


@contextmanager
def _hold_slot() -> Iterator[None]:
    """Wait until fewer than `WORKSPACES_AT_ONCE` checkouts are being created by this user.

    Creating more at the same time would take longer overall. After a timeout, the caller continues
    without a slot.
    """
    above = user_folder.find_workspaces_folder()
    deadline = time.monotonic() + WORKSPACE_CALL_SECONDS
    while time.monotonic() < deadline:
        for number in range(WORKSPACES_AT_ONCE):
            with file_locks.hold_lock(above / f"slot-{number}.lock", 0) as lock:
                if lock is not None:
                    yield
                    return
        time.sleep(LOCK_POLL_SECONDS)
    yield


def find_workspace(project: Project, name: str) -> AgentWorkspace | None:
    """Return an agent's own checkout, or None if it works in the user's checkout."""
    kind = project.manifest.agents[name].workspace
    if kind is None or kind == "here":
        return None
    repository = own_configuration.find_top(project.path)
    return AgentWorkspace(project.path, repository, name, kind) if repository else None


def make_opener(
    project: Project, name: str
) -> Callable[[Callable[[], None], bool], NewCheckout | None] | None:
    """Return the function that creates or updates an agent's own checkout, or None."""
    workspace = find_workspace(project, name)
    copies = tuple(project.manifest.agents[name].copy or ())
    if workspace is None:
        return make_preparing_opener(project, name)
    # A pipeline's worker continues from its own commit, never from the user's HEAD.
    follows = name not in project.workers
    return lambda prepare, updates: workspace.open(copies, prepare, updates=updates and follows)


def find_stored_workspace(project: Path, name: str) -> AgentWorkspace | None:
    """Return a complete checkout, even if the manifest no longer requests one, or None."""
    repository = own_configuration.find_top(project)
    above = private_files.find_private_project(project).workspaces
    record = read_record(above / f"{name}.json")
    if repository is None or record is None:
        return None
    workspace = AgentWorkspace(project, repository, name, record.kind)
    return workspace if workspace.exists else None


def check_workspace(project: Project, name: str) -> None:
    """Refuse settings with which the agent's checkout cannot be created.

    Raises:
        ManifestError: The settings contradict each other, or name a missing file.
    """
    entry, repository = project.manifest.agents[name], own_configuration.find_top(project.path)
    if entry.workspace is None or entry.workspace == "here":
        # On a fleet, every agent has its own clone.
        for key in ("copy",) if project.settings.fleet else ("copy", "prepare"):
            if getattr(entry, key):
                words = f"`{key}:` is only for an agent with its own clone or work tree"
                raise _make_error(project, name, key, words, "add `workspace: clone`")
        return
    if project.settings.fleet is not None:
        words = "`workspace:` has no effect on a fleet, where every agent has its own clone"
        raise _make_error(project, name, "workspace", words, "remove it")
    if repository is None:
        words = f"`workspace: {entry.workspace}` needs a git repository, and there is none here"
        raise _make_error(project, name, "workspace", words, "create one: git init")
    declared = (project.path / (entry.dir or AgentDefaults().dir)).resolve()
    if not declared.is_relative_to(repository):
        words = f"`dir:` is outside the repository {repository}"
        raise _make_error(project, name, "dir", words, "remove `dir:`, or `workspace:`")
    if entry.relay is not None:
        words = "an agent with its own clone or work tree cannot use a `relay:` of your checkout"
        raise _make_error(project, name, "relay", words, "remove `relay:`, or `workspace:`")
    _check_repository(project, name, repository)
    stored = find_stored_workspace(project.path, name)
    if stored is not None and stored.checkout.kind != entry.workspace:
        words = f"it works in a {stored.checkout.kind}, but its `workspace:` is now "
        hint = f"save its work and remove the folder: `rekindle clean {name}`"
        raise _make_error(project, name, "workspace", words + entry.workspace, hint)
    for path in entry.copy or ():
        _check_copy(project, name, path)


def _check_repository(project: Project, name: str, repository: Path) -> None:
    for other in trust_records.list_recorded():
        folder = private_files.find_private_project(other).workspaces / name
        is_other = other.resolve() != project.path.resolve()
        if is_other and folder.exists() and own_configuration.find_top(other) == repository:
            words = f"another project in this repository, {other}, has an agent of this name"
            raise _make_error(project, name, "workspace", words, "rename one of them")
    if "\n" in str(repository):
        words = "the path of the repository contains a line break"
        raise _make_error(project, name, "workspace", words, "rename its folder")
    if not WorkingCopy(repository).read_head().head:
        words = "the repository has no commit yet, so there is nothing to clone"
        hint = "commit your files first: git add -A && git commit"
        raise _make_error(project, name, "workspace", words, hint)


def _check_copy(project: Project, name: str, path: str) -> None:
    parts = Path(path).parts
    source = project.path.resolve() / path
    if not parts or Path(path).is_absolute() or ".." in parts:
        problem, hint = "is not a path inside the project", "use a path such as .env"
    elif not {agent_folder.REKINDLE_FOLDER, ".git"}.isdisjoint(parts):
        problem, hint = "is in the .rekindle or .git folder", "remove it from `copy:`"
    elif not source.exists():
        problem, hint = "does not exist", "create it, or remove it from `copy:`"
    elif Path(os.path.realpath(source)) != source:
        problem, hint = "leads through a link", "name the file itself"
    else:
        return
    words = f"`copy: {to_one_line(path)}` {problem}"
    raise _make_error(project, name, "copy", words, hint)


def _make_error(project: Project, name: str, key: str, words: str, hint: str) -> ManifestError:
    line = project.marked.line(("agents", name, key))
    return ManifestError(f"agent {name}: {words}", line=line, hint=hint)
