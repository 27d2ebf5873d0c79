"""Find the files in the input of a tool call.

Agents use their own names for the parts of an input. The last word of a name tells whether a part
is a text, such as `newString`; another word tells whether it is a path, such as `destination`. Any
other short text may be a path too.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TEXT_WORDS = frozenset(
    [
        "content",
        "text",
        "string",
        "str",
        "code",
        "edit",
        "patch",
        "diff",
        "description",
        "explanation",
        "instruction",
        "reason",
        "title",
        "summary",
        "replacement",
        "insertion",
        "snippet",
        "body",
        "pattern",
        "query",
    ]
)
_PATH_WORDS = frozenset(
    [
        "path",
        "file",
        "filename",
        "filepath",
        "pathname",
        "destination",
        "dest",
        "source",
        "src",
        "target",
        "dir",
        "directory",
        "folder",
        "location",
        "uri",
        "from",
        "to",
        "root",
        "cwd",
    ]
)
_PATCH_WORDS = frozenset({"patch", "diff"})
_HEADER = re.compile(
    r"^(?:\*\*\* (?:(?:Add|Update|Delete) File|Move to): |(?:---|\+\+\+) (?:[ab]/)?"
    r"|(?:rename|copy) (?:from|to) )([^\t\r\n]+)",
    re.MULTILINE,
)
"""Lines of a patch that name a file."""
_NO_FILE = "/dev/null"


class NamedPaths(NamedTuple):
    """The files that a call names."""

    files: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Texts that may be paths. They are evidence against a call, never for it."""


def find_paths(arguments: dict[str, Any]) -> NamedPaths:
    """Return everything in the input of a call that names a file."""
    files: list[str] = []
    others: list[str] = []
    for words, is_text, text in _list_texts(arguments):
        if not is_text and _PATH_WORDS & words:
            files.append(text)
        elif is_text or "\n" in text:
            headers = [path.strip() for path in _HEADER.findall(text)]
            is_patch = not is_text or bool(_PATCH_WORDS & words)
            (files if is_patch else others).extend(one for one in headers if one != _NO_FILE)
        else:
            others.append(text)
    return NamedPaths(tuple(files), tuple(others))


def _list_texts(
    value: object, words: AbstractSet[str] = frozenset(), *, is_text: bool = False
) -> Iterator[tuple[AbstractSet[str], bool, str]]:
    """Yield each text with the words of its name, and whether they exclude a path."""
    if isinstance(value, str):
        if text := value.strip():
            yield words, is_text, text
    elif isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner, words, is_text=is_text)
    elif isinstance(value, dict):
        for name, inner in value.items():
            own = [word.lower().removesuffix("s") for word in _WORDS.findall(str(name))]
            is_named = bool(own) and own[-1] in _TEXT_WORDS
            is_inner = is_named or (is_text and not _PATH_WORDS & set(own))
            yield from _list_texts(inner, frozenset(own), is_text=is_inner)
