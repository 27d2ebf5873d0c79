"""Compose a brief: changes, open loops and the next step, within a token limit.

If the page is too long, whole lines are dropped in this order: all numbers, all risks but one, all
but a few changes and open loops, the last risk, and then the remaining changes and loops. The
oldest changes and the newest loops are dropped first. The next step is never dropped, only
shortened.

Dropped lines are not lost: the state has every loop, and the archive has every brief.
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

NOTHING_KNOWN = "no recorded changes"
_MORE = re.compile(r"and (\d+) more")


class BriefContent(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a brief before it is shortened to its token limit."""

    changed: tuple[str, ...] = ()
    """Changes, oldest first."""
    more: int = 0
    """Number of changes that an earlier brief for the same morning left out."""
    next: str = ""
    risk: tuple[str, ...] = ()
    open: tuple[OpenLoop, ...] = ()
    claimed: Mapping[str, str] = {}
    """Reasons for loops that the summarizer called resolved without evidence, by loop id."""
    numbers: Mapping[str, str] = {}


def mark_claims(
    items: Iterable[SummaryItem], turns: Sequence[Turn], work: GitWork, sources: SourceTexts
) -> list[str]:
    """Return one line per claimed change, marked if neither git nor the tests support it."""
    lines: list[str] = []
    for item in items:
        line = sources.attribute_claim(item.text, item.turns)
        lines.append(
            line if is_claim_supported(item.text, turns, work) else f"{line} {UNVERIFIED_MARK}"
        )
    return lines


def select_numbers(
    known_names: Collection[str],
    reported: Mapping[str, str],
    turns: Iterable[Turn],
    sources: SourceTexts,
) -> dict[str, str]:
    """Return new values for known numbers, and new numbers up to the limit.

    A number counts only if the person or the agent stated it in a sentence that does not repeat
    tool output.
    """
    stated = [
        (find_significant_words(sentence.casefold()), frozenset(_DIGITS.findall(sentence)))
        for turn in turns
        if not turn.thread and turn.who in {"person", "agent"}
        for sentence in split_sentences(turn.text)
        if _DIGITS.search(sentence) and not sources.repeats_data(sentence)
    ]
    supported = {
        name: value for name, value in reported.items() if _is_number_stated(name, value, stated)
    }
    room = max(0, BRIEF_NUMBERS - len(known_names))
    new = [name for name in supported if name not in known_names][:room]
    return {name: value for name, value in supported.items() if name in known_names or name in new}


_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def _is_number_stated(
    name: str, value: str, stated: Iterable[tuple[frozenset[str], frozenset[str]]]
) -> bool:
    """Return whether a sentence has a word from the name and all numbers from the value."""
    digits, words = frozenset(_DIGITS.findall(value)), find_significant_words(name.casefold())
    if not digits or max(len(name), len(value)) > BRIEF_NUMBER_CHARACTERS:
        return False
    if len(value.split()) - len(digits) > _UNIT_WORDS:
        return False
    return any(
        digits <= digits_there and (not words or words & words_there)
        for words_there, digits_there in stated
    )


_UNIT_WORDS = 2


def merge_changes(before: Brief | None, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the changes from an earlier brief and the new ones, without duplicates."""
    merged: dict[str, str] = {}
    earlier = list_carried_items(before.content(BriefLabel.CHANGED) or "") if before else ()
    for line in (*earlier, *changed):
        plain = normalize_text(line.removesuffix(UNVERIFIED_MARK))
        is_empty = line == NOTHING_KNOWN or _MORE.fullmatch(line)
        if not is_empty and not any(is_same_text(plain, other) for other in merged):
            merged[plain] = line
    return tuple(merged.values()) or (NOTHING_KNOWN,)


def count_left_out(before: Brief | None) -> int:
    """Return the number of changes that an earlier brief left out."""
    lines = list_carried_items(before.content(BriefLabel.CHANGED) or "") if before else ()
    return sum(int(match[1]) for line in lines if (match := _MORE.fullmatch(line)))


def compose_brief(name: str, day: date, content: BriefContent, cap: int) -> Brief:
    """Return the brief, shortened to at most `cap` tokens."""
    lists = {
        BriefLabel.CHANGED: list(content.changed),
        BriefLabel.OPEN_LOOPS: [_render_loop(loop, content.claimed) for loop in content.open],
        BriefLabel.RISK: list(content.risk),
        BriefLabel.NUMBERS: [f"{key} {value}" for key, value in content.numbers.items()],
    }
    following, left_out = content.next, dict.fromkeys(lists, 0) | {BriefLabel.CHANGED: content.more}
    for label, keep in _ORDER:
        while len(lists[label]) > keep:
            page = _compose_page(name, day, lists, following, left_out)
            if token_estimate.estimate_tokens(briefs.render(page)) <= cap:
                return page
            lists[label].pop(0 if label is BriefLabel.CHANGED else -1)
            left_out[label] += 1
    while True:
        page = _compose_page(name, day, lists, following, left_out)
        if (
            token_estimate.estimate_tokens(briefs.render(page)) <= cap
            or len(following) <= BRIEF_NEXT_CHARACTERS
        ):
            return page
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


def _render_loop(loop: OpenLoop, claimed: Mapping[str, str]) -> str:
    reason = claimed.get(loop.id)
    return open_loops.render_loop_line(loop, f"reported done: {reason}" if reason else "")
