"""Parse a relay's directive into its open lines, ready for comparison.

A directive is compared by its open requests, not by its appearance. Done items, dates, cycle
numbers, counters and decoration are dropped; anything that identifies a task (TASK-12, v1.2, #7, a
run's id) is kept.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats import outline
from rekindle.policy.stall import directive_words
from rekindle.thresholds.comparison import STALL_FREE_LINES, STALL_LINE_CHARACTERS

_CYCLE = re.compile(
    r"(?:(?<![a-z])(?:cycles?|rounds?|days?|weeks?|iterations?|sessions?)(?![a-z])|周期)"
    r"[\s#]*\d+(?:\s*[-–]\s*\d+)?|第\s*\d+\s*(?:轮|次|个?周期|天|周|批)",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?![\d_])(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?|\b\d{1,2}:\d\d\b")
_COUNT = re.compile(r"(?<![\w.,#-])[~$]?\d[\d,]*(?:\.\d+)?[+%]?(?![\w.])")
_TASK = r"""
        \d{4}-\d\d-\d\d_\w+                  # a run, 2026-07-03_115501
      | [A-Za-z]+-\d+(?:\.\d+)*              # TASK-12
      | v\d+(?:\.\d+)+                       # v1.2
      | (?:PR|issue|run)\s?\#?\d+ | \#\d+    # PR 7
      | \d+[A-Z]\w*                          # 006F4
"""
_TASKS = re.compile(rf"(?<![\w.])(?:{_TASK})(?!\w)", re.VERBOSE)
_NAMES = re.compile(
    rf"""(?<![\w.]) (?:{_TASK}
      | \d+(?:\.\d+){{2,}}                   # 7.3.1
      | (?i:step|phase|task|milestone|stage|sprint|part|product|阶段|步骤|任务)\s?\#?\d+(?:\.\d+)*
    ) (?!\w)""",
    re.VERBOSE,
)
_ORDINALS = re.compile(
    # A number after a noun identifies one of several things; a number before a noun is a count.
    r"""(?<![\w.]) (?!(?:about|all|and|for|from|last|least|most|next|only|over|than|the|top|with)\b)
        [a-z]{3,}\s\#?\d{1,4} (?=\s*(?:\Z|[^\w\s%-]|(?:and|for|from|in|into|of|on|or|to|with)\b))
      | 第\s?\d+\s?[^\W\d_a-z]""",
    re.IGNORECASE | re.VERBOSE,
)
_MARK = re.compile(r"[\s>]*(?:(?:[-+*•]|\d{1,3}[.)、])\s+)?(?:\[[ xX✓✔]\]\s*)?")
_DECORATION = re.compile(r"[^\w\s.,:;/()\-+&%'\"#，。：；（）、]|_")
_EDGES = " .,:;-–—#：，。、"
_BOLD = re.compile(r"\*\*[^*]+\*\*(?: ?[(（][^)）]*[)）])?[^\w*]*\Z")
_TABLE_RULE = re.compile(r"[\s|:>-]*\Z")

# Cached, because most lines stay the same from one relay to the next.
_cached = lru_cache(maxsize=16_384)


class DirectiveLine(msgspec.Struct, frozen=True):
    text: str
    """The line's original text, without list markers."""
    plain: str
    """Normalized text, for comparison with other lines."""
    is_label: bool
    """Whether the line is a label: a heading, a bold line, or a line that ends with a colon."""


