"""What has been done in a folder, as git knows it. Read only; nobody's program is run for it."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rekindle.documents.identity import one_line
from rekindle.documents.jsontext import fingerprint
from rekindle.errors import AuditError
from rekindle.policy.settings import WORKTREE_CALL_SECONDS
from rekindle.system.git import Repository
from rekindle.thresholds.storage import WORKTREE_NAMES
from rekindle.thresholds.texts import PATH_CHARACTERS, SUBJECT_CHARACTERS

_OURS = ":(exclude,top).rekindle"
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"),
    *("--ignore-submodules=all", "--", _OURS, "."),
)


class WorkTree:
    """Where there is no git, or it does not answer in time, nothing is known of it."""

    def __init__(self, folder: str) -> None:
        self._repository: Repository | None = None
        with suppress(AuditError):
            self._repository = Repository(Path(folder), timeout=WORKTREE_CALL_SECONDS)

    def head(self) -> str:
        """The commit that it stands at; empty: there is none yet."""
        return self._look("rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()

    def commit(self, named: str) -> str:
        """The commit that a person has named; empty: there is none."""
        wanted = ("--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
        return self._look("rev-parse", *wanted).strip()

    @property
    def is_known(self) -> bool:
        """Whether there is anything to be known."""
        return self._repository is not None

    def root(self) -> str:
        """The folder that all names begin from; empty: nobody knows."""
        return self._look("rev-parse", "--show-toplevel").rstrip("\n")

    def fingerprint(self) -> str:
        """The same as long as nothing changes that git sees; empty: nobody knows."""
        if self._repository is None:
            return ""
        try:
            root = Path(self._repository.look("rev-parse", "--show-toplevel").rstrip("\n"))
            said = self._repository.look(*_STATUS)
        except AuditError:
            return ""
        names = [one[3:] for one in said.split("\0") if one][:WORKTREE_NAMES]
        told = [self.head(), said, *(_stamp(root / name) for name in names)]
        return fingerprint("\0".join(told).encode("utf-8", "surrogateescape"))

    def changed(self) -> tuple[str, ...]:
        """The files that are not as they were committed, and those that never were."""
        said = self._look(*_STATUS)
        return _files(one[3:] for one in said.split("\0"))

    def committed(self, since: str) -> tuple[str, ...]:
        """The files that the commits after one have changed; an empty one: all of them."""
        if not since and not self.head():
            return ()
        wanted = f"{since}..HEAD" if since else "HEAD"
        said = self._look(
            *("log", "--format=", "--name-only", "-z", "--no-renames", "--no-show-signature"),
            *("--end-of-options", wanted, "--", _OURS, "."),
        )
        return _files(said.split("\0"))

    def after(self, then: datetime) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the commits after a moment say, newest first, and the files that they changed."""
        if not self.head():
            return (), ()
        when = f"--since={then.astimezone(UTC).isoformat()}"
        plain = ("-z", "-n", str(WORKTREE_NAMES), "--no-show-signature", when)
        said = self._look("log", "--format=%s", *plain, "HEAD", "--", _OURS, ".")
        names = ("--format=", "--name-only", "--no-renames")
        changed = self._look("log", *names, *plain, "HEAD", "--", _OURS, ".")
        subjects = tuple(
            one_line(subject, SUBJECT_CHARACTERS) for subject in said.split("\0") if subject
        )
        return subjects, _files(changed.split("\0"))

    def commits(self, since: str) -> tuple[str, ...]:
        """What the commits after one say, newest first."""
        if not since:
            return ()
        said = self._look(
            *("log", "--format=%s", "-z", "-n", str(WORKTREE_NAMES), "--no-show-signature"),
            *("--end-of-options", f"{since}..HEAD"),
        )
        return tuple(
            one_line(subject, SUBJECT_CHARACTERS) for subject in said.split("\0") if subject
        )

    def _look(self, *arguments: str) -> str:
        if self._repository is None:
            return ""
        try:
            return self._repository.look(*arguments)
        except AuditError:
            return ""


def _stamp(file: Path) -> str:
    try:
        found = file.lstat()
    except OSError:
        return "gone"
    return f"{found.st_size} {found.st_mtime_ns}"


def _files(names: Iterable[str]) -> tuple[str, ...]:
    """In their order, each once, on a line each."""
    found = dict.fromkeys(one_line(name.strip("\n"), PATH_CHARACTERS) for name in names)
    return tuple(name for name in found if name)[:WORKTREE_NAMES]
