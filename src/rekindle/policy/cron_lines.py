"""Which lines of a crontab start Rekindle."""

import shlex
from collections.abc import Iterable

from rekindle.policy.agent_dirs import is_inside

PROGRAM = "rekindle"


def starts_rekindle(line: str, folder: str = "") -> bool:
    """Return whether a line starts Rekindle; with `folder`, in that folder or below it."""
    if line.lstrip().startswith("#"):
        return False
    words = _split(line)
    if not any(word.rpartition("/")[2] == PROGRAM for word in words):
        return False
    return not folder or any(word.startswith("/") and is_inside(word, folder) for word in words)


def without(lines: Iterable[str], removed: Iterable[str]) -> list[str]:
    gone = set(removed)
    return [line for line in lines if line not in gone]


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()