class Directive(msgspec.Struct, frozen=True):
    heading: str
    """Title of the directive's section."""
    open: tuple[DirectiveLine, ...]
    done: tuple[DirectiveLine, ...]
    unattended: tuple[DirectiveLine, ...] = ()
    """Open lines marked as work that the agent can do alone."""
    is_free: bool = False
    """Whether the relay has no directive, so that these are its first lines."""

    @property
    def head(self) -> DirectiveLine:
        """Return the directive's first request."""
        return self.open[0]

    @property
    def names(self) -> list[str]:
        """Return the identifiers in the first line and in the item below it."""
        below = [name for line in self.open[1:2] for name in find_identifiers(line.text)]
        return [*find_identifiers(self.head.text), *_find_all(_ORDINALS, self.head.text), *below]

    @property
    def tasks(self) -> set[str]:
        """Return all tasks that the directive names, done or not."""
        return {name for line in (*self.open, *self.done) for name in find_tasks(line.text)}

    @property
    def asks_to_continue(self) -> bool:
        return directive_words.asks_for_more(self.head.text) or directive_words.is_endless(
            self.heading
        )

    @property
    def is_open_ended(self) -> bool:
        """Return whether the heading asks for endless work and no task is named."""
        return directive_words.is_endless(self.heading) and not any(
            find_identifiers(line.text) for line in self.open
        )


def read_directive(relay: Relay) -> Directive | None:
    """Return a relay's directive, or None if it has none."""
    directive = relay.next_action
    if directive is None:
        return None
    every = list(outline.mark_prose(directive))
    prose = [text for text, is_prose in every if is_prose]
    lines = read_lines(prose) or read_lines([text for text, _ in every])
    still: list[DirectiveLine] = []
    done: list[DirectiveLine] = []
    aside: list[DirectiveLine] = []
    unattended: list[DirectiveLine] = []
    below, is_unattended = still, False
    for text, line in lines:
        if line.is_label:
            is_done = directive_words.says_done(line.text)
            below = (
                done if is_done else aside if directive_words.is_status_label(line.text) else still
            )
            is_unattended = directive_words.is_unattended(line.text)
        target = (
            done
            if directive_words.is_ticked(text)
            else still
            if directive_words.is_wait(line.text)
            else below
        )
        target.append(line)
        if target is still and is_unattended:
            unattended.append(line)
    if not still:  # no open items are left, so use the done items
        still, done = done or aside, []
    if not still:
        return None
    heading = relay.outline.sections[relay.places(RelayField.NEXT_ACTION)[0]].title
    return Directive(heading, tuple(still), tuple(done), tuple(unattended))


@_cached
def find_identifiers(text: str) -> tuple[str, ...]:
    """Return the identifiers in a text that distinguish one task from another, in order."""
    return _find_all(_NAMES, text)


@_cached
def find_tasks(text: str) -> tuple[str, ...]:
    """Return the identifiers that a tracker or a version control system assigned."""
    return _find_all(_TASKS, text)


def read_free_text(lines: Iterable[tuple[str, DirectiveLine]]) -> Directive | None:
    """Return the first and last lines of a relay without a directive, to compare them instead."""
    body = [line for text, line in lines if not text.startswith("#")]
    half = STALL_FREE_LINES // 2
    some = body if len(body) <= STALL_FREE_LINES else body[:half] + body[-half:]
    return Directive("", tuple(some), (), is_free=True) if some else None


def read_lines(texts: Iterable[str]) -> list[tuple[str, DirectiveLine]]:
    return [(text, line) for text in texts if (line := _read_line(text)) is not None]


@_cached
def _read_line(text: str) -> DirectiveLine | None:
    if _TABLE_RULE.match(text):
        return None
    bare = " ".join(_MARK.sub("", text[:STALL_LINE_CHARACTERS], count=1).split())
    # Remove whole dates and cycle numbers first, then other numbers and decoration.
    plain = _DECORATION.sub(" ", _DATE.sub(" ", _CYCLE.sub(" ", bare)))
    plain = " ".join(_COUNT.sub(" ", plain).casefold().split()).strip(_EDGES)
    if not plain:
        return None
    clean = bare.replace("**", "").replace("`", "").lstrip("#> ")
    if opening := _CYCLE.match(clean):  # "Cycle 12: …" is not part of the request
        clean = clean[opening.end() :].lstrip(_EDGES) or clean
    is_label = bare.startswith("#") or bare.rstrip("* ").endswith((":", "："))
    return DirectiveLine(clean, plain, is_label or bool(_BOLD.match(bare)))


def _find_all(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    matches = pattern.findall(_CYCLE.sub(" ", text))
    return tuple(match.casefold().replace(" ", "") for match in matches)
