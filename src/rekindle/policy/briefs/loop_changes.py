"""Apply a summarizer's answer to the open loops.

The answer may open, reword, close or reopen a loop, but only if turns support the change. Loops
that the answer does not mention stay unchanged.

- To close a loop, the answer must give the loop's id, a reason, and a turn in which the person or
  the agent says in their own words that the loop is done. No later turn may contradict that turn.
  Without such a turn the loop stays open, and the brief shows the claim.
- A resolved loop that is listed again counts as a repetition. It is reopened only if a turn after
  its resolution mentions it as open.

So neither a careless answer nor tool output can lose or reopen a loop.

A loop is matched by its id or by nearly identical text. If id and text point to different loops,
the text decides. If the text has nothing in common with the loop that has this id, it is a new
loop.
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
    """Reasons, by loop id, for loops that the answer calls resolved but that stay open."""


class AnswerSources(msgspec.Struct, frozen=True):
    """The turns and loops that the summarizer's answer refers to."""

    turns: Mapping[int, Turn]
    sources: SourceTexts
    texts: Mapping[str, str]
    """Open loops as shown to the summarizer, by id.

    A loop whose text has changed since then is not reworded.
    """


def settle_loops(
    loops: LoopMap, day: DaySummary, sources: AnswerSources, now: datetime
) -> LoopChanges:
    """Return the events that apply a summarizer's answer to the current loops."""
    return _LoopSettler(loops, sources, now).settle(day)


def _find_own_text(loop: Loop | None) -> str:
    """Return the loop's text if the person or the agent wrote it, or "" if it quotes data."""
    return "" if loop is None or is_data_quotation(loop.text) else loop.text


