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
from rekindle.documents.brief import (
    Brief,
    BriefLabel,
)
from rekindle.documents.state import OpenLoop
from rekindle.documents.summaries.summary import (
    SummaryItem,
    list_carried_items,
)
from rekindle.documents.transcripts.turns import Turn
from rekindle.policy.briefs.claim_check import (
    UNVERIFIED_MARK,
    GitWork,
    is_claim_supported,
)
from rekindle.policy.briefs.loop_changes import (
    is_same_text,
    normalize_text,
)
from rekindle.policy.briefs.loop_evidence import split_sentences
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import (
    BRIEF_FEW_LINES,
    BRIEF_NUMBER_CHARACTERS,
    BRIEF_NUMBERS,
)
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.policy.text import token_estimate
from rekindle.policy.text.likeness import find_significant_words
from rekindle.thresholds.texts import BRIEF_NEXT_CHARACTERS, BRIEF_NEXT_SHARE

NOTHING_KNOWN = "nothing that is known of"
_MORE = re.compile(r"and (\d+) more")


class BriefContent(msgspec.Struct, frozen=True, kw_only=True):
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


def mark_claims(
    items: Iterable[SummaryItem], turns: Sequence[Turn], work: GitWork, heard: SourceTexts
) -> list[str]:
    """What is said to have changed, a line each; what nothing bears out is marked."""
    found: list[str] = []
    for item in items:
        line = heard.claim(item.text, item.turns)
        found.append(
            line if is_claim_supported(item.text, turns, work) else f"{line} {UNVERIFIED_MARK}"
        )
    return found


def select_numbers(
    known: Collection[str], said: Mapping[str, str], turns: Iterable[Turn], heard: SourceTexts
) -> dict[str, str]:
    """What is said of numbers: of those that are known, and of new ones as long as they are few.

    One counts where the person or the agent has said it, in words that no tool has said.
    """
    theirs = [
        (find_significant_words(sentence.casefold()), frozenset(_DIGITS.findall(sentence)))
        for turn in turns
        if not turn.thread and turn.who in {"person", "agent"}
        for sentence in split_sentences(turn.text)
        if _DIGITS.search(sentence) and not heard.repeats_data(sentence)
    ]
    shown = {name: value for name, value in said.items() if _is_number_stated(name, value, theirs)}
    room = max(0, BRIEF_NUMBERS - len(known))
    new = [name for name in shown if name not in known][:room]
    return {name: value for name, value in shown.items() if name in known or name in new}


_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def _is_number_stated(
    name: str, value: str, theirs: Iterable[tuple[frozenset[str], frozenset[str]]]
) -> bool:
    """Whether a sentence has both: a word of its name, and all the digits of its value."""
    digits, words = frozenset(_DIGITS.findall(value)), find_significant_words(name.casefold())
    if not digits or max(len(name), len(value)) > BRIEF_NUMBER_CHARACTERS:
        return False
    if len(value.split()) - len(digits) > _UNIT_WORDS:
        return False
    return any(digits <= found and (not words or words & about) for about, found in theirs)


_UNIT_WORDS = 2


def merge_changes(before: Brief | None, changed: Iterable[str]) -> tuple[str, ...]:
    """What has changed, with what an earlier brief of the same page said: each of it once."""
    found: dict[str, str] = {}
    known = list_carried_items(before.content(BriefLabel.CHANGED) or "") if before else ()
    for line in (*known, *changed):
        plain = normalize_text(line.removesuffix(UNVERIFIED_MARK))
        is_empty = line == NOTHING_KNOWN or _MORE.fullmatch(line)
        if not is_empty and not any(is_same_text(plain, other) for other in found):
            found[plain] = line
    return tuple(found.values()) or (NOTHING_KNOWN,)


def count_left_out(before: Brief | None) -> int:
    """How many changes an earlier brief had no room for."""
    lines = list_carried_items(before.content(BriefLabel.CHANGED) or "") if before else ()
    return sum(int(found[1]) for line in lines if (found := _MORE.fullmatch(line)))


def compose_brief(name: str, day: date, told: BriefContent, cap: int) -> Brief:
    """The brief, of at most so many tokens."""
    lists = {
        BriefLabel.CHANGED: list(told.changed),
        BriefLabel.OPEN_LOOPS: [_render_loop(one, told.claimed) for one in told.open],
        BriefLabel.RISK: list(told.risk),
        BriefLabel.NUMBERS: [f"{key} {value}" for key, value in told.numbers.items()],
    }
    following, left_out = told.next, dict.fromkeys(lists, 0) | {BriefLabel.CHANGED: told.more}
    for label, keep in _ORDER:
        while len(lists[label]) > keep:
            found = _compose_page(name, day, lists, following, left_out)
            if token_estimate.estimate_tokens(briefs.render(found)) <= cap:
                return found
            lists[label].pop(0 if label is BriefLabel.CHANGED else -1)
            left_out[label] += 1
    while True:
        found = _compose_page(name, day, lists, following, left_out)
        if (
            token_estimate.estimate_tokens(briefs.render(found)) <= cap
            or len(following) <= BRIEF_NEXT_CHARACTERS
        ):
            return found
        following = following[: int(len(following) * BRIEF_NEXT_SHARE)].rstrip() + "…"


_ORDER = (
    (BriefLabel.NUMBERS, 0),
    (BriefLabel.RISK, 1),
    (BriefLabel.CHANGED, BRIEF_FEW_LINES),
    (BriefLabel.OPEN_LOOPS, BRIEF_FEW_LINES),
    (BriefLabel.RISK, 0),
    (BriefLabel.CHANGED, 1),
    (BriefLabel.OPEN_LOOPS, 1),
    (BriefLabel.CHANGED, 0),
    (BriefLabel.OPEN_LOOPS, 0),
)


def _compose_page(
    name: str,
    day: date,
    lists: Mapping[BriefLabel, Sequence[str]],
    following: str,
    left_out: Mapping[BriefLabel, int],
) -> Brief:
    contents = {label: _render_bullets(lists[label], left_out[label]) for label in _LISTS}
    contents[BriefLabel.NEXT] = following
    contents[BriefLabel.NUMBERS] = " | ".join(lists[BriefLabel.NUMBERS])
    return briefs.compose(name, day, contents)


_LISTS = (BriefLabel.CHANGED, BriefLabel.OPEN_LOOPS, BriefLabel.RISK)


def _render_bullets(lines: Sequence[str], left_out: int) -> str:
    more = [f"and {left_out} more"] if left_out else []
    return "\n".join(f"- {line}" for line in (*lines, *more))


def _render_loop(one: OpenLoop, claimed: Mapping[str, str]) -> str:
    reason = claimed.get(one.id)
    return open_loops.render_loop_line(one, f"said to be done: {reason}" if reason else "")
