"""Find statements about a loop in the turns, independently of the summarizer.

Only statements by the person or the agent, in their own words, can show that a loop is done or open
again. Text from a tool, a file or a web page is data, and so is a sentence that repeats such text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from rekindle.documents.summaries.summary import strip_quotation
from rekindle.documents.transcripts.turns import Turn
from rekindle.policy.settings.runtime_settings import LOOP_NAMED
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.policy.text.likeness import find_significant_words

Mention = Literal["", "open", "done"]
_BY_ID = 2.0

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_DONE = re.compile(
    r"(?<![a-z])(?:done|completed?|finished|closed|merged|shipped|released|deployed|fixed|resolved"
    r"|solved|repaired|settled|answered|decided|confirmed|passes|passed|set up|in place|works now"
    r")(?![a-z])"
    r"|[✅☑✔]|完成|已修复|已解决|修好了|已合并|已发布|已上线",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"(?<![a-z])(?:not|never|still|cannot|after|when|once|until|unless|if|before|will|would|should"
    r"|must|needs?|going to|to be|todo|almost|nearly|half|part(?:ly|ial|ially)|fail(?:s|ed|ing)?"
    r"|next|remaining|remains|open|pending|blocked|undone|unresolved|reopen(?:s|ed)?|again"
    r"|no|none|nobody|nothing|nowhere|no one|nor|neither|without|only|except|apart from|far from"
    r"|hardly|barely|scarcely|rather|instead|yet|wrong(?:ly)?|supposed|supposedly|allegedly"
    r"|revert(?:s|ed|ing)?|rolled back|roll(?:s|ing)? back|undid|back(?:ed)? ?out"
    r"|broke|(?:is|are) broken"
    r"|\d+ (?:out )?of|of \d+|(?<!\d)[1-9]?\d ?%|some of|most of|parts? of|first (?:part|half|step)"
    r"|wants?|wanted|hope[sd]?|please|make sure|ensure|let's|let us|try|trying|planned|plans? to"
    r"|could|can be|may be|might|shall|to have|have (?:it|this|that)|get|getting|remember|remind"
    r"|expects?|expected to|claims?|claimed|said|says|pretend\w*|think|thought|believe|assume"
    r"|due(?! to)|tomorrow|tonight|by (?:mon|tue|wed|thu|fri|sat|sun)[a-z]*|by (?:the )?end"
    r"|soon|later|wait(?:s|ing)?|unclear|unsure|seems?|maybe|perhaps|probably|likely"
    r"|considered|as soon as)"
    r"(?![a-z])|n't(?![a-z])|\?|未|没|尚|待|之后|仍|如果|需要|还|不|别|请|一半|部分|回滚|撤销|吗",
    re.IGNORECASE,
)
"""Words that contradict completion. When in doubt, the loop stays open: the next brief shows it
again, but a loop that was closed by mistake is lost.
"""
_REPAIRED = re.compile(
    r"works again|(?:no longer|never again|does(?:n't| not)) (?:fail|happen|occur|break|crash)s?"
    r"(?: any ?more)?|(?:is|are) (?:now )?(?:working|connected|live)(?! on)",
    re.IGNORECASE,
)
"""Phrases that report completion although they contain words that usually contradict it."""
_WITHOUT_FAULT = re.compile(
    r"(?<![a-z])(?:no|without|zero|0)(?: (?:a|any|more|further|other|new|single))*"
    r" (?:errors?|failures?|problems?|issues?|regressions?|warnings?|complaints?)(?![a-z])",
    re.IGNORECASE,
)
_NOT_WANTED = re.compile(
    r"(?:n't|(?<![a-z])(?:no longer|not)) (?:needed|wanted|relevant)(?: any ?more)?(?![a-z])"
    r"|(?<![a-z])(?:no longer (?:need|want)"
    r"|drop (?:it|this|that)|forget (?:it|about)|cancel(?:led)?|obsolete|won't do|never mind)"
    r"(?![a-z])|不需要|取消|不用了",
    re.IGNORECASE,
)
_STILL_WANTED = re.compile(
    r"(?:n't|(?<![a-z])(?:not|never|cannot|nobody|without|why|who|if|unless|until|before|should"
    r"|instead of|rather than)) (?:[a-z']+ ){0,2}(?:drop|forget|cancel|obsolete)|\?"
    r"|(?:不要|别|没有?|不能)[^。]{0,4}取消",
    re.IGNORECASE,
)


_FILLER = re.compile(
    "has|have|had|no|not|yet|still|open|missi|lack|lacks|witho|write|add|fix|make|need|needs|neede"
    "|todo|finis|someb|someo|far|left|over|done|do|does|was|were|been|get|got|must|there|so|but|also"
    "|fail|fails|faile|faili|broke|break|since|until|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)
"""Word stems that are too common to identify a loop."""


_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u02b9\u2032\u00b4\u0060", "'"))
"""Maps characters that people type instead of an apostrophe to an apostrophe."""
_WISH = re.compile(
    r"\W*(?:(?:and|now|then|ok|okay|so|just|also|first)\W+)*(?:have|mark|call|close|see|keep|go|do"
    r"|finish|fix|resolve|solve|settle|answer|confirm|merge|ship|release|deploy|complete"
    r"|i'd|i need)(?![a-z])",
    re.IGNORECASE,
)
"""Words that often start a person's request."""


