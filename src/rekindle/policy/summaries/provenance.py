"""Find the source of a text, even if the text was reworded.

A paraphrase keeps few consecutive words, but most of the rare words. So the stems of a text, in any
order, are compared with those of possible sources: sentences from the person, the agent and the
notes, and windows of a few lines in tool and CLI output. Names and numbers must match as a whole,
and negations must agree.
"""

import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

import msgspec

from rekindle.formats.identifiers import strip_invisible
from rekindle.policy.settings.runtime_settings import (
    STALL_STEM_CHARACTERS,
    TRACE_GAP,
    TRACE_HEARSAY,
    TRACE_STEMS,
    TRACE_SUPPORT,
    TRACE_WINDOW_WORDS,
)
from rekindle.policy.summaries.exact_names import KnownNames
from rekindle.policy.summaries.negations import (
    find_forbidden_stems,
    has_other_negations,
    list_clauses,
)

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_IDEOGRAPHS_OR_WORD = re.compile(
    rf"{_IDEOGRAPHS.pattern}|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|s)\Z")
_COMMON = re.compile(
    "a|about|above|after|again|against|all|also|although|always|am|an|and|another|any|are"
    "|as|at|be|because|been|before|being|below|between|both|but|by|came|can|cannot|come"
    "|could|did|do|does|doing|done|down|during|each|either|else|ever|every|few|for|from"
    "|further|get|gets|give|go|goes|going|got|had|has|have|having|he|her|here|hers|him|his"
    "|how|i|if|in|indeed|instead|into|is|it|its|itself|just|later|least|less|let|like|ll"
    "|made|make|makes|many|may|maybe|me|might|more|most|much|must|my|need|needs|neither"
    "|never|next|no|nor|not|now|of|off|on|once|one|only|onto|or|other|others|our|out|over"
    "|own|per|perhaps|please|quite|rather|re|really|s|same|second|shall|she|should|simply"
    "|since|so|some|soon|still|such|t|than|that|the|their|them|then|there|these|they|this"
    "|those|though|through|thus|to|too|towards|two|under|until|up|upon|us|use|used|uses"
    "|using|ve|very|want|wants|was|way|we|well|were|what|when|where|whether|which|while|who"
    "|whose|why|will|with|within|without|would|yes|yet|you|your|yours"
)
"""Common English words, which do not identify a source."""


class SourcePassage(msgspec.Struct, frozen=True):
    """A sentence or a window of a few lines, with its author and turn."""

    whose: str
    turn: int
    stems: frozenset[str]

    @property
    def label(self) -> str:
        return f"{self.whose}, turn {self.turn}" if self.turn else f"{self.whose}, before"


