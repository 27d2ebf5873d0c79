"""Store the hook program and the gate in the user's folder, one file for each version.

A CLI runs the program outside its sandbox, so it must not be in a workspace, where an agent could
replace it. It is not run from the installed package either, because a tool cache may be cleared.
The file name contains a hash of the content: an upgrade adds a new file, and running sessions keep
using the old one.
"""

import functools
import hashlib
import re
from pathlib import Path
from typing import Literal

from rekindle import hook
from rekindle.errors import StoreError, translate_os_errors
from rekindle.system.files import (
    bytecode,
    durable_files,
    user_folder,
)

_FOLDER = "programs"
_HASH_LENGTH = 32
_NAME = re.compile(rf"(hook|gate)-([0-9a-f]{{{_HASH_LENGTH}}})\.pyc")
_MODULES = Path(hook.__file__).parent
ProgramName = Literal["hook", "gate"]
_PARTS: dict[ProgramName, tuple[str, ...]] = {"hook": hook.PARTS, "gate": hook.GATE_PARTS}
_IMPORTS = re.compile(rb"^from rekindle\.hook\.\w+ import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE)


@functools.cache
def compile_hook(name: ProgramName = "hook") -> bytes:
    """Return this version's hook program or gate, compiled for this Python.

    The result is cached, because a supervisor may run for weeks and every launch needs the same
    bytes.
    """
    return bytecode.compile_program(join_source(name), f"{name}.py")


def join_source(name: ProgramName = "hook") -> bytes:
    """Return the source of a program, with all its modules joined into one.

    A single file starts faster than a package, and works without the installed package.
    """
    texts: list[bytes] = []
    for part in _PARTS[name]:
        source = _MODULES / f"{part}.py"
        with translate_os_errors(source):
            texts.append(_IMPORTS.sub(b"", source.read_bytes()))
    return b"".join(texts)


def find_hook_path(name: ProgramName = "hook") -> Path:
    """Return the path of this version's hook program or gate."""
    file = f"{name}-{_hash_program(compile_hook(name))}.pyc"
    return user_folder.find_user_folder() / _FOLDER / file


def provide_program() -> bool:
    """Write and verify both programs if they are missing or differ. Return whether one was written.

    Raises:
        StoreError: A program could not be written.
    """
    written = [name for name in _PARTS if _provide(name)]
    return bool(written)


def _provide(name: ProgramName) -> bool:
    program, content = find_hook_path(name), compile_hook(name)
    if _read_program(program) == content:
        return False
    user_folder.make_user_folder(_FOLDER)
    durable_files.replace_file(program, content)
    if _read_program(program) != content:
        raise StoreError(
            str(program), "does not contain what was just written to it", hint="check the disk"
        )
    return True


def find_problem(program: Path, *, this_python: bool) -> str:
    """Return what is wrong with an installed program, or "".

    `this_python` means that the hook runs on the interpreter that runs this code. For another
    interpreter, the expected bytes are unknown: to compile them, Rekindle would have to run a
    program named in a project's settings. In that case, only the hash in the file name and the
    header are checked.
    """
    if program.parent != find_hook_path().parent:
        return "is not in your Rekindle folder, so an agent could change it"
    try:
        data = durable_files.read_bytes(program)
    except StoreError as error:
        return error.reason
    name = _NAME.fullmatch(program.name)
    if data is None:
        return "is missing"
    if name is None or name[2] != _hash_program(data):
        return "was changed"
    kind: ProgramName = "gate" if name[1] == "gate" else "hook"
    is_current = (
        data == compile_hook(kind)
        if this_python
        else bytecode.is_compiled_from(data, join_source(kind))
    )
    return "" if is_current else "is for another version of Rekindle or Python"


def _read_program(program: Path) -> bytes | None:
    try:
        return durable_files.read_bytes(program)
    except StoreError:
        return None  # replaces a link at this path


def _hash_program(program: bytes) -> str:
    return hashlib.sha256(program).hexdigest()[:_HASH_LENGTH]
