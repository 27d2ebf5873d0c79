"""Read the list of items for a matrix step, and name each item's worker.

An agent writes the list, so it may contain anything. An unusable list fails the step, and the
reason explains what to write instead.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.pipelines.worker_names import hash_words
from rekindle.thresholds.pipeline_limits import MATRIX_BYTES, MATRIX_ITEMS, WORKER_KEY_CHARACTERS
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_LIST = "the list of items"
_KIND_NAMES = {bool: "true or false", list: "a list", type(None): "null"}
"""Names of the JSON values that cannot be an item."""


class MatrixList(msgspec.Struct, frozen=True):
    """The items of a matrix step, or the reason why its list is unusable."""

    sha: str
    """SHA-256 hash of the file that lists the items."""
    items: tuple[tuple[str, Any], ...] = ()
    """Each worker's key and item, in the order of the list."""
    why: str = ""
    """Why the list is unusable, in which case the step fails; empty if it is usable."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self.items)

    def find_item(self, key: str) -> Any:
        """Return a worker's item, or None if the list has no such key."""
        return next((item for own, item in self.items if own == key), None)


def read_items(data: bytes, key: str | None) -> MatrixList:
    """Read a JSON list of texts, numbers or objects.

    `key` is the field that names each item's worker. Without it, workers are numbered from 1.
    """
    sha = json_codec.hash_bytes(data)
    try:
        values = _parse_list(data)
        keys = _number_items(values) if key is None else _name_items(values, key)
    except DocumentError as error:
        return MatrixList(sha, why=f"{error.document} {error.reason}")
    return MatrixList(sha, tuple(zip(keys, values, strict=True)))


def find_field(item: Any, field: str) -> Any:
    """Return the value of a field, or raise LookupError if the item does not have it.

    `a.b` is the field `b` in the field `a`.
    """
    value = item
    for name in field.split("."):
        value = (value if isinstance(value, dict) else {})[name]
    return value


def make_key(text: str, suffix: str = "") -> str:
    """Derive a worker's key from a text: lowercase letters, digits and hyphens, or "".

    It has no underscore, because an underscore marks the keys of workers that merge.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = "-".join(re.findall(r"[a-z0-9]+", plain))
    room = WORKER_KEY_CHARACTERS - (len(suffix) + 1 if suffix else 0)
    return f"{words[:room].strip('-')}-{suffix}".strip("-")


def _parse_list(data: bytes) -> list[Any]:
    if len(data) > MATRIX_BYTES:
        raise DocumentError(
            _LIST, f"has {len(data):,} bytes, but at most {MATRIX_BYTES:,} are allowed"
        )
    values = json_codec.decode_foreign(data.removeprefix(b"\xef\xbb\xbf"), _LIST)
    if not isinstance(values, list):
        raise DocumentError(_LIST, 'is not a JSON list, such as ["one", "two"]')
    if len(values) > MATRIX_ITEMS:
        raise DocumentError(
            _LIST, f"has {len(values):,} items, but at most {MATRIX_ITEMS} are allowed"
        )
    for number, value in enumerate(values, start=1):
        if type(value) in _KIND_NAMES:
            raise DocumentError(
                f"item {number}",
                f"is {_KIND_NAMES[type(value)]}, but must be a string, a number or an object",
            )
    return values


def _number_items(values: Sequence[Any]) -> list[str]:
    return [str(number) for number in range(1, len(values) + 1)]


def _name_items(values: Sequence[Any], field: str) -> list[str]:
    """Return a different key for each item.

    A key ends with a hash of the item's name if it would be empty otherwise, or if another item
    would have the same key.
    """
    names = [_find_name(value, field, number) for number, value in enumerate(values, start=1)]
    counts = Counter(map(make_key, names))
    numbers = dict[str, int]()
    for number, name in enumerate(names, start=1):
        key = make_key(name)
        if not key or counts[key] > 1:
            key = make_key(name, hash_words(name))
        if key in numbers:
            shown = to_one_line(name, QUOTED_CHARACTERS)
            raise DocumentError(
                f"item {number}",
                f"has the {field} {shown!r}, as item {numbers[key]} does; give each item a "
                f"different {field}",
            )
        numbers[key] = number
    return list(numbers)


def _find_name(value: Any, field: str, number: int) -> str:
    """Return the text or number that names an item's worker."""
    try:
        name = find_field(value, field)
    except LookupError:
        raise DocumentError(
            f"item {number}", f"has no field {field!r}, which names its worker"
        ) from None
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        raise DocumentError(
            f"item {number}", f"has a value for {field!r} that is neither a string nor a number"
        )
    return str(name)