@lru_cache(maxsize=16_384)
def find_stems(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, except the most common words."""
    folded = _fold_text(text)
    stems = {_stem_word(word) for word in _WORD.findall(_IDEOGRAPHS.sub(" ", folded))}
    pairs = (run[at : at + 2] for run in _IDEOGRAPHS.findall(folded) for at in range(len(run)))
    return frozenset(stems - {""}).union(pairs)


def _fold_text(text: str) -> str:
    return unicodedata.normalize("NFKC", strip_invisible(text)).casefold()


def _stem_word(word: str) -> str:
    if _COMMON.fullmatch(word):
        return ""
    return word if word.isdigit() else _ENDING.sub("", word)[:STALL_STEM_CHARACTERS]


class ProvenanceIndex:
    """A transcript's passages: those that may give instructions, and those that are data."""

    def __init__(
        self, own: Iterable[tuple[str, int, str]], data: Iterable[tuple[str, int, str]]
    ) -> None:
        """Index texts by author and turn. Notes from before the session have turn 0."""
        self._data = [
            SourcePassage(whose, turn, window)
            for whose, turn, text in data
            for window in _list_windows(text)
        ]
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, passage in enumerate(self._data):
            for stem in passage.stems:
                self._places[stem].append(place)
        passages = [
            (sentence, SourcePassage(whose, turn, stems))
            for whose, turn, text in own
            for line in text.splitlines()
            for sentence in _SENTENCE.split(line)
            if (stems := find_stems(sentence))
            and not self._repeats_data(SourcePassage(whose, turn, stems), line)
        ]
        self._own = [passage for _, passage in passages]
        self._names = KnownNames(text for text, _ in passages)
        clauses = [
            (passage.whose, list(list_clauses(text, find_stems))) for text, passage in passages
        ]
        self._clauses = [clause for _, listed in clauses for clause in listed]
        person_clauses = (
            clause for whose, listed in clauses for clause in listed if whose == "the person"
        )
        self._forbidden = find_forbidden_stems(person_clauses, self._clauses)

    def _repeats_data(self, sentence: SourcePassage, line: str) -> bool:
        """Return whether the agent's sentence repeats data that it had read, even reworded.

        If a sentence has too few stems to tell, its whole line is checked instead.
        """
        if sentence.whose != "the agent":
            return False
        stems = sentence.stems if len(sentence.stems) >= TRACE_STEMS else find_stems(line)
        # The agent cannot repeat data that it read later.
        _, shared = self._find_nearest(stems, until=sentence.turn)
        return len(shared) >= _count_stems_needed(stems)

    def find_foreign_source(
        self, text: str, turns: Collection[int], *, also: str = ""
    ) -> "SourcePassage | None":
        """Return the data that a text comes from, or None if the text may be an instruction.

        A text may be an instruction if the person, the agent or the notes mention all its names and
        numbers, if it negates only what they negate, if no window of the data explains the rest,
        and if enough of it is in their words, without a gap of several other words. A text that
        shares nothing with the data needs the same support, because it may be a translation of the
        data. `also` is additional text that counts as their words. If the returned passage has no
        author, the text comes neither from them nor from known data.
        """
        stems = find_stems(text)
        own = self._collect_own_stems(stems, turns) | find_stems(also)
        nearest, shared = self._find_nearest(stems - own)
        share = TRACE_SUPPORT * len(stems)
        is_explained = len(shared) >= TRACE_STEMS or (len(shared) > 1 and len(shared) >= share)
        # If the text has only two words, one may be the summarizer's own, unless the data contains
        # it.
        least = min(2, len(stems) if shared else (len(stems) + 1) // 2)
        has_support = len(stems & own) >= max(least, share) and not _is_number(stems & own)
        is_supported = has_support and _measure_gap(text, own) < TRACE_GAP
        has_same_sense = not self.has_other_names_or_negations(text, also=also)
        if has_same_sense and not is_explained and is_supported:
            return None
        if not shared:
            names = " ".join(self._names.find_unknown(text))
            nearest, shared = self._find_nearest(find_stems(names))
        return nearest if shared else SourcePassage("", 0, frozenset())

    def has_other_names_or_negations(self, text: str, *, also: str = "") -> bool:
        """Return whether a text has a name, number or negation that its own sources lack."""
        names = self._names.find_unknown(text)
        if also:
            names &= KnownNames([also]).find_unknown(text)
        sources = (*self._clauses, *list_clauses(also, find_stems))
        forbidden = self._forbidden - find_stems(also)
        clauses = list_clauses(text, find_stems)
        return bool(names) or has_other_negations(clauses, sources, forbidden)

    def find_main_source(self, text: str, turns: Collection[int]) -> SourcePassage | None:
        """Return the data that most of a text comes from, or None if there is none."""
        stems = find_stems(text)
        nearest, shared = self._find_nearest(stems - self._collect_own_stems(stems, turns))
        return nearest if len(shared) >= _count_stems_needed(stems) else None

    def _collect_own_stems(
        self, text_stems: frozenset[str], turns: Collection[int]
    ) -> frozenset[str]:
        """Return a text's stems that sentences from the person, the agent or the notes support.

        All sentences in the cited turns count. Sentences in other turns count if the text has
        enough of their stems, because citations are often off by one.
        """
        stems: set[str] = set()
        for sentence in self._own:
            shared = text_stems & sentence.stems
            is_near = len(shared) > 1 and len(shared) >= TRACE_SUPPORT * len(sentence.stems)
            if sentence.turn in turns or is_near:
                stems |= shared
        return frozenset(stems)

    def _find_nearest(
        self, stems: frozenset[str], until: int = sys.maxsize
    ) -> tuple[SourcePassage, frozenset[str]]:
        """Return the window up to turn `until` that shares the most stems, and these stems."""
        places = Counter(
            place
            for stem in stems
            for place in self._places.get(stem, ())
            if self._data[place].turn <= until
        )
        if not places:
            return SourcePassage("", 0, frozenset()), frozenset()
        # If several windows match, use the first, because the agent read the text before it
        # repeated it.
        most = max(places.values())
        nearest = self._data[min(place for place, number in places.items() if number == most)]
        return nearest, nearest.stems & stems


def _is_number(stems: frozenset[str]) -> bool:
    """Return whether all stems are numbers. Two texts can share numbers by chance."""
    return bool(stems) and all(stem.isdigit() for stem in stems)


def _count_stems_needed(stems: frozenset[str]) -> float:
    """Return how many stems a window must share with a text to count as its source."""
    return max(TRACE_STEMS, TRACE_HEARSAY * min(len(stems), TRACE_WINDOW_WORDS // 2))


def _measure_gap(text: str, own: frozenset[str]) -> float:
    """Count the words in the longest part of a text without a stem in `own`.

    Repeated and common words do not count, and an ideograph counts as half a word.
    """
    longest = 0.0
    gap: dict[str, float] = {}
    for stems, name, length in _list_words(text):
        gap = {} if stems & own else gap | {name: length}
        longest = max(longest, sum(gap.values()))
    return longest


def _list_words(text: str) -> Iterator[tuple[frozenset[str], str, float]]:
    """Yield, for each word, the stems that support it, its own stem, and its length."""
    for word in _IDEOGRAPHS_OR_WORD.findall(_fold_text(text)):
        if _IDEOGRAPHS.match(word):
            for at, character in enumerate(word):
                pairs = frozenset({word[max(0, at - 1) : at + 1], word[at : at + 2]})
                yield pairs, character, 0.5
        elif stem := _stem_word(word):
            yield frozenset({stem}), stem, 1.0


def _list_windows(text: str) -> Iterator[frozenset[str]]:
    """Yield the stems of overlapping windows of a text.

    Each line starts a window, which also includes the next line, and further lines if they are
    short. A line that is longer than a window is split into several.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for place, line in enumerate(lines):
        for at in range(0, max(1, len(line) - TRACE_WINDOW_WORDS // 2), TRACE_WINDOW_WORDS // 2):
            words = line[at : at + TRACE_WINDOW_WORDS]
            for number, following in enumerate(lines[place + 1 : place + TRACE_WINDOW_WORDS]):
                if number and len(words) >= TRACE_WINDOW_WORDS // 2:
                    break
                words += following[: TRACE_WINDOW_WORDS - len(words)]
            yield find_stems(" ".join(words))
