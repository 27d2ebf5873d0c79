"""Use git to find the work done in a folder, without running any configured program."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rekindle.errors import AuditError
from rekindle.formats.identifiers import to_one_line
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.settings.runtime_settings import WORKTREE_CALL_SECONDS
from rekindle.system.git.own_configuration import find_top
from rekindle.system.git.repository import Repository
from rekindle.thresholds.storage import WORKTREE_NAMES
from rekindle.thresholds.texts import PATH_CHARACTERS, SUBJECT_CHARACTERS

_OURS = ":(exclude,top).rekindle"
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"),
    *("--ignore-submodules=all", "--", _OURS, "."),
)


class GitStatus:
    """Reads the git status of a folder. Results are empty if git is missing or too slow."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._opened: Repository | None = None

    @property
    def _repository(self) -> Repository | None:
        """The repository, which an agent may create or remove at any time."""
        if self._opened is None or self._opened.top != find_top(self._folder):
            self._opened = None
            with suppress(AuditError):
                self._opened = Repository(self._folder, timeout=WORKTREE_CALL_SECONDS)
        return self._opened

    def head(self) -> str:
        """Return the commit at HEAD; empty if there is none yet."""
        return self._read_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()

    def commit(self, named: str) -> str:
        """Return the id of the commit that the user named; empty if it does not exist."""
        wanted = ("--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
        return self._read_git("rev-parse", *wanted).strip()

    @property
    def is_known(self) -> bool:
        """Whether the folder is in a git repository."""
        return self._repository is not None

    def root(self) -> str:
        """Return the folder that file names are relative to; empty if unknown."""
        return str(self._repository.top) if self._repository else ""

    def fingerprint(self) -> str:
        """Return a hash of all visible changes in the folder; empty if unknown."""
        repository = self._repository
        if repository is None:
            return ""
        try:
            root, status = repository.top, repository.look(*_STATUS)
        except AuditError:
            return ""
        names = [entry[3:] for entry in status.split("\0") if entry][:WORKTREE_NAMES]
        parts = [self.head(), status, *(_make_stamp(root / name) for name in names)]
        return hash_bytes("\0".join(parts).encode("utf-8", "surrogateescape"))

    def changed(self) -> tuple[str, ...]:
        """Return the files that differ from the last commit, including untracked files."""
        status = self._read_git(*_STATUS)
        return _list_files(entry[3:] for entry in status.split("\0"))

    def committed(self, since: str) -> tuple[str, ...]:
        """Return the files changed by commits after `since`, or by all commits if it is empty."""
        if not since and not self.head():
            return ()
        wanted = f"{since}..HEAD" if since else "HEAD"
        output = self._read_git(
            *("log", "--format=", "--name-only", "-z", "--no-renames", "--no-show-signature"),
            *("--end-of-options", wanted, "--", _OURS, "."),
        )
        return _list_files(output.split("\0"))

    def after(self, then: datetime) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the subjects and files of all commits after a given time, newest first."""
        if not self.head():
            return (), ()
        when = f"--since={then.astimezone(UTC).isoformat()}"
        plain = ("-z", "-n", str(WORKTREE_NAMES), "--no-show-signature", when)
        log = self._read_git("log", "--format=%s", *plain, "HEAD", "--", _OURS, ".")
        names = ("--format=", "--name-only", "--no-renames")
        changed = self._read_git("log", *names, *plain, "HEAD", "--", _OURS, ".")
        subjects = tuple(
            to_one_line(subject, SUBJECT_CHARACTERS) for subject in log.split("\0") if subject
        )
        return subjects, _list_files(changed.split("\0"))

    def commits(self, since: str) -> tuple[str, ...]:
        """Return the subjects of commits after `since` that affect this folder, newest first."""
        if not since:
            return ()
        output = self._read_git(
            *("log", "--format=%s", "-z", "-n", str(WORKTREE_NAMES), "--no-show-signature"),
            *("--end-of-options", f"{since}..HEAD", "--", _OURS, "."),
        )
        return tuple(
            to_one_line(subject, SUBJECT_CHARACTERS) for subject in output.split("\0") if subject
        )

    def _read_git(self, *arguments: str) -> str:
        repository = self._repository
        if repository is None:
            return ""
        try:
            return repository.look(*arguments)
        except AuditError:
            return ""


def _make_stamp(file: Path) -> str:
    try:
        status = file.lstat()
    except OSError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


def _list_files(names: Iterable[str]) -> tuple[str, ...]:
    """Return the file names in order without duplicates, each reduced to one line."""
    unique = dict.fromkeys(to_one_line(name.strip("\n"), PATH_CHARACTERS) for name in names)
    return tuple(name for name in unique if name)[:WORKTREE_NAMES]
