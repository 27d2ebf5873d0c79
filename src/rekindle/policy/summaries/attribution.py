"""Classify each line of a summarizer's answer as an instruction, a claim, or a quotation.

Each line is attributed to the least trusted source that it comes from. A line that copies a source
is a quotation. Sections that tell the next session what to do have stricter rules. There, a
paraphrase of text from a tool, a file or the CLI is a quotation too; `provenance` finds it by its
stems and names. A line without support in the person's, the agent's or the notes' words, such as a
translation, is also a quotation. This way, an order found in a file never becomes an instruction.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from rekindle.documents.brief import BriefLabel
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.relay import RelayField
from rekindle.documents.summaries import summary as summaries
from rekindle.documents.summaries.summary import (
    Summary,
    SummaryItem,
)
from rekindle.documents.transcripts.turns import (
    Turn,
    render_heading,
)
from rekindle.policy.settings.runtime_settings import (
    QUOTED_REQUEST_CHARACTERS,
    QUOTED_WORDS,
)
from rekindle.policy.summaries.provenance import ProvenanceIndex, find_stems
from rekindle.policy.summaries.summary_request import SummaryRequest

CLAIM_SECTIONS = frozenset(
    {
        *(CheckpointSection.COMPLETED_WORK, CheckpointSection.CURRENT_STATE),
        *(RelayField.CURRENT_PHASE, RelayField.WHAT_WE_DID, RelayField.METRICS),
        *(BriefLabel.CHANGED, BriefLabel.RISK, BriefLabel.NUMBERS),
    }
)
"""Sections that state facts; the others contain instructions or decisions."""
DIRECTIVE_SECTIONS = frozenset(
    {CheckpointSection.RESUME_INSTRUCTIONS, RelayField.NEXT_ACTION, BriefLabel.NEXT}
)
"""Sections that a new session starts from, which must contain more than tool quotations."""
DEFAULT_INSTRUCTION = "Continue with the task."


def attribute_lines(summary: Summary, request: SummaryRequest) -> Summary:
    """Return the summary with each line attributed according to its section."""
    sources = SourceTexts(request.turns, request.carried)
    sections = {
        name: sources.attribute_claims(items)
        if name in CLAIM_SECTIONS
        else sources.attribute_instructions(items, name)
        for name, items in summary.sections.items()
    }
    return msgspec.structs.replace(summary, sections=sections)


class SourceTexts:
    """The texts that a summary is based on, each with its source."""

    def __init__(self, turns: Iterable[Turn], carried: Sequence[str] = ()) -> None:
        self._turns = tuple(turns)
        self._sources = [
            (whose, _normalize_words(text)) for whose, text in _list_sources(self._turns, carried)
        ]
        self._carried = {_normalize_words(each): each for each in carried}
        self._trace = ProvenanceIndex(
            _list_own_texts(self._turns, carried), _list_data_texts(self._turns, carried)
        )
        self._known: dict[str, str] = {}
        """Cache of attributed lines, because sections may repeat each other."""

    def attribute_claims(self, items: Iterable[SummaryItem]) -> tuple[SummaryItem, ...]:
        """Return a section's claims with their sources."""
        return tuple(
            _replace_text(item, self.attribute_claim(item.text, item.turns)) for item in items
        )

    def attribute_instructions(
        self, items: Iterable[SummaryItem], section: str
    ) -> tuple[SummaryItem, ...]:
        """Return a section's instructions with their sources; those from data become quotations.

        A section that a session starts from needs an instruction from the person or the agent with
        at least one significant word. If there is none, the person's last request is quoted first.
        """
        attributed = tuple(
            _replace_text(item, self.attribute_instruction(item.text, item.turns)) for item in items
        )
        if (
            section not in DIRECTIVE_SECTIONS
            or not attributed
            or not all(
                is_data_quotation(item.text) or not find_stems(item.text) for item in attributed
            )
        ):
            return attributed
        return (SummaryItem(self.quote_last_request() or DEFAULT_INSTRUCTION), *attributed)

    def attribute_instruction(self, text: str, turns: Sequence[int], also: str = "") -> str:
        """Return an instruction with its source, or as a quotation if it comes from data.

        `also` is more text that counts as written by the person or the agent.
        """
        shown = self.attribute_copy(text)
        if self._is_source_known(text, shown):
            return shown
        whose = self.find_data_source(text, turns, also)
        return summaries.make_quotation(whose, text) if whose else shown

    def attribute_claim(self, text: str, turns: Sequence[int]) -> str:
        """Return a claim with its source, or as a quotation if most of it comes from a tool."""
        shown = self.attribute_copy(text)
        if self._is_source_known(text, shown):
            return shown
        if shown != summaries.make_line(text):
            # Part of the line quotes the person or the agent, but the rest must not come from a
            # tool.
            return self.attribute_instruction(text, turns)
        passage = self._trace.find_main_source(text, turns)
        return summaries.make_quotation(passage.label, text) if passage else shown

    def _is_source_known(self, text: str, shown: str) -> bool:
        """Return whether the copied words are enough to identify the source of the whole line."""
        whose = summaries.find_quoted_source(shown) if shown != summaries.make_line(text) else ""
        # The same words may form a different name, or be part of a sentence that forbids the
        # action.
        is_whole = whose.startswith(f"{_PERSON},") and not self._trace.has_other_names_or_negations(
            text
        )
        return is_whole or is_data_quotation(shown) or _normalize_words(text) in self._carried

    def find_data_source(self, text: str, turns: Sequence[int], also: str = "") -> str:
        """Return the source of a line that must not be an instruction, or "" if it may be one.

        Enough of the line must be in the person's, the agent's or the notes' words, and it must not
        come from data. Its citations do not matter, because they may be false. `also` is more text
        that counts as written by the person or the agent.
        """
        passage = self._trace.find_foreign_source(text, turns, also=also)
        if passage is None:
            return ""
        if passage.whose:
            return passage.label
        cited = [turn for turn in self._turns if turn.number in turns]
        source = min(map(_find_least_trusted, cited), key=_TRUSTED.index, default="")
        where = next(
            (f"turn {turn.number}" for turn in cited if _find_least_trusted(turn) == source),
            "before",
        )
        return f"{source if source in _NOT_THEIRS else _SUMMARIZER}, {where}"

    def quote_last_request(self) -> str:
        """Quote the person's last request, or return "" if there is none."""
        requests = (turn for turn in reversed(self._turns) if turn.who == "person" and turn.text)
        turn = next((turn for turn in requests if not turn.thread), None)
        if turn is None:
            return ""
        whose = f"{_PERSON}, turn {turn.number}"
        return summaries.make_quotation(whose, turn.text, QUOTED_REQUEST_CHARACTERS)

    def attribute_copy(self, text: str) -> str:
        """Return the line, marked as a quotation if it repeats a source."""
        if text not in self._known:
            self._known[text] = _attribute_line(text, self._sources, self._carried)
        return self._known[text]

    def repeats_data(self, text: str) -> bool:
        """Return whether a text repeats data that neither the person nor the agent said."""
        words = _normalize_words(text).split()
        row = " ".join(words) if len(words) <= QUOTED_WORDS else ""
        for whose, source in self._sources:
            if whose.partition(",")[0] not in _NOT_THEIRS:
                return False
            if f" {row} " in source if row else _repeats_source(words, source):
                return True
        return False


