"""A pipeline run on a host, with a clone of its repository and a copy of the run's folder.

The git remote is the source of truth, so any host can do the next task. Everything here can be
recreated. Refs on the remote, below `refs/rekindle/pipelines/PIPELINE/RUN/`:

| ref | commit |
|---|---|
| `_base` | commit that reserves the run's number; its parent is the run's first commit |
| `_outputs/AGENT/ATTEMPT` | outputs of a worker; its parent is the worker's result |
| `_inputs/AGENT/ATTEMPT` | outputs of earlier steps, for a worker |
| `STEP/STAGE` | merged commits |

The id of a step does not start with an underscore.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rekindle.documents.clone_files import make_work_branch
from rekindle.documents.commits import work_commit
from rekindle.documents.commits.work_commit import PushedWork, WorkSnapshot
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.errors import WorkspaceError
from rekindle.fleet.hosts.step_inputs import make_folders, write_tree
from rekindle.formats import json_codec, yaml_lines
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.settings.runtime_settings import FleetSettings, resolve_settings
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.shared_mirror import MIRRORS, SharedMirror, open_queue
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.run_refs import make_result_branch

_FILE = "100644"


class HostRun:
    """A run on this host. Only one thread may use the clone at a time."""

    def __init__(self, root: Path, host: str, registered: RegisteredPipeline) -> None:
        self.registered, self.definition = registered, registered.definition
        self.state = registered.fold()
        self._host, self._url = host, registered.agent.remote
        place = (self.definition.pipeline, str(self.definition.run))
        self._place = _find_place(root, self._url)
        self.folder = RunFolder(
            self._place.joinpath("runs", *place), self._place.joinpath("outputs", *place)
        )
        for path in (self.folder.path, self.folder.outputs):
            make_folders(path)
        fleet = resolve_settings(yaml_lines.parse(registered.agent.manifest, MANIFEST_FILE)).fleet
        rate = (fleet or FleetSettings()).pushes_per_minute
        self._queue = open_queue(root / MIRRORS, self._url, rate)
        self.clone = open_clone(root, self._url)

    @property
    def refs(self) -> str:
        """Prefix of the run's refs."""
        return make_run_refs(self.definition.pipeline, self.definition.run)

    def fetch(self, *patterns: str) -> dict[str, str]:
        """Fetch refs from the remote (default: all refs of the run), and return their commits."""
        remote = RemoteRepository(self._url, "")
        return remote.copy_refs(self.clone, *(patterns or (f"{self.refs}*",)))

    def push(self, ref: str, commit: str) -> None:
        """Set a ref in the clone and on the remote."""
        remote = RemoteRepository(self._url, ref, self._queue)
        expected = remote.look().work
        if expected != commit and not remote.push(self.clone, commit, expected):
            raise _make_contested_error(ref)
        self.clone.move(ref, commit)

    def push_result(self, commit: str) -> str:
        """Push the run's result to its branch, and return the branch.

        If the branch already contains the result, commits that a person has added are kept.

        Raises:
            WorkspaceError: The branch has other commits, or another program has just moved it.
        """
        branch = make_result_branch(self.folder)
        ref = f"refs/heads/{branch}"
        tip = self.fetch(ref).get(ref, "")
        if tip and self.clone.is_kept((commit,), by=(tip,)):
            return branch
        if not self.clone.is_kept((tip,), by=(commit,)):
            raise WorkspaceError(
                "changed",
                f"the branch {branch} of the remote is for the result of the run, but it has "
                "other commits",
                hint="rename it, and the run continues: git fetch origin "
                f"{branch}:NAME && git push origin NAME :{branch}",
            )
        if not RemoteRepository(self._url, ref, self._queue).push(self.clone, commit, tip):
            raise _make_contested_error(ref)
        return branch

    def push_start(self, began: WorkerBegan) -> PushedWork:
        """Push the commit that a worker starts from to its work branch."""
        ref = work_commit.make_work_ref(began.agent)
        before = self.fetch(ref).get(ref, "")
        branch = make_work_branch(began.agent)
        snapshot = WorkSnapshot(began.agent, 0, self._host, branch, began.commit)
        tree = self.clone.find_tree(began.commit)
        message = work_commit.render(snapshot)
        revision = self.clone.commit(tree, (began.commit, before), message)
        self.push(ref, revision)
        return PushedWork(revision, began.commit, branch)

    def write_outputs(self) -> None:
        """Write the outputs of all finished workers to the run's folder."""
        for (step, _), worker in self.state.workers.items():
            if worker.status != "done" or not self.definition.find_step(step).outputs:
                continue
            ref = f"{self.refs}_outputs/{worker.agent}/{worker.attempt}"
            write_tree(self.clone, ref, self.folder.outputs)

    def commit_files(self, files: Iterable[tuple[str, str]], parent: str, message: str) -> str:
        """Create a commit from paths and their blobs, and return its id."""
        lines = b"".join(os.fsencode(f"{_FILE} {blob} 0\t{path}\0") for path, blob in files)
        with self.hold_index() as index:
            self.clone.call("update-index", "-z", "--index-info", stdin=lines, index=index)
            tree = os.fsdecode(self.clone.call("write-tree", index=index)).strip()
        return self.clone.commit(tree, (parent,), message)

    def store_blob(self, data: bytes) -> str:
        return os.fsdecode(self.clone.call("hash-object", "-w", "--stdin", stdin=data)).strip()

    @contextmanager
    def hold_index(self) -> Iterator[Path]:
        """Yield the path of an empty index."""
        with tempfile.TemporaryDirectory(dir=self._place) as folder:
            yield Path(folder) / "index"


def open_clone(root: Path, url: str) -> WorkingCopy:
    """Return this host's clone of a repository. Only one thread may use it at a time."""
    place = _find_place(root, url)
    make_folders(place)
    mirror, clone = SharedMirror(root / MIRRORS, url), place / "clone"
    if not (clone / ".git").exists():
        mirror.clone(clone, RemoteRepository(url, "HEAD").look())
    copy = WorkingCopy(clone)
    if mirror.is_missing(clone):
        mirror.restore(copy, "HEAD")
    return copy


def _make_contested_error(ref: str) -> WorkspaceError:
    return WorkspaceError(
        "contested", f"another program moved {ref}", hint="the fleet repeats the task"
    )


def _find_place(root: Path, url: str) -> Path:
    return root / "pipelines" / json_codec.hash_bytes(url.encode())[:16]
