"""Run git on a repository with Rekindle's own configuration.

An agent can edit the configuration of its repository, and git runs programs that the configuration
names: filters, fsmonitor, textconv, hooks, signing, pagers. Git therefore never runs with that
file. Instead, GIT_COMMON_DIR points to a folder inside the user's Rekindle folder, with a safe
configuration and links to the repository's refs. Only the settings in `KEPT_SETTINGS` are copied
over, so later edits by the agent have no effect.

The repository is the one with the nearest `.git`. A folder that merely looks like a bare repository
is ignored, and `core.worktree` does not change the work tree.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rekindle.formats.json_codec import hash_bytes
from rekindle.system.files import user_folder
from rekindle.system.git.git_process import render_settings

KEPT_SETTINGS = frozenset(
    # These control how git compares and ignores files. None of them can run a program.
    {
        *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode"),
        *("core.autocrlf", "core.eol", "core.checkstat", "core.trustctime", "core.longpaths"),
        *("core.protecthfs", "core.protectntfs", "core.sharedrepository"),
        *("core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"),
        *("core.excludesfile", "core.attributesfile"),
    }
)
DISCOVERY_SETTINGS = {"safe.bareRepository": "explicit"}
_NO_USER_CONFIGURATION = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
_FOLDER = "repositories"
_SHARED_FILES = ("HEAD", "refs", "packed-refs", "reftable", "shallow", "worktrees")
_NO_CONVERSION = "* -text -ident -filter !eol !working-tree-encoding\n"
"""Attributes that make git store each file exactly as it is on disk."""
_FORMATS = {"extensions.objectformat": {"sha256"}, "extensions.refstorage": {"reftable"}}


class RepositoryPlace(msgspec.Struct, frozen=True):
    """A repository's folders and settings."""

    top: Path
    """Top folder of the work tree, or the repository itself if it is bare."""
    git_folder: Path
    common_folder: Path
    object_format: str
    config: str
    """Content of the configuration file that Rekindle gives to git."""
    settings: dict[str, str]
    worktree: str
    """Value of `core.worktree`, which submodules set; empty if unset."""

    def make_environment(self, *, converts: bool = True) -> dict[str, str]:
        """Return variables that make git use Rekindle's configuration for this repository.

        Without `converts`, attributes in the work tree do not change line endings or encodings.
        """
        is_bare = self.top == self.git_folder
        return {
            **_NO_USER_CONFIGURATION,
            **render_settings(self.settings),
            **({} if is_bare else {"GIT_WORK_TREE": str(self.top)}),
            "GIT_DIR": str(self.git_folder),
            "GIT_COMMON_DIR": str(_make_common_folder(self, converts=converts)),
            "GIT_OBJECT_DIRECTORY": str(self.common_folder / "objects"),
        }

    def find_link(self, *refs: str) -> Path | None:
        """Return a symbolic link that would redirect writes to objects, refs or HEAD, or None."""
        if not self._is_own_git_folder():
            return self.top / ".git"
        own_folders = {self.git_folder, self.git_folder.parent.parent}
        # Git looks up refs through `commondir`, even if GIT_COMMON_DIR is set.
        if {self.common_folder, self._read_common_folder()} - own_folders:
            return self.git_folder / "commondir"
        objects = self.common_folder / "objects"
        written = [
            objects,
            self.common_folder / "refs",
            self.common_folder / "packed-refs",  # git would follow this link
            self.git_folder / "logs",
            self.git_folder / "logs/HEAD",  # git appends to this file if it exists
            self.git_folder / "index",
            *(self.common_folder / above for ref in refs for above in Path(ref).parents),
        ]
        for path in written:
            if path != self.common_folder and path.is_symlink():
                return path
        with os.scandir(objects) as entries:
            return next((Path(entry.path) for entry in entries if entry.is_symlink()), None)

    def explain_link(self, link: Path) -> tuple[str, str]:
        """Return an error message and a hint about a link that blocks a write."""
        is_named = link.name == ".git" and link.is_file() and not link.is_symlink()
        return (
            f"{link} points outside the repository, and Rekindle does not write there",
            f"if you created it, run: git -C {self.top} config core.worktree {self.top}"
            if is_named
            else "replace it with a file"
            if link.name in {"packed-refs", "HEAD", "index", "commondir"}
            else "replace it with a folder",
        )

    def _read_common_folder(self) -> Path:
        """Return the folder that `commondir` points to, or the git folder itself."""
        try:
            named = (self.git_folder / "commondir").read_bytes()
        except FileNotFoundError:
            return self.git_folder
        return (self.git_folder / os.fsdecode(named).rstrip("\n")).resolve()

    def _is_own_git_folder(self) -> bool:
        """Return whether `.git` is inside this work tree, or points back to it."""
        named = self.top / ".git"
        if named.is_symlink():
            return False
        if self.top in self.git_folder.parents:
            return not self.git_folder.is_file()  # an agent may have replaced the folder
        try:
            back = (self.git_folder / "gitdir").read_bytes()[: os.pathconf("/", "PC_PATH_MAX")]
        except OSError:
            back = b""
        if back and (self.git_folder / os.fsdecode(back).rstrip("\n")).resolve() == named:
            return True
        return bool(self.worktree) and (self.git_folder / self.worktree).resolve() == self.top