def _replace_text(item: SummaryItem, text: str) -> SummaryItem:
    return SummaryItem(text, item.turns if text == summaries.make_line(item.text) else ())


def is_data_quotation(text: str) -> bool:
    """Return whether a text quotes a source that cannot give instructions."""
    return summaries.find_quoted_source(text).startswith((*_NOT_THEIRS, _SUMMARIZER))


_PERSON = "the person"
_TRUSTED = ("a tool", "the CLI", "a sub-agent", "the agent", "the notes", _PERSON)
"""All possible sources, least trusted first."""
_NOT_THEIRS = frozenset(_TRUSTED[:3])
_SUMMARIZER = "the summarizer"
"""Source of a line that no cited turn supports."""


def _list_sources(turns: Iterable[Turn], carried: Sequence[str]) -> list[tuple[str, str]]:
    """Return all texts with their sources, least trusted first."""
    texts = [text_item for turn in turns for text_item in _list_turn_texts(turn)]
    texts += [("the notes", "before", note) for note in carried]
    texts.sort(key=lambda text_item: _TRUSTED.index(text_item[0]))
    return [(f"{whose}, {where}", text) for whose, where, text in texts]


def _list_turn_texts(turn: Turn) -> Iterator[tuple[str, str, str]]:
    where = f"turn {turn.number}"
    whose = {"person": _PERSON, "agent": "the agent", "cli": "the CLI"}[turn.who]
    yield "a sub-agent" if turn.thread else whose, where, turn.text
    # The heading of every turn, even of a person's turn, contains words from the CLI's file.
    yield "the CLI", where, render_heading(turn)
    for call in turn.calls:
        yield "the agent", where, f"{call.tool} {call.about} {call.result}"
        yield "a tool", where, call.shown


