"""The relay: the state that one cycle hands to the next, in eight fields.

A relay keeps its original text. Fields are located in the text, and changing a field replaces only
that field's text. Agents and people write relays, so headings are recognised in many forms: any
level, with emoji, numbers, emphasis, plurals and suffixes such as `(Cycle #12)`.
"""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from functools import lru_cache

import msgspec

from rekindle.formats import (
    outline,
    schema_mark,
)
from rekindle.formats.outline import Outline

SCHEMA = 1
DONE_DIRECTIVE = "DONE"
"""Next Action text that reports that all of the work is done."""


class RelayField(StrEnum):
    CURRENT_PHASE = "Current Phase"
    WHAT_WE_DID = "What We Did This Cycle"
    KEY_DECISIONS = "Key Decisions Made"
    FAILED_APPROACHES = "Failed Approaches"
    ACTIVE_PROJECTS = "Active Projects"
    METRICS = "Metrics"
    NEXT_ACTION = "Next Action"
    OPEN_QUESTIONS = "Open Questions"


_SPELLINGS = {
    RelayField.CURRENT_PHASE: ("current phase",),
    RelayField.WHAT_WE_DID: ("what we did",),
    RelayField.KEY_DECISIONS: ("key decisions made", "key decisions", "key decision"),
    RelayField.FAILED_APPROACHES: (
        *("failed approaches", "failed approach", "failed attempts"),
        *("what didn't work", "what did not work", "dead ends"),
    ),
    RelayField.ACTIVE_PROJECTS: ("active projects", "active project"),
    RelayField.METRICS: ("metrics",),
    RelayField.NEXT_ACTION: ("next actions", "next action"),
    RelayField.OPEN_QUESTIONS: ("open questions", "open question"),
}
OPTIONAL_FIELDS = frozenset({RelayField.FAILED_APPROACHES})
"""Fields that many relays lack. Nothing is missing from a relay without them."""
_STAND_INS = (
    "next recommended action",
    "recommended next action",
    "next steps",
    "next step",
    "what's next",
    "next run",
    "next iteration",
    "next cycle",
    "下一步行动",
    "下一步",
)
"""Headings that handover files use instead of Next Action."""

_SUFFIX = re.compile(r"\s*$|\s*[^\w\s]|\s+(?:[\W\d]|this\b|for\b|in\b|of\b|after\b|cycle\b|update)")
_PLACEHOLDER = re.compile(
    r"[\W_]*+(?:tbd|todo|none|n/?a|nothing|pending|unknown|to be (?:determined|decided|defined)"
    r"|待定|无|暂无|没有)?[\W_]*",
    re.IGNORECASE,
)
_LINE_ENDS = "\r\n"
_ITEM = re.compile(r"\s{0,3}(?:[-+*]|\d{1,9}[.)])[ \t]+")
_TABLE_RULE = re.compile(r"\s*\|?[ \t]*:?-{2,}[\s:|-]*$")
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_BESIDE = re.compile(r"(?i:next actions?)[*_` ]*[:：]\s*(?!(?i:cycle)\b)(\S.*)$")
"""Directive in the heading itself, after a colon: `## Next Action: ship it`."""
_AFTER_DASH = re.compile(r"(?i:next actions?)\s+[-–—]\s+(?!(?i:cycle)\b)(\S.*)$")
"""Directive after a dash in the heading. It is only a suffix if there is text below the heading."""
_BECAUSE = re.compile(r":\s+|\s+[—–]\s+|\s+-\s+|\s+because\s+|：")


class RelayDecision(msgspec.Struct, frozen=True):
    text: str
    rationale: str
    made: date | None
    source: str
    """Lines of the relay that contain the decision, unchanged."""


