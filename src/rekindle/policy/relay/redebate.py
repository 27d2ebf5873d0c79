"""Find settled decisions that a relay debates again.

Many lines mention a decision to continue it or to report progress on it, but few debate it again.
So a line counts only if it is new and

- asks for a choice, and either one of its alternatives is the decision, or it names both the chosen
  and the rejected option;
- or says that a decision should be reconsidered, and names it;
- or asks for the rejected option without naming the chosen one;
- or is one of several ranked options, under the same conditions.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date

import msgspec

from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats import outline
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.relay import deliberation
from rekindle.policy.settings.runtime_settings import (
    DECISION_ALTERNATIVE,
    DECISION_NAMED,
    HEADLINE_CHARACTERS,
)
from rekindle.policy.stall import directive
from rekindle.policy.text.likeness import find_significant_words

_AGAINST = re.compile(
    r"\s(?:over|instead of|rather than|not|vs\.?|versus)\s|优于|而非|而不是|代替|取代",
    re.IGNORECASE,
)
_RECONSIDERS = re.compile(
    r"(?<![a-z])(?:reconsider|revisit|re-?open|re-?think|re-?evaluate|re-?debate|second thoughts"
    r"|undo|revert|overturn|still (?:the )?right|was (?:it|that) (?:right|wrong|a mistake))"
    r"|重新(?:考虑|评估|讨论|选择|决定)|推翻|撤销|是否还?(?:应该|要)?(?:继续|坚持)",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"(?<![a-z])(?:switch|go|mov|chang|migrat)(?:e|ing)? (?:back )?to"
    r"|(?:^[-+*\s]*|should we |let'?s )(?:use|try|adopt)(?![a-z])"
    r"|改用|改回|换成|换回|回到|采用|使用",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(?<![a-z])(?:or|vs\.?|versus|instead of|rather than)(?![a-z])|还是|或者")
_CHOOSES = re.compile(
    r"(?<![a-z])(?:choose|decide|pick|select|weigh|compare|evaluate)(?![a-z])|选择|决定|比较|评估|权衡",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"→|=>|(?<![a-z])(?:resolved|answered|decided|answer)(?![a-z])|已(?:解决|决定)", re.IGNORECASE
)
_VERB = re.compile(
    r"^(?:we )?(?:use|using|chose|choose|go with|keep)\s+|^(?:选用|采用|使用|选择|决定|用)"
)
_ASKING = frozenset(("do", "want", "keep", "shoul", "would", "shall", "use", "have", "still"))
"""Words that introduce an alternative in a question, but do not belong to it."""
_FEWEST = 2
"""Minimum number of words in a subject; a single word is too general."""

SettledDecision = tuple[str, date | None, str]
"""Text, date and subject of a decision."""


class Redebate(msgspec.Struct, frozen=True):
    decision: str
    made: date | None
    line: str
    """Line that debates the decision again."""
    where: str

    @property
    def words(self) -> str:
        when = f" on {self.made.isoformat()}" if self.made else ""
        return (
            f"{self.where} reopens a decision: {_shorten_text(self.line)}. Decided{when}:"
            f" {_shorten_text(self.decision)}. Keep it unless there is new evidence against it;"
            " then record the new decision, with that evidence."
        )


class _ReopeningLine(msgspec.Struct, frozen=True):
    text: str
    where: str
    alternatives: tuple[str, ...] = ()
    """Options that the line offers."""


def find_redebates(
    settled: Iterable[SettledDecision], before: Relay, after: Relay
) -> tuple[Redebate, ...]:
    """Return each decision that is debated again, with the first line that debates it."""
    old_texts = {line.text for line in _list_lines(before)}
    lines = [line for line in _list_lines(after) if line.text not in old_texts]
    return tuple(
        Redebate(text, decided, line.text, line.where)
        for text, decided, subject in settled
        if (
            line := next(
                (candidate for candidate in lines if _reopens_decision(candidate, subject)), None
            )
        )
    )


def _list_lines(relay: Relay) -> Iterator[_ReopeningLine]:
    """Yield the lines that may reopen a decision."""
    for block in outline.split_blocks(relay.content(RelayField.OPEN_QUESTIONS) or ""):
        line = to_one_line(block)
        if line and not _ANSWER.search(line):
            yield _ReopeningLine(
                line,
                RelayField.OPEN_QUESTIONS,
                _find_alternatives(line) if "?" in line or "？" in line else (),
            )
    parsed = directive.read_directive(relay)
    for request in parsed.open if parsed else ():
        choice = _find_alternatives(request.text) if _CHOOSES.search(request.text) else ()
        yield _ReopeningLine(request.text, RelayField.NEXT_ACTION, choice)
    for options in deliberation.find_option_lists(relay):
        yield _ReopeningLine(" / ".join(options), "A list of options", options)


def _find_alternatives(line: str) -> tuple[str, ...]:
    parts = _BETWEEN.split(line.casefold())
    return tuple(parts) if len(parts) > 1 else ()


def _reopens_decision(line: _ReopeningLine, subject: str) -> bool:
    if not set(directive.find_identifiers(subject)) <= set(directive.find_identifiers(line.text)):
        return False  # the line is about another task or version
    parts = _AGAINST.split(_VERB.sub("", subject), maxsplit=1)
    sides = [side for part in parts if (side := find_significant_words(part))]
    if not sides:
        return False
    line_words = find_significant_words(line.text.casefold())
    is_named = [_measure_share(side, line_words) >= DECISION_NAMED for side in sides]
    options = [find_significant_words(option.casefold()) - _ASKING for option in line.alternatives]
    if len(sides) > 1:
        if options and _are_apart(sides, options):
            return True
        is_turn = not is_named[0] and is_named[1] and bool(_TURNS.search(line.text))
        return is_turn or (any(is_named) and bool(_RECONSIDERS.search(line.text)))
    if not is_named[0] or len(sides[0]) < _FEWEST:
        return False
    is_option = any(
        _measure_likeness(sides[0], option) >= DECISION_ALTERNATIVE for option in options
    )
    return is_option or bool(_RECONSIDERS.search(line.text))


def _are_apart(sides: list[frozenset[str]], options: list[frozenset[str]]) -> bool:
    """Return whether the line offers the chosen and the rejected option as alternatives."""
    chosen, other = (
        {i for i, option in enumerate(options) if _measure_share(side, option) >= DECISION_NAMED}
        for side in sides[:2]
    )
    return bool(chosen and other and chosen != other)


def _measure_share(words: frozenset[str], other: frozenset[str]) -> float:
    return len(words & other) / len(words)


def _measure_likeness(words: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(words & other) / (len(words) + len(other))


def _shorten_text(text: str) -> str:
    return to_one_line(text, HEADLINE_CHARACTERS)
