"""Apply a summarizer's answer to the open loops.

The answer may open, reword, close or reopen a loop, but only as far as turns support it. Loops that
it does not mention stay unchanged.

- To close a loop, the answer must name its id, a reason, and a turn in which the person or the
  agent says in their own words that it is done; no later turn may contradict that. Without such a
  turn the loop stays open, and the brief shows the claim.
- A resolved loop that is listed again counts as a repetition. Only a turn after its resolution that
  speaks of it as open reopens it.

So neither a careless answer nor tool output can lose a loop or bring one back.

A loop is matched by its id, or by nearly the same text. If the two disagree, the text decides: the
text of another loop means that loop, and a text that shares nothing with the loop of that id is a
new loop.
"""

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.events import (
    LoopAdded,
    LoopResolved,
)
from rekindle.documents.state import parse_time
from rekindle.documents.summaries.day_summary import (
    DaySummary,
    LoopStatement,
)
from rekindle.documents.summaries.summary import strip_quotation
from rekindle.documents.transcripts.turns import Turn
from rekindle.formats.identifiers import (
    STABLE_ID,
    derive_id,
)
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.briefs.loop_evidence import (
    LoopName,
    Mention,
    find_core_words,
    find_mention,
    find_naming_words,
    measure_mention,
)
from rekindle.policy.projection import open_loops as policy
from rekindle.policy.projection.open_loops import (
    Loop,
    LoopMap,
)
from rekindle.policy.settings.runtime_settings import (
    LOOP_NAMED,
    LOOP_SAME,
)
from rekindle.policy.summaries.attribution import (
    SourceTexts,
    is_data_quotation,
)
from rekindle.policy.text.likeness import (
    find_significant_words,
    find_swapped_word,
    measure_likeness,
)
from rekindle.thresholds.texts import ITEM_CHARACTERS

_NUMBERED = re.compile(r"\w*\d[\w.-]*")
_WORDS = re.compile(r"[^\w\s]|_")


class LoopChanges(msgspec.Struct, frozen=True):
    events: tuple[LoopAdded | LoopResolved, ...] = ()
    claimed: dict[str, str] = {}
    """Reasons given for loops that the answer calls resolved but that stay open, by loop id."""


class AnswerSources(msgspec.Struct, frozen=True):
    """Turns and loops that the answer is about."""

    turns: Mapping[int, Turn]
    heard: SourceTexts
    texts: Mapping[str, str]
    """Open loops as shown to the summarizer, by id. A text changed since then is not reworded."""


def settle_loops(
    loops: LoopMap, day: DaySummary, shown: AnswerSources, now: datetime
) -> LoopChanges:
    """Return the events that follow from an answer, given the current loops."""
    return _LoopSettler(loops, shown, now).of(day)