class Relay(msgspec.Struct, frozen=True):
    outline: Outline

    def places(self, field: RelayField) -> list[int]:
        """Return the indexes of a field's sections, highest level first. Only the first counts."""
        sections = self.outline.sections
        places = [i for i, section in enumerate(sections) if match_field(section.title) is field]
        if not places and field is RelayField.NEXT_ACTION:
            places = [i for i, section in enumerate(sections) if _contains_text(section.title)]
        return sorted(places, key=lambda i: (sections[i].level, i))

    def content(self, field: RelayField) -> str | None:
        """Return the unchanged text of a field, or None if the relay lacks the field."""
        places = self.places(field)
        return self.outline.content(places[0]) if places else None

    @property
    def next_action(self) -> str | None:
        """Return the directive, or None if it is missing, blank or a placeholder."""
        parts = [part.strip() for part in self._read_governing() if not is_placeholder(part)]
        return "\n".join(parts) or None

    @property
    def raw_next_action(self) -> str:
        """Return the directive's text, even if it is a placeholder such as "None"."""
        return "\n".join(part for part in self._read_governing() if part.strip())

    def _read_governing(self) -> tuple[str, ...]:
        """Return the directive from the Next Action heading, and the text below the heading."""
        places = self.places(RelayField.NEXT_ACTION)
        if not places:
            return ()
        title, content = self.outline.sections[places[0]].title, self.outline.content(places[0])
        beside = _BESIDE.search(title) or (None if content.strip() else _AFTER_DASH.search(title))
        return (beside[1] if beside else "", content)

    @property
    def owners(self) -> list[RelayField | None]:
        """Return the field that each section belongs to, by its own heading or one above it."""
        directives = {
            index
            for place in self.places(RelayField.NEXT_ACTION)
            for index in self.outline.extent(place)
        }
        fields: list[RelayField | None] = []
        above: list[tuple[int, RelayField | None]] = []
        for index, section in enumerate(self.outline.sections):
            while above and above[-1][0] >= section.level:
                above.pop()
            own = match_field(section.title) or (above[-1][1] if above else None)
            above.append((section.level, own))
            fields.append(RelayField.NEXT_ACTION if index in directives else own)
        return fields

    @property
    def decisions(self) -> tuple[RelayDecision, ...]:
        decisions: list[RelayDecision] = []
        covered: set[int] = set()
        for place in self.places(RelayField.KEY_DECISIONS):
            if place not in covered:  # skip subsections of a section that was already added
                covered.update(self.outline.extent(place))
                blocks = outline.split_blocks(self.outline.content(place))
                for block in blocks:
                    if _ITEM.match(block):
                        decisions.append(_parse_decision(block))
                    else:
                        decisions += [_parse_row(line) for line in _list_rows(block)]
        return tuple(decisions)

    def with_content(self, field: RelayField, content: str) -> "Relay":
        """Return a copy with this field's text replaced and every other byte unchanged."""
        places = self.places(field)
        if places:
            return Relay(self.outline.replace_content(places[0], content))
        text = self.outline.text
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return parse(f"{text}{gap}## {field}\n{content}")

    def with_items(self, field: RelayField, items: str) -> "Relay":
        """Return a copy with list items added to a field, or the relay itself if that fails.

        A missing field is added before the Next Action. The Next Action never changes.
        """
        places, governing = self.places(field), self.places(RelayField.NEXT_ACTION)
        sections = self.outline.sections
        if places:
            end = places[0] + 1
            body = sections[places[0]].body
            own = "" if is_placeholder(body) else body.rstrip()
            before = self.outline.head + "".join(each.text for each in sections[: places[0]])
            before += f"{sections[places[0]].heading.rstrip()}\n{own.strip(_LINE_ENDS)}"
        else:
            end = governing[0] if governing else len(sections)
            level = sections[end].level if governing else 2
            before = self.outline.head + "".join(each.text for each in sections[:end])
            before += f"{_end_block(before)}{'#' * level} {field}"
        rest = "".join(section.text for section in sections[end:])
        changed = parse(f"{before.rstrip()}\n{items.strip(_LINE_ENDS)}\n\n{rest}")
        is_added = items.strip() in (changed.content(field) or "")
        return changed if is_added and changed.next_action == self.next_action else self


def parse(data: bytes | str) -> Relay:
    parsed = outline.parse(schema_mark.decode_text(data, "relay"))
    schema_mark.check_mark(parsed.head, "relay", SCHEMA)
    return Relay(parsed)


def render(relay: Relay) -> str:
    return relay.outline.text


def compose(fields: Mapping[RelayField, str]) -> Relay:
    """Return a new relay with the canonical headings in the canonical order."""
    parts = [schema_mark.render_mark("relay", SCHEMA)]
    for field in RelayField:
        if field in fields:
            body = fields[field].strip("\r\n")
            parts.append(f"## {field}\n{body}\n" if body else f"## {field}\n")
    return parse("\n".join(parts))


@lru_cache(maxsize=4096)  # cached, because all relays in a history have the same titles
def match_field(title: str) -> RelayField | None:
    """Return the field that a heading names, ignoring decoration, or None if there is none."""
    plain = outline.normalize_title(title)
    for field, spellings in _SPELLINGS.items():
        for spelling in spellings:
            if plain.startswith(spelling) and _SUFFIX.match(plain, len(spelling)):
                return field
    return None


def is_placeholder(content: str) -> bool:
    """Return whether a directive is blank, TBD, none, n/a or a row of dashes."""
    return bool(_PLACEHOLDER.fullmatch(content))


@lru_cache(maxsize=4096)
def _contains_text(title: str) -> bool:
    plain = outline.normalize_title(title)
    return any(
        # Chinese has no spaces between words, so any suffix may follow the name.
        plain.startswith(name) and (not name.isascii() or _SUFFIX.match(plain, len(name)))
        for name in _STAND_INS
    )


def _end_block(text: str) -> str:
    """Return the line breaks that separate a new heading from the text above it."""
    return "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"


def _list_rows(block: str) -> list[str]:
    """Return a table's rows without the header."""
    rows = outline.split_lines(block)
    rule = next((i for i, line in enumerate(rows) if i and _TABLE_RULE.match(line)), len(rows))
    return [line for line in rows[rule + 1 :] if line.lstrip().startswith("|")]


def _parse_row(line: str) -> RelayDecision:
    """Parse a table row into a decision, its reason, and its author or date."""
    cells = [" ".join(cell.split()) for cell in line.strip().strip("|").split("|")]
    decision, *reasons = [cell for cell in cells if not cell.strip("#.").isdecimal()] or [""]
    return RelayDecision(decision, reasons[0] if reasons else "", _find_date(line), line)


def _find_date(words: str) -> date | None:
    day = None
    for match in _DATE.finditer(words):
        try:
            day = date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            continue
    return day


def _parse_decision(block: str) -> RelayDecision:
    words = " ".join(_ITEM.sub("", block, count=1).split())
    undated = re.sub(r"\s*[(\[]\s*\d{4}-\d{2}-\d{2}\s*[)\]]\s*$", "", words)
    parts = _BECAUSE.split(undated, maxsplit=1)
    rationale = parts[1].strip() if len(parts) > 1 else ""
    return RelayDecision(parts[0].strip(), rationale, _find_date(words), block)
