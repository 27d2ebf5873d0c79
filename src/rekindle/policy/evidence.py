"""What turns show of a loop, whatever a summarizer says of them.

Only the person and the agent, in their own words, can show that a loop is done, or open again: what
a tool, a file or a page has said is data, and so is a sentence that repeats it.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import msgspec

from rekindle.documents.summary import unquoted
from rekindle.documents.transcript import Turn
from rekindle.policy.settings import LOOP_NAMED
from rekindle.policy.stall.likeness import significant
from rekindle.policy.summarize import Heard

Spoken = Literal["", "open", "done"]
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
    r"|next|remaining|remains|open|pending|blocked|undone|unresolved|reopen(?:s|ed)?|again)"
    r"(?![a-z])|n't(?![a-z])|\?|未|没有|尚|待|之后|仍|如果|需要",
    re.IGNORECASE,
)
_MENDED = re.compile(
    r"works again|(?:no longer|never again|does(?:n't| not)) (?:fail|happen|occur|break|crash)s?"
    r"(?: any ?more)?|(?:is|are) (?:now )?(?:working|connected|live)(?! on)",
    re.IGNORECASE,
)
"""What says that something is done, in words that would say the contrary by themselves."""
_NOT_WANTED = re.compile(
    r"(?<![a-z])(?:(?:no longer|not|n't) (?:need(?:ed)?|want(?:ed)?|relevant)"
    r"|drop (?:it|this|that)|forget (?:it|about)|cancel(?:led)?|obsolete|won't do|never mind)"
    r"(?![a-z])|不需要|取消|不用了",
    re.IGNORECASE,
)


_FILLER = re.compile(
    "has|have|had|no|not|yet|still|open|missi|lack|lacks|witho|write|add|fix|make|need|needs|neede"
    "|todo|finis|someb|someo|far|left|over|done|do|does|was|were|been|get|got|must|there|so|but|also"
    "|fail|fails|faile|faili|broke|break|since|until|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
)
"""Stems that stand in any loop."""


class Named(msgspec.Struct, frozen=True):
    """What a sentence may be about."""

    id: str
    text: str


def spoken(turn: Turn, of: Named, rivals: Iterable[Named], heard: Heard) -> Spoken:
    """How the person or the agent speaks of a loop in a turn, if they do, in their own words.

    A sentence that names another one as well or better is not about this one.
    """
    if turn.thread or turn.who not in {"person", "agent"}:
        return ""
    told: Spoken = ""
    for sentence in filter(None, map(str.strip, _SENTENCE.split(turn.text))):
        named = share(sentence, of)
        if named < LOOP_NAMED or heard.is_hearsay(sentence):
            continue
        if any(share(sentence, one) >= named for one in rivals):
            continue
        # Who says both, says that it is open: a loop must not be lost.
        if not _says_done(sentence, by_person=turn.who == "person"):
            return "open"
        told = "done"
    return told


def share(sentence: str, of: Named) -> float:
    """How much of what it is about a sentence names, from 0 to 1; 2 where it has its very id."""
    plain = sentence.casefold()
    identity = of.id.casefold()
    if identity in plain and re.search(rf"(?<![\w-]){re.escape(identity)}(?![\w-])", plain):
        return _BY_ID
    found = significant(plain)
    wanted = core(of.text)
    part = len(wanted & found) / len(wanted) if wanted else 0.0
    return max(part, LOOP_NAMED) if name(of) <= found else part


def name(of: Named) -> frozenset[str]:
    """The words without which it is not spoken of: those of its text that its id has too.

    One word is not a name, and an id that has none of them does not say: then it is all of them.
    """
    wanted = core(of.text)
    named = wanted & core(of.id.replace("-", " "))
    return named if len(named) > 1 else wanted


@lru_cache(maxsize=16_384)  # every loop is held against every other
def core(text: str) -> frozenset[str]:
    """The words that tell what a loop is about; where it has no others, all of them."""
    words = significant(unquoted(text).casefold())
    return frozenset(word for word in words if not _FILLER.fullmatch(word)) or words


def _says_done(sentence: str, *, by_person: bool) -> bool:
    if by_person and _NOT_WANTED.search(sentence):
        return True
    rest = _MENDED.sub("works now", sentence)
    return bool(_DONE.search(rest)) and not _NOT_DONE.search(rest)
