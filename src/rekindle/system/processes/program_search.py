"""Find the programs that Rekindle runs outside any sandbox: git, a CLI, tmux.

Folders in PATH that are relative or inside a workspace are not searched. An agent can write there,
and a file named `git` would run as the user.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rekindle.errors import ProgramMissingError

_SHEBANG = b"#!/usr/bin/env "
_SHEBANG_BYTES = 128
_ENDER = "setpriv"
_workspaces: set[Path] = set()


def exclude_folders(*folders: Path) -> None:
    """Treat these folders as workspaces from now on."""
    _workspaces.update(folder.resolve() for folder in folders)


def is_in_workspace(path: str | Path) -> bool:
    """Return whether an agent could change the file at this path."""
    unresolved = Path(path)
    real = unresolved.resolve()
    # Look up the path's parents in the set: a worker may have thousands of workspaces.
    above = [unresolved, *unresolved.parents, real, *real.parents]
    return not unresolved.is_absolute() or not _workspaces.isdisjoint(above)


def make_safe_path(path: str | None = None) -> str:
    """Return a PATH (ours by default) without the folders that an agent can write to."""
    search_path = os.environ.get("PATH", os.defpath) if path is None else path
    entries = (entry for entry in search_path.split(os.pathsep) if entry)
    return os.pathsep.join(entry for entry in entries if not is_in_workspace(entry))


def order_path(path: str, is_last: Callable[[str], bool] = is_in_workspace) -> str:
    """Return a PATH without relative folders, with folders that match `is_last` at the end.

    A CLI runs git, its interpreter and a shell outside its sandbox. It must not find them in the
    workspace first, but programs that exist only in the workspace are still found.
    """
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    return os.pathsep.join(sorted(entries, key=is_last))


def find_executable(name: str, path: str | None = None) -> str | None:
    """Return a program's absolute path, or None if it is missing or only in a workspace."""
    from shutil import which  # noqa: PLC0415 - slows every start

    program = which(name, path=make_safe_path(path))
    return program and str(Path(program).absolute())


def find_end_with_parent() -> tuple[str, ...]:
    """Return a command that executes another one, which the kernel then ends with its parent.

    The parent is the thread that starts the command. The result is empty if `setpriv` is not
    installed, as on macOS.
    """
    program = find_executable(_ENDER)
    return () if program is None else (program, "--pdeathsig", "KILL", "--")


def resolve_command(argv: Sequence[str], path: str | None = None) -> tuple[str, ...]:
    """Return a command with absolute paths for its program and, for a script, the interpreter.

    A command that names a path, or that is not installed, is returned unchanged: starting it fails
    with the usual error.

    Raises:
        ProgramMissingError: The program exists only in a workspace.
    """
    name, *words = argv
    if "/" in name:
        return tuple(argv)
    program = find_executable(name, path)
    if program is None:
        from shutil import which  # noqa: PLC0415 - as above

        if which(name, path=path) is None:
            return tuple(argv)
        raise ProgramMissingError(
            name,
            "it is only in the workspace, where the agent could replace it",
            hint=f"install {name} outside the project, or give its path under `command:`",
        )
    with open(program, "rb") as file:  # noqa: PTH123 - a binary may be 200 MB
        first = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    interpreter = first.removeprefix(_SHEBANG).decode("utf-8", "replace").split()
    if not first.startswith(_SHEBANG) or len(interpreter) != 1:
        return (program, *words)
    # `env` would search the whole PATH of the program.
    return (find_executable(interpreter[0], path) or interpreter[0], program, *words)


def find_missing_interpreter(program: str, folder: str) -> str:
    """Return a script's interpreter if it is not installed, or "".

    The system only reports a missing file, which sounds like the script itself.
    """
    try:
        with open(Path(folder) / program, "rb") as file:  # noqa: PTH123 - as above
            first = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return ""
    words = first.removeprefix(b"#!").decode("utf-8", "replace").split()
    is_script = first.startswith(b"#!") and bool(words)
    return words[0] if is_script and not Path(words[0]).exists() else ""
