"""Compile Python programs so that they start faster."""

import importlib.util
import marshal
from types import CodeType
from typing import Any

_FLAGS = (1).to_bytes(4, "little")
"""Flags in a pyc header that tell Python not to check the source."""


def compile_program(source: bytes, name: str) -> bytes:
    """Compile source code for this Python. The same source always produces the same bytes."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    # marshal encodes an object differently if it has only one reference. A second reference to
    # every object makes the result independent of which modules are imported.
    referred = list(_list_objects(code))
    body = marshal.dumps(code)
    del referred
    return importlib.util.MAGIC_NUMBER + _FLAGS + importlib.util.source_hash(source) + body


def is_compiled_from(program: bytes, source: bytes) -> bool:
    """Return whether a program's header shows that it was compiled from this source."""
    return program[4:16] == _FLAGS + importlib.util.source_hash(source)


def _list_objects(value: object) -> list[Any]:
    """Return an object and everything that it refers to."""
    parts: tuple[object, ...] = ()
    if isinstance(value, CodeType):
        parts = (value.co_consts, value.co_names, value.co_varnames, value.co_freevars)
        parts += (value.co_cellvars, value.co_filename, value.co_name, value.co_qualname)
        parts += (value.co_linetable, value.co_exceptiontable)
    elif isinstance(value, tuple | frozenset):
        parts = tuple(value)
    return [value, *(inner for part in parts for inner in _list_objects(part))]
