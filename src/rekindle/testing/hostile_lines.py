"""Damaged lines for harness tests, made from recorded lines."""

import json
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

TEXTS = ("", "\0", "\ud800", "a\x1b[31m\r\nb\u2028c", "é" * 50_000, "[" * 5_000, "{}", "null")
_WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1e300,
    [],
    [[]],
    [None, 1, "x", {}],
    {},
    {"type": []},
    *TEXTS[:4],
)
"""Values of the wrong type that replace valid ones."""
_NOISE = (
    *(b"", b"\0", b"null", b"{}", b"[]", b'"', b"\xff\xfe", b"NaN", b"-1"),
    *(b"[" * 100_000, b'{"type":' * 1_000, b'{"type":' + b"9" * 5_000, b"x" * 2_000_000),
)
_SEED = 20260409
_WORD = re.compile(r"[A-Za-z_.]{1,40}\Z")
_HERE = "here it stands"
"""Placeholder for the replaced value while the line is being encoded."""


_MARKED = json.dumps(_HERE).encode()
_WRITTEN = tuple(json.dumps(wrong).encode() for wrong in _WRONG)


def damage_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield noise, then each line truncated, with a changed byte, and with wrong values."""
    yield from _NOISE
    rng = random.Random(_SEED)  # noqa: S311 - not for secrets
    done = set()
    for line in dict.fromkeys(lines):
        yield line[: rng.randrange(len(line) + 1)]
        torn = bytearray(line or b"x")
        torn[rng.randrange(len(torn))] = rng.randrange(256)
        yield bytes(torn)
        record = _parse_line(line)
        kind = tuple(
            value for value in record.values() if isinstance(value, str) and _WORD.match(value)
        )
        for place in list(_list_paths(record)):
            path = (kind, *(key for _, key in place if isinstance(key, str)))
            if path not in done:
                done.add(path)
                written = _write_damaged(record, place[-1])
                yield from (written.replace(_MARKED, wrong) for wrong in _WRITTEN)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


Step = tuple[Any, Any]
"""A container, and the key or index of one of its values."""


def _list_paths(value: Any, above: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the path of every nested value."""
    for key in value if isinstance(value, dict) else range(len(value)):
        way = (*above, (value, key))
        yield way
        if isinstance(value[key], dict | list):
            yield from _list_paths(value[key], way)


def _write_damaged(record: dict[str, Any], at: Step) -> bytes:
    within, key = at
    original, within[key] = within[key], _HERE
    written = json.dumps(record).encode()
    within[key] = original
    return written
