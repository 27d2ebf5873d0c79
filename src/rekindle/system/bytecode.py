"""Compiled Python: a program that starts without looking at its source."""

import importlib.util
import py_compile
import tempfile
from pathlib import Path

from rekindle.errors import storing

_FLAGS = (1).to_bytes(4, "little")
"""Named by the hash of its source, which is not looked at again: an unchecked-hash pyc."""


def compiled(source: Path) -> bytes:
    """The program's bytes for this very Python."""
    with tempfile.TemporaryDirectory() as folder, storing(source):
        made = py_compile.compile(
            str(source),
            cfile=f"{folder}/made.pyc",
            dfile=source.name,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        return Path(str(made)).read_bytes()


def is_of_this_python(program: bytes) -> bool:
    return program[:4] == importlib.util.MAGIC_NUMBER


def is_of(program: bytes, source: Path) -> bool:
    """Whether it was compiled, by whichever Python, from this source."""
    with storing(source):
        wanted = importlib.util.source_hash(source.read_bytes())
    return program[4:16] == _FLAGS + wanted
