"""The schema mark of a markdown document: a comment that readers do not see.

`<!-- rekindle: relay 1 -->`. A document without one is of schema 1: agents and people
write relays by hand and need not know about it.
"""

import re

from rekindle.documents.jsontext import refuse_newer
from rekindle.errors import DocumentError

_MARK = re.compile(r"<!--\s*rekindle:\s*([a-z]+)\s+(\d{1,9})\d*\s*-->")


def mark(document: str, version: int) -> str:
    return f"<!-- rekindle: {document} {version} -->\n"


def check(head: str, document: str, known: int) -> None:
    """Refuse a document whose mark, before its first heading, names a newer schema."""
    for found in _MARK.finditer(head):
        if found[1] == document:
            refuse_newer(int(found[2]), document, known)


def text_of(data: bytes | str, document: str) -> str:
    """The text of a markdown document, its line ends untouched."""
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
