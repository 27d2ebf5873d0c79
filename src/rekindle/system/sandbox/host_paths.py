"""Find the system files, programs and CLI state that a sandbox shows."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import rekindle
from rekindle.documents.launches.sandbox_needs import StateFolder
from rekindle.errors import translate_os_errors
from rekindle.policy.sandbox.mounts import StatePaths
from rekindle.system.files import durable_files

_SYSTEM = ("/usr", "/etc", "/opt", "/nix", "/run/current-system")
_LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""System folders that are links to /usr on most hosts."""
_SECRETS = ("shadow*", "gshadow*", "ssh/ssh_host_*_key", "ssl/private/*.key")
"""Files in /etc that only root may read."""
_MODULES = "node_modules"


def find_system() -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the system's folders, and its links with their targets."""
    links = {path: os.readlink(path) for path in _LINKED if Path(path).is_symlink()}  # noqa: PTH115 - the text
    folders = (path for path in (*_SYSTEM, *_LINKED) if path not in links)
    return tuple(path for path in folders if Path(path).is_dir()), links


def find_secrets(files: Iterable[str]) -> tuple[str, ...]:
    """Return the files that exist among these and the system's own secrets, with their targets."""
    system = (str(path) for pattern in _SECRETS for path in Path("/etc").glob(pattern))
    return tuple(one for one in _with_targets((*files, *system)) if Path(one).is_file())


def find_runtime() -> tuple[str, ...]:
    """Return the folders of the Rekindle package and of the Python that runs it."""
    package = Path(rekindle.__file__).parent
    found = (sys.prefix, sys.base_prefix, str(package))
    return _with_targets(path for path in found if path != "/")


def find_programs(words: Sequence[str], path: str, home: str, project: str = "") -> tuple[str, ...]:
    """Return the folders in PATH, and the folders of the programs and files named in `words`.

    With `project`, the author of the words may read only programs and this project's own files.
    Other files may be credentials of the host.
    """
    folders = [
        folder
        for folder in path.split(os.pathsep)
        if folder.startswith("/") and not Path(home).is_relative_to(folder)
    ]
    files = [word for word in words if word.startswith("/") and Path(word).is_file()]
    if project:
        folders += _list_on_host(files, (Path(home), Path.home()), Path(project).resolve())
    else:
        for file in files:
            folders += [file, *_list_beside(Path(file)), *_list_beside(Path(file).resolve())]
    return _with_targets(folder for folder in folders if Path(folder).exists())


def _list_on_host(files: Iterable[str], homes: Sequence[Path], own: Path) -> Iterator[str]:
    """Yield the named files that an agent may read, and the folders that they need.

    The agent can create any link in its workspace. So a folder there counts only without links.
    """
    closed = [one.resolve() for one in (*homes, own.parent)]
    for file in files:
        real, link = Path(file).resolve(), Path(file).parent.resolve() / Path(file).name
        if not _is_readable(real, own):
            continue
        for shown in (real,) if link.is_relative_to(own.parent) else (link, real):
            yield str(shown)
            for folder in _list_beside(shown):
                is_wide = any(one.is_relative_to(folder) for one in closed)
                if not is_wide and os.path.realpath(folder) == folder:
                    yield folder


def _is_readable(file: Path, own: Path) -> bool:
    if file.is_relative_to(own.parent):
        return file.is_relative_to(own)
    return os.access(file, os.X_OK)


def _list_beside(file: Path) -> list[str]:
    """Return the folders that a program needs: its package, its environment or its libraries."""
    parts = file.parts
    if _MODULES in parts:
        return [str(Path(*parts[: parts.index(_MODULES) + 1]))]
    if file.parent.name != "bin":
        return [str(file)]
    prefix = file.parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        return [str(prefix)]
    return [str(file.parent), str(prefix / "lib")]


def _with_targets(paths: Iterable[str]) -> tuple[str, ...]:
    """Return these paths and, for each link, its target."""
    both = (one for path in paths for one in (path.rstrip("/") or "/", os.path.realpath(path)))
    return tuple(dict.fromkeys(both))


def prepare_state(folder: Path, needs: StateFolder, home: Path) -> StatePaths:
    """Create the missing parts of a CLI's own folder, and return the paths it may write there.

    Raises:
        StoreError: The folder cannot be created.
    """
    with translate_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*needs.folders, *(() if needs.is_closed else needs.settings_folders)):
            (folder / name).mkdir(exist_ok=True)
        if not needs.is_closed:
            for name, text in needs.settings.items():
                if not durable_files.path_exists(folder / name):
                    durable_files.replace_file(folder / name, text.encode())
        names = sorted(os.listdir(folder))  # noqa: PTH208 - only names are needed
    write = [
        name
        for name in names
        if name in needs.folders or any(fnmatchcase(name, one) for one in needs.state)
    ]
    read = [] if needs.is_closed else [name for name in names if name not in write]
    return StatePaths(
        str(folder),
        needs.is_closed,
        # An open folder is writable as a whole, because a file with its own mount could not be
        # replaced.
        write=tuple(str(folder / name) for name in write) if needs.is_closed else (),
        read=(*(str(folder / name) for name in read), *(str(home / one) for one in needs.beside)),
    )


def identify_real(paths: Iterable[str]) -> dict[str, str]:
    """Return the identities of the existing paths without links.

    An agent could point a link anywhere, even while a path is examined.
    """
    identities = {path: _identify(path) for path in paths}
    return {path: identity for path, identity in identities.items() if identity}


def _identify(path: str) -> str:
    """Return the device and inode of a path, or "" if it is missing or contains a link."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open("/", flags)
    try:
        for part in path.split("/"):
            if part:
                above, number = number, os.open(part, flags, dir_fd=number)
                os.close(above)
        status = os.fstat(number)
    except OSError:
        return ""
    finally:
        os.close(number)
    return "" if stat.S_ISLNK(status.st_mode) else f"{status.st_dev}:{status.st_ino}"


def read_mounts() -> str:
    """Return the kernel's list of mounts."""
    path = Path("/proc/self/mountinfo")
    with translate_os_errors(path):
        return path.read_text(encoding="utf-8", errors="surrogateescape")
