"""Compiled Python: a program that starts without looking at its source."""

import importlib.util
import marshal
from pathlib import Path
from types import CodeType
from typing import Any

from rekindle.errors import storing

_FLAGS = (1).to_bytes(4, "little")
"""The mark of an unchecked-hash pyc: it names its source by a hash and never reads it again."""


def compile_program(source: Path) -> bytes:
    """Return the source compiled for this Python; the same source always gives the same bytes."""
    with storing(source):
        text = source.read_bytes()
    code = compile(text, source.name, "exec", dont_inherit=True, optimize=0)
    # marshal writes an object that nothing else refers to in another form. Referring to all of
    # them makes the bytes independent of what this process has imported.
    referred = list(_objects(code))
    body = marshal.dumps(code)
    del referred
    return importlib.util.MAGIC_NUMBER + _FLAGS + importlib.util.source_hash(text) + body


def is_of(program: bytes, source: Path) -> bool:
    """Return whether a program's header says that it was compiled from this source."""
    with storing(source):
        wanted = importlib.util.source_hash(source.read_bytes())
    return program[4:16] == _FLAGS + wanted


def _objects(value: object) -> list[Any]:
    """Return a value and everything that its code refers to."""
    parts: tuple[object, ...] = ()
    if isinstance(value, CodeType):
        parts = (value.co_consts, value.co_names, value.co_varnames, value.co_freevars)
        parts += (value.co_cellvars, value.co_filename, value.co_name, value.co_qualname)
        parts += (value.co_linetable, value.co_exceptiontable)
    elif isinstance(value, tuple | frozenset):
        parts = tuple(value)
    return [value, *(inner for part in parts for inner in _objects(part))]
