"""Read the schema mark in a markdown document, a comment such as `<!-- rekindle: relay 1 -->`.

A document without a mark has schema 1, so that agents and people can write relays without knowing
about the mark.
"""

import re

from rekindle.errors import DocumentError
from rekindle.formats.json_codec import refuse_newer_schema

_MARK = re.compile(r"<!--\s*rekindle:\s*([a-z]+)\s+(\d{1,9})\d*\s*-->")


def render_mark(document: str, version: int) -> str:
    return f"<!-- rekindle: {document} {version} -->\n"


def check_mark(head: str, document: str, newest: int) -> None:
    """Refuse a document whose mark, before its first heading, names a newer schema."""
    for match in _MARK.finditer(head):
        if match[1] == document:
            refuse_newer_schema(int(match[2]), document, newest)


def decode_text(data: bytes | str, document: str) -> str:
    """Decode a markdown document, and keep its line endings."""
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(
            document,
            f"is not UTF-8 text (byte {error.start})",
            hint="save it as UTF-8 and try again",
        ) from error
