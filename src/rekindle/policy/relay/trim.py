"""Trim a relay to its cap without changing its directive.

Lines are removed in this order, and only until the relay fits: done lines; What We Did; the oldest
decisions; sections that are not fields, from the bottom; the minor fields, with the oldest failed
approaches next to last. In a Next Action only done lines are removed. Lines are never rewritten.
Removed lines are returned, so they can be archived first. A relay without a directive is left
unchanged, because a text that cannot be parsed must not be cut.

Removing a line can change how others are parsed: half a comment hides the headings after it. So the
remaining text is parsed again. If its sections differ from before, whole sections are removed
instead of blocks, or nothing at all.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import lru_cache

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import Relay, RelayField
from rekindle.formats import outline, schema_mark
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import HEADLINE_CHARACTERS
from rekindle.policy.text.token_estimate import (
    estimate_tokens,
    estimate_unrounded,
)
from rekindle.thresholds.texts import RELAY_HEADING_TOKENS

_DONE_ITEM = re.compile(
    r"\s*(?:[-+*]|\d{1,9}[.)])\s+(?:\[[xX✓✔]\]|[✅☑✔]|~~.*~~[\s.!]*$|\S.*✅\s*$)"
)
_NEW_BLOCK = re.compile(r"\s*(?:[-+*]\s|\d{1,9}[.)]\s|[#>|<=]|`{3}|~{3}|-{3}|\*{3}|_{3})")
_OPEN_BOX = re.compile(r"\s*(?:[-+*]|\d{1,9}[.)])\s+\[ \]")
_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_LAST_TO_GO = (
    RelayField.METRICS,
    RelayField.ACTIVE_PROJECTS,
    RelayField.OPEN_QUESTIONS,
    RelayField.FAILED_APPROACHES,
    RelayField.CURRENT_PHASE,
)
_BY_AGE = (RelayField.KEY_DECISIONS, RelayField.FAILED_APPROACHES)
"""Fields from which the oldest items are removed first."""


# Cached, because most lines stay the same from one relay to the next.
_weigh = lru_cache(maxsize=65_536)(estimate_unrounded)


class RemovedText(msgspec.Struct, frozen=True):
    heading: str
    """Title of the section that the text was removed from."""
    reason: str
    text: str


class TrimResult(msgspec.Struct, frozen=True):
    relay: Relay
    removed: tuple[RemovedText, ...]
    tokens_before: int
    tokens: int
    fits: bool


def trim_relay(relay: Relay, cap: int) -> TrimResult:
    before = estimate_tokens(relays.render(relay))
    if before <= cap or relay.next_action is None:
        return TrimResult(relay, (), before, before, before <= cap)
    for finely in (True, False):
        page = _RelayPage(relay, finely=finely)
        for reason, lines in _list_candidates(page):
            if page.weight <= cap:
                break
            page.remove(lines, reason)
        parsed = relays.parse(page.text)
        if page.keeps_sections(parsed):
            after = estimate_tokens(page.text)
            result = TrimResult(parsed, page.removed, before, after, after <= cap)
            return (
                result if finely or result.fits or not result.removed else _trim_blocks(result, cap)
            )
    return TrimResult(relay, (), before, before, fits=False)


def _trim_blocks(before: TrimResult, cap: int) -> TrimResult:
    """Trim the relay again by blocks, now that the sections that prevented it are gone."""
    rest = trim_relay(before.relay, cap)
    return msgspec.structs.replace(
        rest, removed=before.removed + rest.removed, tokens_before=before.tokens_before
    )


def cut_for_primer(relay: Relay, cap: int, path: str) -> Relay:
    """Return the relay for a primer, shortened if trimming was not enough to meet the cap.

    A shortened relay contains its phase on one line and the beginning of its directive, with a
    pointer to the whole relay.
    """
    if estimate_tokens(relays.render(relay)) <= cap:
        return relay
    pointer = f"(cut here: read the rest in {path} before you act)\n"
    phase = to_one_line(relay.content(RelayField.CURRENT_PHASE) or "", HEADLINE_CHARACTERS)
    phase = phase.lstrip("#<`~ ")  # a heading or a fence in the phase must not hide the directive
    above = relays.render(relays.compose({RelayField.CURRENT_PHASE: phase} if phase else {}))
    room = cap - estimate_unrounded(pointer) - estimate_unrounded(above) - RELAY_HEADING_TOKENS
    lines: list[str] = []
    for line in outline.split_lines(relay.next_action or ""):
        weight = _weigh(line)
        if weight > room:
            # The beginning of a line is enough to name its subject.
            lines.append(line[: int(len(line) * max(room, 0) / weight)])
            break
        room -= weight
        lines.append(line)
    # Use a top-level heading, so that no heading inside the directive ends it.
    directive = "".join(lines).rstrip()
    return relays.parse(f"{above}\n# {RelayField.NEXT_ACTION}\n{directive}\n\n{pointer}")


def render_archive(removed: tuple[RemovedText, ...], title: str) -> str:
    """Render the removed lines as text for the archive, grouped under their headings."""
    parts = [schema_mark.render_mark("trimmed", 1), f"# {title}\n"]
    heading = None
    for piece in removed:
        if piece.heading != heading:
            heading = piece.heading
            parts.append(f"\n## {heading or 'Before the first heading'}\n")
        parts.append(piece.text if piece.text.endswith(("\n", "\r")) else piece.text + "\n")
    return "".join(parts)


def is_done_item(line: str) -> bool:
    """Return whether a line is a list item that is ticked or struck out."""
    return bool(_DONE_ITEM.match(line.rstrip("\r\n")))


class _PageLine(msgspec.Struct):
    text: str
    section: int
    """Index of the line's section; -1 before the first heading."""
    block: int
    weight: float
    is_heading: bool = False
    in_fence: bool = False
    fixed: bool = False
    reason: str = ""
    """Reason for removing the line; empty if it is kept."""