class _LoopSettler:
    def __init__(self, loops: LoopMap, sources: AnswerSources, now: datetime) -> None:
        self._loops, self._given, self._now = loops, sources, now
        self._plain = {identity: normalize_text(loop.text) for identity, loop in loops.items()}
        self._named = [LoopName(identity, loop.text) for identity, loop in loops.items()]
        self._new: dict[str, str] = {}

    def settle(self, day: DaySummary) -> LoopChanges:
        closed: dict[str, LoopResolved] = {}
        claimed: dict[str, str] = {}
        for statement in day.resolved:
            loop = self._loops.get(statement.id)
            if loop is None or not loop.is_open or not statement.text or statement.id in closed:
                continue
            if self._is_loop_done(loop, statement):
                reason = self._given.sources.attribute_claim(statement.text, statement.turns)
                event = policy.resolve_loop(self._loops, statement.id, reason, self._now)
                closed |= {statement.id: event} if event else {}
            elif not self._given.sources.repeats_data(statement.text):
                claimed.setdefault(
                    statement.id,
                    self._given.sources.attribute_claim(statement.text, statement.turns),
                )
        opened: dict[str, LoopAdded] = {}
        for statement in day.open:
            event_of = self._make_opened(statement, set(opened) | set(closed))
            if event_of is not None:
                opened.setdefault(event_of.id, event_of)
        for identity in closed:
            claimed.pop(identity, None)
        return LoopChanges((*opened.values(), *closed.values()), claimed)

    def _is_loop_done(self, loop: Loop, statement: LoopStatement) -> bool:
        """Return whether a cited turn says that the loop is done and no later turn denies it."""
        name = LoopName(loop.id, loop.text)
        done = [
            number
            for number in statement.turns
            if self._is_after(number, loop.opened_at)
            and self._find_turn_mention(name, number) == "done"
        ]
        return bool(done) and not any(
            number > max(done) and self._find_turn_mention(name, number) == "open"
            for number in self._given.turns
        )

    def _is_mentioned_since(self, name: LoopName, statement: LoopStatement, then: datetime) -> bool:
        """Return whether a cited turn after `then` mentions the loop as open."""
        return any(
            self._is_after(number, then) and self._find_turn_mention(name, number) == "open"
            for number in statement.turns
        )

    def _find_turn_mention(self, name: LoopName, number: int) -> Mention:
        rivals = [other for other in self._named if other.id != name.id]
        return find_mention(self._given.turns[number], name, rivals, self._given.sources)

    def _is_after(self, number: int, then: datetime) -> bool:
        """Return whether a turn is later than `then`, or False if the turn has no time."""
        time = parse_time(self._given.turns[number].at)
        return time is not None and time > then

    def _make_opened(self, statement: LoopStatement, closed_ids: set[str]) -> LoopAdded | None:
        """Return the event for a reported loop, or None if it is unchanged or unsupported."""
        loop = self._find_known(statement)
        text = self._given.sources.attribute_instruction(
            statement.text, statement.turns, _find_own_text(loop)
        )
        if loop is None:
            return self._make_unknown(statement, text)
        if loop.id in closed_ids:
            return None
        if not loop.is_open:
            is_again = self._is_mentioned_since(
                LoopName(loop.id, loop.text), statement, loop.marks[-1].ts
            )
            return policy.reopen_loop(loop, loop.text, self._now) if is_again else None
        return (
            policy.reopen_loop(loop, text, self._now) if self._may_reword(loop, statement) else None
        )

    def _may_reword(self, loop: Loop, statement: LoopStatement) -> bool:
        """Return whether a statement may replace a loop's text.

        It must be about the same subject and must not be copied from tool output. The loop must be
        short, and must still have the text that the summarizer was shown.
        """
        is_as_shown = self._given.texts.get(loop.id, loop.text) == loop.text
        is_short = len(loop.text) <= ITEM_CHARACTERS
        names_it = find_naming_words(LoopName(loop.id, loop.text)) <= find_significant_words(
            normalize_text(statement.text)
        )
        is_own = self._is_own_wording(statement, also=_find_own_text(loop))
        return bool(statement.text) and is_as_shown and is_short and names_it and is_own

    def _is_own_wording(self, statement: LoopStatement, also: str = "") -> bool:
        """Return whether a text is neither a copy nor a paraphrase of tool output."""
        sources = self._given.sources
        is_copy = sources.repeats_data(statement.text)
        return not is_copy and not sources.find_data_source(statement.text, statement.turns, also)

    def _make_unknown(self, statement: LoopStatement, text: str) -> LoopAdded | None:
        """Return the event that adds a loop, or reopens a resolved loop that was only reworded."""
        repeated = [
            (measure_mention(statement.text, LoopName(loop.id, loop.text)), loop.id)
            for loop in self._loops.values()
            if not loop.is_open
            and measure_mention(statement.text, LoopName(loop.id, loop.text)) >= LOOP_NAMED
        ]
        for _, identity in sorted(repeated, reverse=True):
            loop = self._loops[identity]
            if self._is_mentioned_since(
                LoopName(identity, loop.text), statement, loop.marks[-1].ts
            ):
                return policy.reopen_loop(loop, loop.text, self._now)
        latest = [self._loops[identity].marks[-1].ts for _, identity in repeated]
        if latest and not self._is_mentioned_since(
            LoopName(statement.id, statement.text), statement, max(latest)
        ):
            return None
        return self._make_added(statement, text)

    def _make_added(self, statement: LoopStatement, text: str) -> LoopAdded | None:
        plain = normalize_text(statement.text)
        if not plain or any(is_same_text(plain, other) for other in self._new.values()):
            return None
        identity = self._make_new_id(statement)
        if identity in self._loops or identity in self._new:
            return None
        self._new[identity] = plain
        return policy.propose_loop(self._loops, identity, text, self._now)

    def _make_new_id(self, statement: LoopStatement) -> str:
        """Return the answer's id, or a new one if it is taken or copied from tool output."""
        sources, is_own = self._given.sources, self._is_own_wording(statement)
        is_free = statement.id not in self._loops and statement.id not in self._new and is_own
        if (
            is_free
            and STABLE_ID.match(statement.id)
            and not sources.repeats_data(statement.id.replace("-", " "))
        ):
            return statement.id
        if not is_own:
            return f"read-{hash_bytes(statement.text.encode('utf-8', 'replace'))[:8]}"
        return derive_id(statement.text)

    def _find_known(self, statement: LoopStatement) -> Loop | None:
        """Return the existing loop that a statement is about, or None if there is none."""
        plain = normalize_text(statement.text)
        same_id = self._loops.get(statement.id)
        similar = self._find_most_similar(plain)
        if same_id is None or same_id.id == similar:
            return self._loops.get(similar)
        if similar and not is_same_text(plain, self._plain[same_id.id]):
            return self._loops[similar]
        is_alien = measure_mention(statement.text, LoopName(same_id.id, same_id.text)) < LOOP_NAMED
        is_kin = find_swapped_word(plain, self._plain[same_id.id])
        return None if plain and (is_alien or is_kin) else same_id

    def _find_most_similar(self, plain: str) -> str:
        """Return the id of the loop with the most similar text, or "". Open loops are preferred."""
        similar = [
            (loop.is_open, measure_likeness(plain, self._plain[identity]), identity)
            for identity, loop in self._loops.items()
            if plain and is_same_text(plain, self._plain[identity])
        ]
        return max(similar)[-1] if similar else ""


def normalize_text(text: str) -> str:
    return " ".join(_WORDS.sub(" ", strip_quotation(text).casefold()).split())


def is_same_text(text: str, other: str) -> bool:
    """Return whether two normalized texts differ only in wording.

    They count as different if a word was replaced, if each has words that the other lacks, or if
    their numbers differ.
    """
    if text == other:
        return True
    words, other_words = find_core_words(text), find_core_words(other)
    if not (words <= other_words or other_words <= words) or not words:
        return False
    if set(_NUMBERED.findall(text)) != set(_NUMBERED.findall(other)) or find_swapped_word(
        text, other
    ):
        return False
    return words == other_words or measure_likeness(text, other) >= LOOP_SAME
