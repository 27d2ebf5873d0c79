"""Decode JSON from untrusted sources, and encode the JSON that Rekindle writes.

Hostile input (deep nesting, huge integers, lone surrogates, broken UTF-8) raises a DocumentError,
so callers do not have to handle the decoder's own errors.
"""

import hashlib
import re
from typing import Any, Literal

import msgspec

from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_FAILURES = (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, TypeError)

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a surrogate pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # a lone surrogate
    rb"|\\."
)


def decode(data: bytes, document: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except _FAILURES as error:
        raise DocumentError(document, f"is not valid JSON ({error})") from error


def decode_foreign(data: bytes, document: str) -> Any:
    """Decode JSON from another program, and replace lone surrogates.

    JavaScript can cut a string in the middle of an emoji and write only one of its two surrogates.
    """
    try:
        return msgspec.json.decode(data)
    except _FAILURES:
        valid = data.decode("utf-8", "replace").encode()
        return decode(_ESCAPE.sub(_drop_halves, valid), document)


def decode_object(data: bytes, document: str, *, schema: int) -> dict[str, Any]:
    """Decode an object. Refuse it if its "v" is newer than `schema`."""
    value = decode(data.removeprefix(b"\xef\xbb\xbf"), document)
    if not isinstance(value, dict):
        raise DocumentError(document, "is not a JSON object")
    refuse_newer_schema(value.get("v", schema), document, schema)
    return value


def refuse_repeated_keys(data: bytes, document: str) -> None:
    """Refuse an object with a repeated key, because a decoder would drop one of the values."""

    def check_pairs(pair_list: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pair_list]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DocumentError(document, f"has the key {twice[:QUOTED_CHARACTERS]!r} twice")
        return dict(pair_list)

    import json  # noqa: PLC0415 - only needed for edited files, and would slow every start

    json.loads(data.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=check_pairs)


def refuse_newer_schema(version: object, document: str, newest: int) -> None:
    """Refuse a schema version that is not a number or is newer than `newest`."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise DocumentError(document, f"has the schema version {version!r}, which is not a number")
    if version > newest:
        raise NewerSchemaError(document, version, newest)


def _drop_halves(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def encode(value: Any, document: str, *, order: Literal["sorted"] | None = None) -> bytes:
    """Encode a value as one compact line of JSON, without a newline at the end."""
    try:
        return msgspec.json.encode(value, order=order)
    except _FAILURES as error:
        raise DocumentError(document, f"cannot be written as JSON ({error})") from error


def encode_pretty(value: Any, document: str) -> bytes:
    """Encode a value as JSON for people: indented by two spaces, with a newline at the end."""
    return msgspec.json.format(encode(value, document), indent=2) + b"\n"


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 hash of a document's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