class _RelayPage:
    """A relay's lines with their sections and blocks. Trimming removes groups of these lines.

    If `finely` is true, blocks are paragraphs and list items. Otherwise, a section's text is one
    block.
    """

    def __init__(self, relay: Relay, *, finely: bool) -> None:
        self.relay = relay
        self.finely = finely
        self.sections = relay.outline.sections
        self.lines: list[_PageLine] = []
        self.owners = relay.owners
        self._blocks = 0
        self._add_lines(relay.outline.head, -1)
        for index, section in enumerate(self.sections):
            heading = outline.split_lines(section.heading)
            if len(heading) > 1:
                self._tie_gap(index)
            for text in heading:
                self.lines.append(_PageLine(text, index, -1, _weigh(text), is_heading=True))
            self._add_lines(section.body, index)
        self._fix_front_matter()
        self.own: dict[int, list[_PageLine]] = {}
        for line in self.lines:
            self.own.setdefault(line.section, []).append(line)
        self.weight = sum(line.weight for line in self.lines)

    @property
    def text(self) -> str:
        return "".join(line.text for line in self.lines if not line.reason)

    @property
    def removed(self) -> tuple[RemovedText, ...]:
        return tuple(
            RemovedText(
                self._make_heading(line.section),
                line.reason,
                line.text,
            )
            for line in self.lines
            if line.reason
        )

    def keeps_sections(self, parsed: Relay) -> bool:
        """Return whether the remaining lines still parse into the same sections."""
        expected: list[tuple[str, str]] = [("", self._read_left(-1))]
        for index, section in enumerate(self.sections):
            if not self.own[index][0].reason:
                expected.append((section.heading, self._read_left(index)))
        actual = [("", parsed.outline.head.strip())]
        actual += [(section.heading, section.body.strip()) for section in parsed.outline.sections]
        return actual == expected

    def blocks(self, section: int) -> list[list[_PageLine]]:
        """Return the remaining lines of a section's own text, by block."""
        blocks_by_number: dict[int, list[_PageLine]] = {}
        for line in self.own.get(section, ()):
            if not line.is_heading and not line.reason:
                blocks_by_number.setdefault(line.block, []).append(line)
        return list(blocks_by_number.values())

    def owned_by(self, field: RelayField) -> list[int]:
        return [index for index, owner in enumerate(self.owners) if owner is field]

    def remove(self, lines: list[_PageLine], reason: str) -> None:
        for line in lines:
            if not line.fixed and not line.reason:
                line.reason = reason
                self.weight -= line.weight

    def _make_heading(self, section: int) -> str:
        """Return a section's title and field. The archive has no heading levels."""
        if section < 0:
            return ""
        title, owner = self.sections[section].title, self.owners[section]
        return title if owner is None or relays.match_field(title) else f"{owner}: {title}"

    def _read_left(self, section: int) -> str:
        own = self.own.get(section, ())
        return "".join(line.text for line in own if not line.reason and not line.is_heading).strip()

    def _add_lines(self, text: str, section: int) -> None:
        # The phase is the topic of the whole relay, so its first block is kept.
        fixed = section >= 0 and self.owners[section] is RelayField.CURRENT_PHASE
        for block in outline.split_blocks(text) if self.finely else [text]:
            for line, is_prose in outline.mark_prose(block):
                self.lines.append(
                    _PageLine(
                        line,
                        section,
                        self._blocks,
                        _weigh(line),
                        in_fence=not is_prose,
                        fixed=fixed,
                    )
                )
            self._blocks += 1
            fixed = fixed and not block.strip()

    def _tie_gap(self, section: int) -> None:
        """Treat the blank line above an underlined heading as part of the heading."""
        if self.lines and not self.lines[-1].text.strip():
            gap = self.lines[-1]
            if gap.section < 0 or self.owners[gap.section] is not RelayField.NEXT_ACTION:
                gap.section, gap.is_heading = section, True

    def _fix_front_matter(self) -> None:
        """Protect front matter and the schema mark, which programs read."""
        head = [line for line in self.lines if line.section < 0]
        rule = "---"
        if head and head[0].text.lstrip("\ufeff").rstrip() == rule:
            for line in head:
                line.fixed = True
                if line is not head[0] and line.text.rstrip() in {rule, "..."}:
                    break
        for line in head:
            if line.text.startswith("<!-- rekindle:"):
                line.fixed = True


