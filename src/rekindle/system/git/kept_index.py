"""Capture a work tree byte for byte, using an index that the next capture reuses.

The index is in the user's Rekindle folder, outside the workspace. It contains every file as it is
on disk, without filters or line-ending conversion. The user's own index is only read, to find out
which ignored files are tracked. A file is reread only if its status has changed.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rekindle.documents.agent_export import FILE_SUFFIX
from rekindle.errors import WorkspaceError, translate_os_errors
from rekindle.formats.json_codec import hash_bytes
from rekindle.system.files import durable_files, file_locks, file_status
from rekindle.system.git.tree_snapshot import OWN_FOLDER, UNBORN, WorkingCopy
from rekindle.system.git.workspace_git import make_refusal

_OURS_BY_PATTERN = f"{OWN_FOLDER[:-1]}[{OWN_FOLDER[-1]}]"
_NOT_OURS = (
    # Matches at any depth, because a rewind must never change Rekindle's own files.
    f":(exclude,top,glob)**/{_OURS_BY_PATTERN}",
    f":(exclude,top,glob)**/{_OURS_BY_PATTERN}/**",
)
_TEMPORARY = "capture-"
Names = Collection[bytes]


class CapturedFiles(msgspec.Struct, frozen=True):
    """The content of a work tree."""

    tree: str
    left_out: dict[bytes, str]
    """Paths that are not in the tree, each with the reason."""


class _State(msgspec.Struct, frozen=True):
    """The last capture, stored next to the index."""

    tree: str
    stamp: tuple[int, ...] | None
    """Stamp of the user's index at the time of the capture."""
    left_out: tuple[tuple[bytes, str], ...] = ()