class LoopName(msgspec.Struct, frozen=True):
    """Id and text of a loop that a sentence may mention."""

    id: str
    text: str


def find_mention(
    turn: Turn, name: LoopName, rivals: Iterable[LoopName], sources: SourceTexts
) -> Mention:
    """Return "done" or "open" if a turn says that about a loop, or "" if it says neither.

    Only sentences by the person and the agent count. A sentence that matches another loop
    (`rivals`) at least as well is ignored.
    """
    if turn.thread or turn.who not in {"person", "agent"}:
        return ""
    mention: Mention = ""
    for sentence in split_sentences(turn.text):
        share = measure_mention(sentence, name)
        if share < LOOP_NAMED or sources.repeats_data(sentence):
            continue
        if any(measure_mention(sentence, rival) >= share for rival in rivals):
            continue
        # If sentences contradict each other, the loop counts as open, so that it is not lost.
        if not _says_done(sentence, by_person=turn.who == "person"):
            return "open"
        mention = "done"
    return mention


def split_sentences(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, _SENTENCE.split(text)))


def measure_mention(sentence: str, name: LoopName) -> float:
    """Return the share of a loop's words that a sentence contains, or 2 if it contains the id."""
    plain = sentence.casefold()
    identity = name.id.casefold()
    if identity in plain and re.search(rf"(?<![\w-]){re.escape(identity)}(?![\w-])", plain):
        return _BY_ID
    words = find_significant_words(plain)
    name_words = find_core_words(name.text)
    share = len(name_words & words) / len(name_words) if name_words else 0.0
    return max(share, LOOP_NAMED) if find_naming_words(name) <= words else share


def find_naming_words(name: LoopName) -> frozenset[str]:
    """Return the words that a sentence must contain to mention the loop.

    These are the words that occur in both its text and its id. If there are fewer than two, all
    significant words in the text are required.
    """
    text_words = find_core_words(name.text)
    shared = text_words & find_core_words(name.id.replace("-", " "))
    return shared if len(shared) > 1 else text_words


@lru_cache(maxsize=16_384)  # each loop is compared with all others
def find_core_words(text: str) -> frozenset[str]:
    """Return the words that identify a loop's subject, or all words if all are common."""
    words = find_significant_words(strip_quotation(text).casefold())
    return frozenset(word for word in words if not _FILLER.fullmatch(word)) or words


def _says_done(sentence: str, *, by_person: bool) -> bool:
    plain = unicodedata.normalize("NFKC", sentence).translate(_APOSTROPHES)
    if by_person and _NOT_WANTED.search(plain) and not _STILL_WANTED.search(plain):
        return True
    rest = _WITHOUT_FAULT.sub("", _REPAIRED.sub("works now", plain))
    is_wish = by_person and bool(_WISH.match(rest))
    return bool(_DONE.search(rest)) and not _NOT_DONE.search(rest) and not is_wish