def _list_candidates(page: _RelayPage) -> Iterator[tuple[str, list[_PageLine]]]:
    """Yield groups of lines in the order of their removal, with the reason."""
    if page.finely:
        yield from (("done", group) for group in _list_done_items(page))
    for section in page.owned_by(RelayField.WHAT_WE_DID):
        yield from (("history", block) for block in page.blocks(section))
    yield from (("decision", block) for block in _sort_by_age(page, RelayField.KEY_DECISIONS))
    yield from (("other", block) for block in _list_other_sections(page))


def _list_done_items(page: _RelayPage) -> Iterator[list[_PageLine]]:
    """Yield done items, except in fields whose items are removed later, by age."""
    lines = page.lines
    spared = _find_finished_directive(page)
    for number, line in enumerate(lines):
        owner = page.owners[line.section] if line.section >= 0 else None
        if line.is_heading or line.in_fence or owner in _BY_AGE:
            continue
        if line.section in spared or not is_done_item(line.text):
            continue
        below = _list_lines_below(lines, number)
        if below is None:
            continue
        if owner is RelayField.NEXT_ACTION:
            # Open details would move below the previous item, so a done item with open details is
            # kept.
            details = [detail for detail in below if detail.text.strip()]
            if all(is_done_item(detail.text) and not detail.in_fence for detail in details):
                yield [line, *details]
        elif not any(_OPEN_BOX.match(detail.text) for detail in below):
            yield [line, *below]


def _find_finished_directive(page: _RelayPage) -> range:
    """Return the directive's sections if everything in them is done.

    They are kept, because a relay must have a directive.
    """
    extent = page.relay.outline.extent(page.relay.places(RelayField.NEXT_ACTION)[0])
    open_lines = (
        line.text
        for section in extent
        for line in page.own[section]
        if not line.is_heading and (line.in_fence or not is_done_item(line.text))
    )
    return extent if relays.is_placeholder("".join(open_lines)) else range(0)


def _list_lines_below(lines: list[_PageLine], number: int) -> list[_PageLine] | None:
    """Return the lines that belong to a list item, or None if a line is not indented."""
    indent = _measure_indent(lines[number].text)
    below: list[_PageLine] = []
    gap: list[_PageLine] = []
    for position in range(number + 1, len(lines)):
        line = lines[position]
        if line.is_heading:
            break
        if not line.text.strip():
            gap.append(line)
            continue
        is_code_of_it = below and below[-1].in_fence and line.in_fence
        if _measure_indent(line.text) <= indent and not (
            is_code_of_it and line.block == below[-1].block
        ):
            if not gap and not _NEW_BLOCK.match(line.text):
                return None
            break
        below += [*gap, line]
        gap = []
    return below


def _sort_by_age(page: _RelayPage, field: RelayField) -> list[list[_PageLine]]:
    """Sort a field's items by their own date or their heading's date.

    An undated item gets the date of the one above it. Items with equal dates keep their order.
    """
    blocks = []
    dates = []
    for section in page.owned_by(field):
        title = page.sections[section].title
        above = None if relays.match_field(title) else _find_latest_date(title)
        for block in page.blocks(section):
            blocks.append(block)
            dates.append(_find_latest_date("".join(line.text for line in block)) or above)
    dated = [day for day in dates if day]
    newest_first = len(dated) > 1 and dated[0] > dated[-1]
    filled: list[date] = []
    last = dated[0] if dated else date.min
    for day in dates:
        last = day or last
        filled.append(last)
    order = sorted(range(len(blocks)), key=lambda i: (filled[i], -i if newest_first else i))
    return [blocks[i] for i in order]


def _find_latest_date(text: str) -> date | None:
    dates = []
    for day in _DATE.findall(text):
        with suppress(ValueError):
            dates.append(date.fromisoformat(day))
    return max(dates, default=None)


def _list_other_sections(page: _RelayPage) -> Iterator[list[_PageLine]]:
    """Yield the sections that are not relay fields, from the bottom, then the minor fields."""
    unknown = [index for index, owner in enumerate(page.owners) if owner is None]
    for section in (*reversed(unknown), -1):
        yield from reversed(page.blocks(section))
        if section >= 0 and not _has_kept_below(page, section):
            yield page.own[section]
    for field in _LAST_TO_GO:
        if field in _BY_AGE:
            yield from _sort_by_age(page, field)
            continue
        for section in reversed(page.owned_by(field)):
            yield from reversed(page.blocks(section))


def _has_kept_below(page: _RelayPage, section: int) -> bool:
    below = page.relay.outline.extent(section)[1:]
    return any(not line.reason for index in below for line in page.own[index])


def _measure_indent(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))
