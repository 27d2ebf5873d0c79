"""What a relay asks for: the open lines of its directive, ready to be compared.

A directive is compared by what it still asks, not by how it looks: done items, dates, numbers of
cycles, counters and decoration go; whatever names a task (TASK-12, v1.2, #7, a run's id) stays.
"""

import re
from functools import lru_cache

import msgspec

from rekindle.documents import outline
from rekindle.documents.relay import Field, Relay
from rekindle.policy.stall import words

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
    # A number behind a noun tells one of a kind from the others; before it, how many there are.
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

# From one relay to the next most lines stay the same.
_cached = lru_cache(maxsize=16_384)


class Line(msgspec.Struct, frozen=True):
    text: str
    """As it is written, without its marks."""
    plain: str
    """What it says: compared with that of other lines."""
    is_label: bool
    """It names what stands below it: a heading, a line in bold, one that ends with a colon."""


class Ask(msgspec.Struct, frozen=True):
    heading: str
    """The title that all of it stands under."""
    open: tuple[Line, ...]
    done: tuple[Line, ...]
    unattended: tuple[Line, ...]
    """Those of the open ones that are said to be for the agent alone."""

    @property
    def head(self) -> Line:
        """What is asked for first."""
        return self.open[0]

    @property
    def names(self) -> list[str]:
        """What is named first: in the title, and in the item below it."""
        below = [name for line in self.open[1:2] for name in names(line.text)]
        return [*names(self.head.text), *_found(_ORDINALS, self.head.text), *below]

    @property
    def tasks(self) -> set[str]:
        """Every task that is named, done or not."""
        return {name for line in (*self.open, *self.done) for name in tasks(line.text)}

    @property
    def goes_on(self) -> bool:
        return words.goes_on(self.head.text) or words.is_endless(self.heading)

    @property
    def is_a_theme(self) -> bool:
        """Whether it stands under an endless heading and names no task at all."""
        return words.is_endless(self.heading) and not any(names(line.text) for line in self.open)


def read(relay: Relay) -> Ask | None:
    """What a relay asks for, or None where it has no directive."""
    directive = relay.next_action
    if directive is None:
        return None
    every = list(outline.unfenced(directive))
    prose = [text for text, is_prose in every if is_prose]
    lines = _lines(prose) or _lines([text for text, _ in every])
    still: list[Line] = []
    done: list[Line] = []
    aside: list[Line] = []
    unattended: list[Line] = []
    below, is_unattended = still, False
    for text, line in lines:
        if line.is_label:
            is_done = words.says_done(line.text)
            below = done if is_done else aside if words.is_aside(line.text) else still
            is_unattended = words.is_unattended(line.text)
        kept = done if words.is_ticked(text) else still if words.waits(line.text) else below
        kept.append(line)
        if kept is still and is_unattended:
            unattended.append(line)
    if not still:  # nothing is left to do: then that is what the next cycle reads
        still, done = done or aside, []
    if not still:
        return None
    heading = relay.outline.sections[relay.places(Field.NEXT_ACTION)[0]].title
    return Ask(heading, tuple(still), tuple(done), tuple(unattended))


@_cached
def names(text: str) -> tuple[str, ...]:
    """The identifiers in a text, in their order: what tells one task from another."""
    return _found(_NAMES, text)


@_cached
def tasks(text: str) -> tuple[str, ...]:
    """Those of them that a tracker or a version control system gave out."""
    return _found(_TASKS, text)


def _lines(texts: list[str]) -> list[tuple[str, Line]]:
    return [(text, line) for text in texts if (line := _line(text)) is not None]


@_cached
def _line(text: str) -> Line | None:
    if _TABLE_RULE.match(text):
        return None
    bare = " ".join(_MARK.sub("", text, count=1).split())
    # First what has a form of its own, then what is left of numbers and ornaments.
    plain = _DECORATION.sub(" ", _DATE.sub(" ", _CYCLE.sub(" ", bare)))
    plain = " ".join(_COUNT.sub(" ", plain).casefold().split()).strip(_EDGES)
    if not plain:
        return None
    clean = bare.replace("**", "").replace("`", "").lstrip("#> ")
    if opening := _CYCLE.match(clean):  # "Cycle 12: …" is not what is asked for
        clean = clean[opening.end() :].lstrip(_EDGES) or clean
    is_label = bare.startswith("#") or bare.rstrip("* ").endswith((":", "："))
    return Line(clean, plain, is_label or bool(_BOLD.match(bare)))


def _found(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    matches = pattern.findall(_CYCLE.sub(" ", text))
    return tuple(one.casefold().replace(" ", "") for one in matches)