class KeptIndex:
    """The index for captures of one work tree. The caller holds its lock."""

    def __init__(self, copy: WorkingCopy, file_bytes: int) -> None:
        """Find the index. Captures leave out untracked files larger than `file_bytes`."""
        self._copy, self._file_bytes = copy, file_bytes
        name = hash_bytes(os.fsencode(copy.git_folder))
        self._folder = copy.own_folder / "captures" / name
        self.index = self._folder / "index"
        self._state = self._folder / "state"

    @contextmanager
    def hold(self, wait: float) -> Iterator[None]:
        """Hold the lock for this work tree's snapshots.

        Raises:
            WorkspaceError: The lock is not free within `wait` seconds.
        """
        for folder in (self._folder.parent, self._folder):
            durable_files.make_folder(folder)
        with file_locks.hold_lock(self._folder / "lock", wait) as lock:
            if lock is None:
                reason = "another process is taking or restoring a snapshot of this work tree"
                raise WorkspaceError("busy", reason, hint="wait for it, then repeat the command")
            for leftover in self._folder.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            yield

    def capture(self, stored: Collection[str], *, keep: bool = True) -> CapturedFiles:
        """Return the content of the work tree.

        `stored` contains the trees of existing snapshots. An index for another tree is not used,
        because git may have pruned its objects.
        """
        state = self._read_state()
        if state is None or state.tree not in stored:
            self.forget()
            return self._capture_changes(None, keep=keep)
        try:
            others = self._list_names("--others", "--exclude-standard")
            if self._is_unchanged(state, others):
                return CapturedFiles(state.tree, dict(state.left_out))
            return self._capture_changes(others, keep=keep)
        except WorkspaceError as error:
            if error.cause != "refused":
                raise
            self.forget()  # the index may be damaged
            return self._capture_changes(None, keep=keep)

    def forget(self) -> None:
        for path in (self._state, self.index):
            durable_files.remove_file(path)

    @contextmanager
    def work_on_copy(self) -> Iterator[Path]:
        """Yield a temporary copy of the index, so that a killed git cannot damage the original."""
        with (
            translate_os_errors(self._folder),
            tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self._folder) as place,
        ):
            copied = Path(place) / "index"
            with suppress(FileNotFoundError):
                # Preserve the modification time, because git rereads files that are as new as the
                # index.
                shutil.copy2(self.index, copied)
            yield copied

    def _is_unchanged(self, state: _State, others: Iterable[bytes]) -> bool:
        left_out = dict(state.left_out)
        if state.stamp != file_status.make_file_stamp(self._copy.index):
            return False
        if any(name not in left_out or self._explain_unfit(name) is None for name in others):
            return False
        query = ("diff-files", "-z", "--name-only", "--ignore-submodules=dirty", "--")
        return not self._copy.call(*query, ":/", *_NOT_OURS, index=self.index)

    def _capture_changes(self, others: Names | None, *, keep: bool) -> CapturedFiles:
        """Update the index. `others` are the untracked files, or None to list them."""
        stamp = file_status.make_file_stamp(self._copy.index)
        tracked = set(self._list_names("--cached", index=self._copy.index))
        with self.work_on_copy() as index:
            if others is None:
                others = self._list_names("--others", "--exclude-standard", index=index)
            captured = set(self._list_names("--cached", index=index))
            extra = captured - tracked
            unfit = {
                name: why
                for name in (*others, *extra)
                if name not in tracked and (why := self._explain_unfit(name))
            }
            dropped = (unfit.keys() & extra) | self._select_ignored(extra)
            if dropped:
                self._update_index(index, "--force-remove", names=dropped)
            unborn = self._add_all(index, unfit)
            # These are tracked but ignored. `add` skips them unless the index has them.
            missing = tracked - captured - set(others)
            if forced := [name for name in missing if self._is_plain_file(name)]:
                self._update_index(index, "--add", "--replace", names=forced)
            tree = os.fsdecode(self._copy.call("write-tree", index=index)).strip()
            left_out = unfit | dict.fromkeys(unborn, "a repository without a commit")
            if keep:
                self.install(index, CapturedFiles(tree, left_out), stamp)
        return CapturedFiles(tree, left_out)

    def install(
        self, index: Path, content: CapturedFiles, stamp: tuple[int, ...] | None = None
    ) -> None:
        """Save an index together with the content that it describes."""
        durable_files.remove_file(self._state)
        with translate_os_errors(self.index):
            index.replace(self.index)
        state = _State(content.tree, stamp, tuple(content.left_out.items()))
        durable_files.replace_file(self._state, msgspec.msgpack.encode(state))

    def _add_all(self, index: Path, unfit: Names) -> list[bytes]:
        """Add all suitable files. Return nested repositories that have no commit."""
        excluded = [b":(exclude,top,literal)" + name for name in unfit]
        specs = b"\0".join([b":/", *map(os.fsencode, _NOT_OURS), *excluded])
        ended = self._copy.ask(
            *("add", "--ignore-errors", "-A", "--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=specs,
            index=index,
        )
        complaints = [line for line in ended.complaint.splitlines() if line.startswith("error: ")]
        if ended.code and not (complaints and all(UNBORN in line for line in complaints)):
            raise make_refusal("add", ended)
        return [os.fsencode(line.split("'")[1]) for line in complaints if line.count("'") > 1]

    def _select_ignored(self, names: Names) -> set[bytes]:
        if not names:
            return set()
        query = ("check-ignore", "--no-index", "-z", "--stdin")
        found = self._copy.call(*query, stdin=b"\0".join(names) + b"\0", may_fail_with=1)
        return set(found.split(b"\0")[:-1])

    def _update_index(self, index: Path, *options: str, names: Names) -> None:
        given = b"".join(name + b"\0" for name in names)
        self._copy.call("update-index", *options, "-z", "--stdin", stdin=given, index=index)

    def _list_names(self, *what: str, index: Path | None = None) -> list[bytes]:
        query = ("ls-files", "-z", *what, "--", ":/", *_NOT_OURS)
        return self._copy.call(*query, index=index or self.index).split(b"\0")[:-1]

    def _explain_unfit(self, name: bytes) -> str | None:
        """Return why an untracked file is left out, or None."""
        path = self._locate(name)
        try:
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                if name.endswith(FILE_SUFFIX.encode()):
                    return "an exported agent"  # it contains an earlier snapshot itself
                if status.st_size > self._file_bytes:
                    return f"larger than {self._file_bytes / 1e6:g} MB"
                if not os.access(path, os.R_OK):
                    return "not readable"
            if name.endswith(b"/"):  # a nested repository
                return None if os.access(path, os.X_OK) else "not readable"
        except OSError:
            pass  # it was just removed
        return None

    def _is_plain_file(self, name: bytes) -> bool:
        """Return whether a path is a file or a link, and no folder above it is a link."""
        parts = name.split(b"/")
        above = (self._locate(b"/".join(parts[:length])) for length in range(1, len(parts)))
        try:
            mode = os.lstat(self._locate(name)).st_mode
            return (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not any(map(_is_link, above))
        except OSError:
            return False

    def _locate(self, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self._copy.folder), name)  # noqa: PTH118 - bytes

    def _read_state(self) -> _State | None:
        data = durable_files.read_bytes(self._state)
        if data is None or not self.index.exists():
            return None
        try:
            return msgspec.msgpack.decode(data, type=_State)
        except msgspec.MsgspecError:
            return None


def _is_link(path: bytes) -> bool:
    return stat.S_ISLNK(os.lstat(path).st_mode)
