"""A brief: what has changed, what is open, what comes next, on a page that stays short.

What does not fit goes by whole lines: numbers, all but one risk, the oldest changes and the
youngest loops beyond a few, then the rest of them. The next step always stays. What is left out of
the page is not lost: loops are in the state, and the archive has every brief.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents.brief import Brief, Label
from rekindle.documents.state import OpenLoop
from rekindle.documents.summary import Item, carried
from rekindle.documents.transcript import Turn
from rekindle.policy import loops, tokens
from rekindle.policy.attribution import Heard
from rekindle.policy.claims import UNVERIFIED, Work, is_borne_out
from rekindle.policy.evidence import sentences
from rekindle.policy.settings import BRIEF_FEW_LINES, BRIEF_NUMBER_CHARACTERS, BRIEF_NUMBERS
from rekindle.policy.settle import is_same, plain_of
from rekindle.policy.stall.likeness import significant
from rekindle.thresholds.texts import BRIEF_NEXT_CHARACTERS

NOTHING = "nothing that is known of"
_MORE = re.compile(r"and (\d+) more")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a brief says, before it is known how much of it fits."""

    changed: tuple[str, ...] = ()
    """Oldest first."""
    more: int = 0
    """How many changes an earlier brief of the page had no room for."""
    next: str = ""
    risk: tuple[str, ...] = ()
    open: tuple[OpenLoop, ...] = ()
    claimed: Mapping[str, str] = {}
    """Loops that were called resolved, without anybody having said so in a turn."""
    numbers: Mapping[str, str] = {}


def claims(items: Iterable[Item], turns: Sequence[Turn], work: Work, heard: Heard) -> list[str]:
    """What is said to have changed, a line each; what nothing bears out is marked."""
    found: list[str] = []
    for item in items:
        line = heard.claim(item.text, item.turns)
        found.append(line if is_borne_out(item.text, turns, work) else f"{line} {UNVERIFIED}")
    return found


def numbers(
    known: Collection[str], said: Mapping[str, str], turns: Iterable[Turn], heard: Heard
) -> dict[str, str]:
    """What is said of numbers: of those that are known, and of new ones as long as they are few.

    One counts where the person or the agent has said it, in words that no tool has said.
    """
    theirs = [
        (significant(sentence.casefold()), frozenset(_DIGITS.findall(sentence)))
        for turn in turns
        if not turn.thread and turn.who in {"person", "agent"}
        for sentence in sentences(turn.text)
        if _DIGITS.search(sentence) and not heard.is_hearsay(sentence)
    ]
    shown = {name: value for name, value in said.items() if _is_said(name, value, theirs)}
    room = max(0, BRIEF_NUMBERS - len(known))
    new = [name for name in shown if name not in known][:room]
    return {name: value for name, value in shown.items() if name in known or name in new}


_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def _is_said(
    name: str, value: str, theirs: Iterable[tuple[frozenset[str], frozenset[str]]]
) -> bool:
    """Whether a sentence has both: a word of its name, and all the digits of its value."""
    digits, words = frozenset(_DIGITS.findall(value)), significant(name.casefold())
    if not digits or max(len(name), len(value)) > BRIEF_NUMBER_CHARACTERS:
        return False
    if len(value.split()) - len(digits) > _UNIT_WORDS:
        return False
    return any(digits <= found and (not words or words & about) for about, found in theirs)


_UNIT_WORDS = 2


def page(before: Brief | None, changed: Iterable[str]) -> tuple[str, ...]:
    """What has changed, with what an earlier brief of the same page said: each of it once."""
    found: dict[str, str] = {}
    known = carried(before.content(Label.CHANGED) or "") if before else ()
    for line in (*known, *changed):
        plain = plain_of(line.removesuffix(UNVERIFIED))
        is_empty = line == NOTHING or _MORE.fullmatch(line)
        if not is_empty and not any(is_same(plain, other) for other in found):
            found[plain] = line
    return tuple(found.values()) or (NOTHING,)


def more(before: Brief | None) -> int:
    """How many changes an earlier brief had no room for."""
    lines = carried(before.content(Label.CHANGED) or "") if before else ()
    return sum(int(found[1]) for line in lines if (found := _MORE.fullmatch(line)))


def write(name: str, day: date, told: Told, cap: int) -> Brief:
    """The brief, of at most so many tokens."""
    lists = {
        Label.CHANGED: list(told.changed),
        Label.OPEN_LOOPS: [_loop(one, told.claimed) for one in told.open],
        Label.RISK: list(told.risk),
        Label.NUMBERS: [f"{key} {value}" for key, value in told.numbers.items()],
    }
    following, left_out = told.next, dict.fromkeys(lists, 0) | {Label.CHANGED: told.more}
    for label, keep in _ORDER:
        while len(lists[label]) > keep:
            found = _composed(name, day, lists, following, left_out)
            if tokens.estimate(briefs.render(found)) <= cap:
                return found
            lists[label].pop(0 if label is Label.CHANGED else -1)
            left_out[label] += 1
    while True:
        found = _composed(name, day, lists, following, left_out)
        if tokens.estimate(briefs.render(found)) <= cap or len(following) <= BRIEF_NEXT_CHARACTERS:
            return found
        following = following[: len(following) * 3 // 4].rstrip() + "…"


_ORDER = (
    (Label.NUMBERS, 0),
    (Label.RISK, 1),
    (Label.CHANGED, BRIEF_FEW_LINES),
    (Label.OPEN_LOOPS, BRIEF_FEW_LINES),
    (Label.RISK, 0),
    (Label.CHANGED, 1),
    (Label.OPEN_LOOPS, 1),
    (Label.CHANGED, 0),
    (Label.OPEN_LOOPS, 0),
)


def _composed(
    name: str,
    day: date,
    lists: Mapping[Label, Sequence[str]],
    following: str,
    left_out: Mapping[Label, int],
) -> Brief:
    contents = {label: _bullets(lists[label], left_out[label]) for label in _LISTS}
    contents[Label.NEXT] = following
    contents[Label.NUMBERS] = " | ".join(lists[Label.NUMBERS])
    return briefs.compose(name, day, contents)


_LISTS = (Label.CHANGED, Label.OPEN_LOOPS, Label.RISK)


def _bullets(lines: Sequence[str], left_out: int) -> str:
    more = [f"and {left_out} more"] if left_out else []
    return "\n".join(f"- {line}" for line in (*lines, *more))


def _loop(one: OpenLoop, claimed: Mapping[str, str]) -> str:
    reason = claimed.get(one.id)
    return loops.line(one, f"said to be done: {reason}" if reason else "")
