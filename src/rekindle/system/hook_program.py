"""The hook program: in the user's own folder, one file for each content.

A CLI starts the program outside its sandbox, so it must not be in a workspace, where an agent could
replace it. Nor is it started from the installed package, which a tool cache may remove. The name
has a hash of the content: an upgrade adds a file, and running sessions keep theirs.
"""

import functools
import hashlib
import re
from pathlib import Path

from rekindle import hook
from rekindle.errors import HookProgramError, StoreError
from rekindle.system import bytecode, disk, user_folder

_FOLDER = "programs"
_HASH_LENGTH = 32
_NAME = re.compile(rf"hook-([0-9a-f]{{{_HASH_LENGTH}}})\.pyc")
_SOURCE = Path(hook.__file__)


@functools.cache
def content() -> bytes:
    """Return the program of this version for this Python.

    A supervisor runs for weeks: the bytes of its first launch serve all of them.
    """
    return bytecode.compile_program(_SOURCE)


def path() -> Path:
    return user_folder.path() / _FOLDER / f"hook-{_hash(content())}.pyc"


def provide() -> bool:
    """Verify the whole program, and write it if it is missing or differs; return whether it was.

    Raises:
        HookProgramError: It could not be written.
    """
    program = path()
    if _read(program) == content():
        return False
    try:
        user_folder.make(_FOLDER)
        disk.replace(program, content())
    except StoreError as error:
        raise HookProgramError(str(program), error.reason, hint=error.hint) from error
    if _read(program) != content():
        raise HookProgramError(
            str(program), "does not have the content that was just written", hint="check its disk"
        )
    return True


def problem(program: Path, *, this_python: bool) -> str:
    """Return what is wrong with an installed program; empty if nothing is.

    `this_python`: the hook is started by the interpreter that runs this code. What another one
    would compile is not known without starting it, and the settings of a cloned project must not
    decide what is started: there the hash in the name must fit the content, and the header the
    source.
    """
    if program.parent != path().parent:
        return "is not in your own Rekindle folder: an agent could change it there"
    try:
        found = disk.read(program)
    except StoreError as error:
        return error.reason
    name = _NAME.fullmatch(program.name)
    if found is None:
        return "is missing"
    if name is None or name[1] != _hash(found):
        return "was changed"
    wanted = found == content() if this_python else bytecode.is_of(found, _SOURCE)
    return "" if wanted else "is of another version of Rekindle or Python"


def _read(program: Path) -> bytes | None:
    try:
        return disk.read(program)
    except StoreError:
        return None  # a link in its place is replaced


def _hash(program: bytes) -> str:
    return hashlib.sha256(program).hexdigest()[:_HASH_LENGTH]