class _LoopSettler:
    def __init__(self, loops: LoopMap, shown: AnswerSources, now: datetime) -> None:
        self._loops, self._shown, self._now = loops, shown, now
        self._plain = {identity: normalize_text(loop.text) for identity, loop in loops.items()}
        self._named = [LoopName(identity, loop.text) for identity, loop in loops.items()]
        self._new: dict[str, str] = {}

    def of(self, day: DaySummary) -> LoopChanges:
        closed: dict[str, LoopResolved] = {}
        claimed: dict[str, str] = {}
        for said in day.resolved:
            known = self._loops.get(said.id)
            if known is None or not known.is_open or not said.text or said.id in closed:
                continue
            if self._is_loop_done(known, said):
                reason = self._shown.heard.claim(said.text, said.turns)
                event = policy.resolve_loop(self._loops, said.id, reason, self._now)
                closed |= {said.id: event} if event else {}
            elif not self._shown.heard.repeats_data(said.text):
                claimed.setdefault(said.id, self._shown.heard.claim(said.text, said.turns))
        opened: dict[str, LoopAdded] = {}
        for said in day.open:
            event_of = self._make_opened(said, set(opened) | set(closed))
            if event_of is not None:
                opened.setdefault(event_of.id, event_of)
        for identity in closed:
            claimed.pop(identity, None)
        return LoopChanges((*opened.values(), *closed.values()), claimed)

    def _is_loop_done(self, loop: Loop, said: LoopStatement) -> bool:
        """Return whether a named turn says that the loop is done, and no later one contradicts."""
        named = LoopName(loop.id, loop.text)
        done = [
            number
            for number in said.turns
            if self._is_after(number, loop.opened_at)
            and self._find_turn_mention(named, number) == "done"
        ]
        return bool(done) and not any(
            number > max(done) and self._find_turn_mention(named, number) == "open"
            for number in self._shown.turns
        )

    def _is_mentioned_since(self, of: LoopName, said: LoopStatement, then: datetime) -> bool:
        """Return whether a named turn after `then` speaks of the loop as open."""
        return any(
            self._is_after(number, then) and self._find_turn_mention(of, number) == "open"
            for number in said.turns
        )

    def _find_turn_mention(self, of: LoopName, number: int) -> Mention:
        rivals = [one for one in self._named if one.id != of.id]
        return find_mention(self._shown.turns[number], of, rivals, self._shown.heard)

    def _is_after(self, number: int, then: datetime) -> bool:
        """Return whether a turn is later than `then`; False if the turn has no time."""
        at = parse_time(self._shown.turns[number].at)
        return at is not None and at > then

    def _make_opened(self, said: LoopStatement, taken: set[str]) -> LoopAdded | None:
        """Return the event for a reported loop; None if it changes nothing or lacks support."""
        known = self._find_known(said)
        text = self._shown.heard.instruction(said.text, said.turns)
        if known is None:
            return self._make_unknown(said, text)
        if known.id in taken:
            return None
        if not known.is_open:
            is_again = self._is_mentioned_since(
                LoopName(known.id, known.text), said, known.marks[-1].ts
            )
            return policy.reopen_loop(known, known.text, self._now) if is_again else None
        return policy.reopen_loop(known, text, self._now) if self._may_reword(known, said) else None

    def _may_reword(self, known: Loop, said: LoopStatement) -> bool:
        """Return whether a new text may replace the old one: original, with the same subject."""
        is_as_shown = self._shown.texts.get(known.id, known.text) == known.text
        is_short = len(known.text) <= ITEM_CHARACTERS
        names_it = find_naming_words(LoopName(known.id, known.text)) <= find_significant_words(
            normalize_text(said.text)
        )
        is_own = self._is_own_wording(
            said, also="" if is_data_quotation(known.text) else known.text
        )
        return bool(said.text) and is_as_shown and is_short and names_it and is_own

    def _is_own_wording(self, said: LoopStatement, also: str = "") -> bool:
        """Return whether a text is neither a copy nor a paraphrase of data from a tool."""
        heard = self._shown.heard
        is_copy = heard.repeats_data(said.text)
        return not is_copy and not heard.find_data_source(said.text, said.turns, also)

    def _make_unknown(self, said: LoopStatement, text: str) -> LoopAdded | None:
        """Return the event of a new loop, or of a resolved one that is listed in other words."""
        repeated = [
            (measure_mention(said.text, LoopName(loop.id, loop.text)), loop.id)
            for loop in self._loops.values()
            if not loop.is_open
            and measure_mention(said.text, LoopName(loop.id, loop.text)) >= LOOP_NAMED
        ]
        for _, identity in sorted(repeated, reverse=True):
            loop = self._loops[identity]
            if self._is_mentioned_since(LoopName(identity, loop.text), said, loop.marks[-1].ts):
                return policy.reopen_loop(loop, loop.text, self._now)
        latest = [self._loops[identity].marks[-1].ts for _, identity in repeated]
        if latest and not self._is_mentioned_since(LoopName(said.id, said.text), said, max(latest)):
            return None
        return self._make_added(said, text)

    def _make_added(self, said: LoopStatement, text: str) -> LoopAdded | None:
        plain = normalize_text(said.text)
        if not plain or any(is_same_text(plain, other) for other in self._new.values()):
            return None
        identity = self._make_new_id(said)
        if identity in self._loops or identity in self._new:
            return None
        self._new[identity] = plain
        return policy.propose_loop(self._loops, identity, text, self._now)

    def _make_new_id(self, said: LoopStatement) -> str:
        """Return the id of a new loop: the given one if it is free and not copied from data."""
        heard, is_own = self._shown.heard, self._is_own_wording(said)
        is_free = said.id not in self._loops and said.id not in self._new and is_own
        if (
            is_free
            and STABLE_ID.match(said.id)
            and not heard.repeats_data(said.id.replace("-", " "))
        ):
            return said.id
        if not is_own:
            return f"read-{hash_bytes(said.text.encode('utf-8', 'replace'))[:8]}"
        return derive_id(said.text)

    def _find_known(self, said: LoopStatement) -> Loop | None:
        """Return the existing loop that a statement is about, or None."""
        plain = normalize_text(said.text)
        named = self._loops.get(said.id)
        like = self._find_most_similar(plain)
        if named is None or named.id == like:
            return self._loops.get(like)
        if like and not is_same_text(plain, self._plain[named.id]):
            return self._loops[like]
        is_alien = measure_mention(said.text, LoopName(named.id, named.text)) < LOOP_NAMED
        is_kin = find_swapped_word(plain, self._plain[named.id])
        return None if plain and (is_alien or is_kin) else named

    def _find_most_similar(self, plain: str) -> str:
        """Return the loop with nearly the same text, open ones first; empty if there is none."""
        found = [
            (loop.is_open, measure_likeness(plain, self._plain[identity]), identity)
            for identity, loop in self._loops.items()
            if plain and is_same_text(plain, self._plain[identity])
        ]
        return max(found)[-1] if found else ""


def normalize_text(text: str) -> str:
    return " ".join(_WORDS.sub(" ", strip_quotation(text).casefold()).split())


def is_same_text(one: str, other: str) -> bool:
    """Return whether two normalized texts differ only in wording.

    They are different if a word was replaced, if each has a word of its own, or if numbers differ.
    """
    if one == other:
        return True
    mine, theirs = find_core_words(one), find_core_words(other)
    if not (mine <= theirs or theirs <= mine) or not mine:
        return False
    if set(_NUMBERED.findall(one)) != set(_NUMBERED.findall(other)) or find_swapped_word(
        one, other
    ):
        return False
    return mine == theirs or measure_likeness(one, other) >= LOOP_SAME
