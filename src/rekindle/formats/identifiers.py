"""Validate names and ids, create ids, and clean text for display on one line."""

import hashlib
import re
import unicodedata

from rekindle.errors import UsageError
from rekindle.thresholds.texts import LINE_LIMIT, QUOTED_CHARACTERS

AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""Lower-case UUID. Case matters, because the id is part of the transcript's file name."""
STABLE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def require_agent_name(text: str) -> str:
    """Return an agent's name. Raise UsageError if it is not safe as a folder name."""
    if not AGENT_NAME.match(text):
        raise UsageError(
            f"{text!r} is not a valid agent name",
            hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
        )
    return text


def require_loop_id(text: str) -> str:
    """Return a loop's stable id. Raise UsageError if it is not valid."""
    if not STABLE_ID.match(text):
        raise UsageError(
            f"{text[:QUOTED_CHARACTERS]!r} is not a valid loop id",
            hint=f"use a short kebab-case id such as `{make_slug(text)}`",
        )
    return text


def make_slug(text: str) -> str:
    """Return a kebab-case id made from the words in a text. The same words give the same id."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    return "-".join(words)[:48].strip("-") or "loop"


def make_agent_name(folder: str) -> str:
    """Return the default name of an agent that works in a folder with this name."""
    return make_slug(folder)[:40] if folder else "agent"


def derive_id(text: str) -> str:
    """Create an id for a text. Different texts get different ids, in any script."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{make_slug(text)[:40].strip('-')}-{digest}"


_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, line separators and paragraph separators."""


def to_one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Convert a text to a single line of at most `limit` characters, without control characters."""
    line = " ".join(_BREAKS.sub(" ", text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNSEEN = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]|\x1b."
    rf"|{_HIDDEN.pattern}"
)


def strip_invisible(text: str) -> str:
    """Remove escape sequences, and characters that hide or reorder letters."""
    if not _HIDDEN.search(text):
        return text  # fast path, because nearly all texts are plain
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