def _find_least_trusted(turn: Turn) -> str:
    """Return the least trusted source of a turn."""
    if any(call.shown for call in turn.calls):
        return "a tool"
    if turn.thread or turn.who == "cli":
        return "a sub-agent" if turn.thread else "the CLI"
    return _PERSON if turn.who == "person" else "the agent"


def _list_own_texts(
    turns: Iterable[Turn], carried: Sequence[str]
) -> Iterator[tuple[str, int, str]]:
    """Yield the texts written by the person, the agent and the notes, each with its turn."""
    for turn in turns:
        if turn.who != "cli" and not turn.thread:
            yield _PERSON if turn.who == "person" else "the agent", turn.number, turn.text
            for call in turn.calls:
                yield "the agent", turn.number, call.about
    for note in carried:
        if not is_data_quotation(note):
            yield "the notes", 0, summaries.strip_quotation(note)


def _list_data_texts(
    turns: Iterable[Turn], carried: Sequence[str]
) -> Iterator[tuple[str, int, str]]:
    """Yield the texts that cannot give instructions, each with its turn."""
    for note in carried:
        if is_data_quotation(note):
            whose = summaries.find_quoted_source(note).partition(",")[0]
            yield whose, 0, summaries.strip_quotation(note)
    for turn in turns:
        if turn.thread or turn.who == "cli":
            yield "a sub-agent" if turn.thread else "the CLI", turn.number, turn.text
        yield "the CLI", turn.number, turn.model
        for call in turn.calls:
            yield "a tool", turn.number, call.shown
            yield "a tool", turn.number, call.tool


def _attribute_line(
    text: str, sources: Iterable[tuple[str, str]], carried: Mapping[str, str]
) -> str:
    plain = _normalize_words(text)
    if plain in carried:
        return summaries.make_line(carried[plain])  # including its quotation marks, if any
    words = plain.split()
    for whose, source in sources:
        if not _repeats_source(words, source):
            continue
        # A line is attributed to the person alone only if the person said all of it.
        in_part = f"{_PERSON}{'' if plain in source else ' in part'}"
        return summaries.make_quotation(whose.replace(_PERSON, in_part, 1), text)
    return summaries.make_line(text)


def _repeats_source(words: list[str], source: str) -> bool:
    """Return whether a source contains QUOTED_WORDS words in a row, or half of a short line."""
    return any(run in source for run in _list_word_runs(" ".join(words)))


@lru_cache(maxsize=256)  # each line is compared with every source
def _list_word_runs(plain: str) -> tuple[str, ...]:
    words = plain.split()
    least = min(QUOTED_WORDS, max(2, (len(words) + 1) // 2), len(words))
    runs = (" ".join(words[at : at + least]) for at in range(len(words) - least + 1))
    # A run of words may begin or end inside a word of the source, unless it is very short.
    return tuple(run if len(run) >= _TELLING else f" {run} " for run in runs if run)


_TELLING = 12
_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPH = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")


def _normalize_words(text: str) -> str:
    """Return a text's words in lower case, or its characters in scripts without spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(_IDEOGRAPH.sub(r" \1 ", folded))
    return f" {' '.join(words)} "
