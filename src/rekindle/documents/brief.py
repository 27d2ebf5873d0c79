"""The brief: a page for people, with a `name — date` title and up to five labelled parts.

    trades — 2026-02-16

    **Changed:**
    - IBKR snapshot cron restored

    **Next:** Process the snapshot.

Labels are recognised in bold or as headings, with their text on the same line or below.
"""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import (
    outline,
    schema_mark,
)

SCHEMA = 1


class BriefLabel(StrEnum):
    CHANGED = "Changed"
    OPEN_LOOPS = "Open loops"
    NEXT = "Next"
    RISK = "Risk"
    NUMBERS = "Numbers"


_TITLE = re.compile(r"[ \t](?:—|–|-)[ \t]+(\d{4}-\d{2}-\d{2})$")
_TITLE_MARKS = re.compile(r"\ufeff?(?:#{1,6}[ \t]+)?")
_LABEL = re.compile(
    r"(?:\*\*(?P<bold>[^*:：]{1,40})(?:(?P<colon>[:：])\*\*|\*\*(?P<after>[:：]?))"
    r"|#{1,6}[ \t]+(?P<heading>[^:：]{1,40})[:：]?)(?P<rest>.*)$",
    re.DOTALL,
)
_LABELS = {label.casefold(): label for label in BriefLabel}


class BriefPart(msgspec.Struct, frozen=True):
    label: str
    """A BriefLabel, or the title of a part that Rekindle does not know and leaves unchanged."""
    lead: str
    """Text from the start of the label up to the content."""
    content: str


class Brief(msgspec.Struct, frozen=True):
    name: str
    day: date
    head: str
    parts: tuple[BriefPart, ...]

    def content(self, label: BriefLabel) -> str | None:
        for part in self.parts:
            if part.label == label:
                return part.content.strip()
        return None


def parse(data: bytes | str) -> Brief:
    text = schema_mark.decode_text(data, "brief")
    head: list[str] = []
    parts: list[tuple[str, str, list[str]]] = []
    title: tuple[str, date] | None = None
    for line, is_prose in outline.mark_prose(text):
        match = _LABEL.match(line) if is_prose else None
        label = _match_label(match, titled=title is not None) if match else ""
        if match and label:
            parts.append((label, line[: match.start("rest")], [match["rest"]]))
        elif parts:
            parts[-1][2].append(line)
        else:
            head.append(line)
            title = title or _parse_title(line)
    schema_mark.check_mark("".join(head), "brief", SCHEMA)
    if title is None:
        raise DocumentError(
            "brief",
            "has no title line",
            hint="a brief starts with a line such as `trades — 2026-02-16`",
        )
    found_parts = tuple(BriefPart(label, lead, "".join(content)) for label, lead, content in parts)
    return Brief(*title, "".join(head), found_parts)


def render(brief: Brief) -> str:
    return brief.head + "".join(part.lead + part.content for part in brief.parts)


def compose(name: str, day: date, contents: Mapping[BriefLabel, str]) -> Brief:
    """Create a brief. A list goes below its label, a single line next to it."""
    text = [schema_mark.render_mark("brief", SCHEMA) + f"{name} — {day.isoformat()}\n"]
    for label in BriefLabel:
        content = contents.get(label, "").strip()
        if content:
            gap = "\n" if "\n" in content or content.startswith("- ") else " "
            text.append(f"**{label}:**{gap}{content}\n")
    return parse("\n".join(text))


def _match_label(match: re.Match[str], *, titled: bool) -> str:
    """Return the label at the start of a line, or "" for titles, other headings and emphasis."""
    name = (match["bold"] or match["heading"]).strip()
    if label := _LABELS.get(outline.normalize_title(name).rstrip("# ")):
        return label
    is_label = bool(match["colon"] or match["after"] or not match["rest"].strip())
    return name if match["bold"] and titled and is_label else ""


def _parse_title(line: str) -> tuple[str, date] | None:
    bare = line.strip().strip("*")
    match = _TITLE.search(bare)
    name = _TITLE_MARKS.sub("", bare[: match.start()], count=1).strip(" \t*") if match else ""
    if not match or not name:
        return None
    try:
        return name, date.fromisoformat(match[1])
    except ValueError:
        return None
