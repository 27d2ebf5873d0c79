"""Names that become paths, ids that stay stable, and text that fits on a line."""

import hashlib
import re
import unicodedata

from rekindle.errors import UsageError
from rekindle.thresholds.texts import LINE_LIMIT, QUOTED_CHARACTERS

AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
STABLE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def require_agent_name(text: str) -> str:
    """The name of an agent, which is also a folder's name: refused unless it is harmless."""
    if not AGENT_NAME.match(text):
        raise UsageError(
            f"{text!r} cannot be an agent's name",
            hint="use up to 63 of a-z, 0-9, - and _, beginning with a letter or a digit",
        )
    return text


def require_loop_id(text: str) -> str:
    """The stable id of an open loop."""
    if not STABLE_ID.match(text):
        raise UsageError(
            f"{text[:QUOTED_CHARACTERS]!r} cannot be a loop's id",
            hint=f"use a short kebab-case id such as `{make_slug(text)}`",
        )
    return text


def make_slug(text: str) -> str:
    """A kebab-case id made from words; the same words give the same id."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    return "-".join(words)[:48].strip("-") or "loop"


def derive_id(text: str) -> str:
    """An id for something that came without one; other words give another id, in any script."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{make_slug(text)[:40].strip('-')}-{digest}"


_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what parts lines and paragraphs."""


def to_one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Text as one line: no control characters, no lone surrogates, cut with a mark."""
    line = " ".join(_BREAKS.sub(" ", text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNSEEN = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]|\x1b."  # what a terminal obeys
    rf"|{_HIDDEN.pattern}"
)


def strip_invisible(text: str) -> str:
    """Text without what nobody sees: what a terminal obeys, what turns or hides letters."""
    if not _HIDDEN.search(text):
        return text  # as nearly all are, and this is found out much faster
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
