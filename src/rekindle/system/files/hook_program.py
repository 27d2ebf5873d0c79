"""The hook program, stored in the user's folder as one file for each version of its content.

A CLI starts the program outside its sandbox, so it must not be in a workspace, where an agent could
replace it. It is not started from the installed package either, because a tool cache may remove the
package. The file name contains a hash of the content: an upgrade adds a file, and running sessions
continue to use the old one.
"""

import functools
import hashlib
import re
from pathlib import Path

from rekindle import hook
from rekindle.errors import StoreError, translate_os_errors
from rekindle.system.files import (
    bytecode,
    durable_files,
    user_folder,
)

_FOLDER = "programs"
_HASH_LENGTH = 32
_NAME = re.compile(rf"hook-([0-9a-f]{{{_HASH_LENGTH}}})\.pyc")
_PARTS = Path(hook.__file__).parent
_IMPORTS = re.compile(rb"^from rekindle\.hook\.\w+ import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE)


@functools.cache
def compile_hook() -> bytes:
    """Return this version's hook program, compiled for this Python.

    The result is cached, because a supervisor may run for weeks and needs the same bytes for each
    launch.
    """
    return bytecode.compile_program(join_source(), "hook.py")


def join_source() -> bytes:
    """Return the source of the hook program: its modules one after the other, in one namespace.

    One file starts faster than a package, and does not need the installed package at run time.
    """
    texts: list[bytes] = []
    for part in hook.PARTS:
        source = _PARTS / f"{part}.py"
        with translate_os_errors(source):
            texts.append(_IMPORTS.sub(b"", source.read_bytes()))
    return b"".join(texts)


def find_hook_path() -> Path:
    return user_folder.find_user_folder() / _FOLDER / f"hook-{_hash_program(compile_hook())}.pyc"


def provide_program() -> bool:
    """Write the program if it is missing or differs, and verify it; return whether it was written.

    Raises:
        StoreError: The program could not be written.
    """
    program = find_hook_path()
    if _read_program(program) == compile_hook():
        return False
    user_folder.make_user_folder(_FOLDER)
    durable_files.replace_file(program, compile_hook())
    if _read_program(program) != compile_hook():
        raise StoreError(
            str(program), "does not contain what was just written to it", hint="check the disk"
        )
    return True


def find_problem(program: Path, *, this_python: bool) -> str:
    """Return the problem with an installed program, or "" if there is none.

    `this_python` means that the hook runs on the interpreter that is running this code. For another
    interpreter, the expected bytes are unknown: to compile them, Rekindle would have to start a
    program that the settings of a cloned project name. Instead, the hash in the file name must
    match the content, and the header must match the source.
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
    if name is None or name[1] != _hash_program(data):
        return "was changed"
    wanted = (
        data == compile_hook() if this_python else bytecode.is_compiled_from(data, join_source())
    )
    return "" if wanted else "is for another version of Rekindle or Python"


def _read_program(program: Path) -> bytes | None:
    try:
        return durable_files.read_bytes(program)
    except StoreError:
        return None  # a link at its path is replaced


def _hash_program(program: bytes) -> str:
    return hashlib.sha256(program).hexdigest()[:_HASH_LENGTH]