def find_top(folder: Path) -> Path | None:
    """Return the nearest folder with a `.git`, searching upwards from this one, or None.

    Empty `.git` folders are ignored, because sandboxes leave them behind.
    """
    real = folder.resolve()
    return next((place for place in (real, *real.parents) if _has_repository(place)), None)


def find_place(top: Path, call: Callable[[Sequence[str]], bytes]) -> RepositoryPlace:
    """Return the repository in this folder. `call` runs git there and raises errors.

    Neither git command touches the work tree or starts other programs.
    """
    asked = ("rev-parse", "--show-object-format", "--absolute-git-dir", "--git-common-dir")
    lines = os.fsdecode(call(asked)).split("\n")
    if len(lines) < len(asked):
        raise OSError(errno.EBADMSG, "git did not report the folders of the repository", str(top))
    object_format, git_folder, common = lines[:3]
    settings = _parse_settings(call(("config", "--null", "--list")))
    git_place = Path(git_folder)
    formats = {
        name: settings[name] for name, known in _FORMATS.items() if settings.get(name) in known
    }
    is_bare = git_place == top.resolve()
    return RepositoryPlace(
        top=top.resolve(),
        git_folder=git_place,
        common_folder=(top / common).resolve(),
        object_format=object_format,
        config=_render_config(formats, is_bare=is_bare),
        settings={name: value for name, value in settings.items() if name in KEPT_SETTINGS},
        worktree=settings.get("core.worktree", ""),
    )


def _parse_settings(listed: bytes) -> dict[str, str]:
    """Parse settings. The last value wins, and a missing value means `true`."""
    settings = {}
    for entry in os.fsdecode(listed).split("\0")[:-1]:
        name, has_value, value = entry.partition("\n")
        settings[name] = value if has_value else "true"
    return settings


def _render_config(formats: dict[str, str], *, is_bare: bool) -> str:
    lines = [
        "[core]",
        f"repositoryformatversion = {1 if formats else 0}",
        f"bare = {str(is_bare).lower()}",
        *(["[extensions]"] if formats else []),
        *(f"{name.partition('.')[2]} = {value}" for name, value in formats.items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def list_configurations(folder: Path) -> list[Path]:
    """Return the configuration folders of all repositories in this folder."""
    above = user_folder.find_user_folder() / _FOLDER
    found = sorted(above.iterdir()) if above.is_dir() else []
    return [path for path in found if _read_repository(path).is_relative_to(folder)]


def _read_repository(configuration: Path) -> Path:
    """Return the repository that a configuration belongs to, or an empty path."""
    try:
        return (configuration / "HEAD").readlink().parent
    except OSError:
        return Path()


def _make_common_folder(place: RepositoryPlace, *, converts: bool) -> Path:
    """Return the folder with Rekindle's configuration. Its name is a hash of the content."""
    attributes = "" if converts else _NO_CONVERSION
    name = hash_bytes(os.fsencode(f"{place.common_folder}\0{place.config}{attributes}"))
    above = user_folder.make_user_folder(_FOLDER)
    folder = above / name
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(dir=above) as temporary:
        made = Path(temporary, name)
        (made / "info").mkdir(parents=True)
        for file in (*_SHARED_FILES, "info/exclude"):  # info/attributes could name filters
            (made / file).symlink_to(place.common_folder / file)
        if attributes:
            (made / "info/attributes").write_text(attributes)
        (made / "config").write_text(place.config)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # another process may have created it first
                raise
    return folder


def _has_repository(folder: Path) -> bool:
    """Return whether `.git` is a file or a repository; False if it is unreadable."""
    named = folder / ".git"
    try:
        return not stat.S_ISDIR(named.stat().st_mode) or bool((named / "HEAD").lstat())
    except OSError:
        return False
