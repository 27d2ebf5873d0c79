"""JSON as it comes in from the world and as it goes out from us.

Hostile input (deep nesting, huge integers, lone surrogates, broken UTF-8) ends in
a DocumentError here, so that no caller needs to know how a decoder can fail.
"""

import hashlib
import re
from typing import Any, Literal

import msgspec

from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, TypeError)

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a character, in two halves
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one half alone
    rb"|\\."
)


def decode(data: bytes, document: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except _FAILURES as error:
        raise DocumentError(document, f"is not valid JSON ({error})") from error


def decode_foreign(data: bytes, document: str) -> Any:
    """JSON that another program wrote: half a character that it cut through is replaced.

    JavaScript cuts text between the two halves of an emoji, and writes the half that it kept.
    """
    try:
        return msgspec.json.decode(data)
    except _FAILURES:
        whole = data.decode("utf-8", "replace").encode()
        return decode(_ESCAPE.sub(_drop_halves, whole), document)


def decode_object(data: bytes, document: str, *, schema: int) -> dict[str, Any]:
    """An object whose "v", where it has one, is not newer than the schema we know."""
    value = decode(data.removeprefix(b"\xef\xbb\xbf"), document)
    if not isinstance(value, dict):
        raise DocumentError(document, "is not a JSON object")
    refuse_newer_schema(value.get("v", schema), document, schema)
    return value


def refuse_repeated_keys(data: bytes, document: str) -> None:
    """Refuse an object with a key that stands twice: a reader sees only one of the two."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in found]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DocumentError(document, f"has the key {twice[:QUOTED_CHARACTERS]!r} twice")
        return dict(found)

    import json  # noqa: PLC0415 - only an edited file needs it, and every start would pay for it

    json.loads(data.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=pairs)


def refuse_newer_schema(found: object, document: str, known: int) -> None:
    """Refuse a version that is newer than ours, or that cannot be read as one."""
    if not isinstance(found, int) or isinstance(found, bool):
        raise DocumentError(document, f"its schema version is {found!r}, not a number")
    if found > known:
        raise NewerSchemaError(document, found, known)


def _drop_halves(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def encode(value: Any, document: str, *, order: Literal["sorted"] | None = None) -> bytes:
    """One compact line without its newline."""
    try:
        return msgspec.json.encode(value, order=order)
    except _FAILURES as error:
        raise DocumentError(document, f"cannot be written as JSON ({error})") from error


def encode_pretty(value: Any, document: str) -> bytes:
    """Indented by two, with a final newline: for files that people open."""
    return msgspec.json.format(encode(value, document), indent=2) + b"\n"


def hash_bytes(data: bytes) -> str:
    """The hash that names a document's exact bytes."""
    return hashlib.sha256(data).hexdigest()
