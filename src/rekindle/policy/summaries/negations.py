"""Check whether a text forbids what its sources ask for, or the reverse."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

import msgspec

_CLAUSE = re.compile(
    r"[.!?;:,()](?=\s|\Z)|[。，、；：！？]|\n+|\s[-–—]\s"
    r"|\b(?:but|then|and never|aber|dann|sondern)\b|(?=\b(?:do not|don['’]?t|without|ohne)\b)"
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|cannot|without|\w+n['’]t|dont|nicht|nie|niemals|kein\w*|ohne)\b|[不别勿没]"
)
_PROHIBITION = re.compile(
    r"\b(?:do|must|should|shall|may|please)\s+not\b|\A\W*(?:no|not)\b|\bnot\s+to\b|\bwant\s+no\b"
    r"|(?<!has )(?<!have )(?<!had )(?<!is )(?<!are )(?<!was )(?<!were )\bnever\b"
    r"|\b(?:without|(?:do|must|should)n['’]t|dont|nicht|nie|niemals|kein\w*|ohne)\b|[不别勿]"
)
"""Pattern for a negation that forbids something. "Does not work" and "not set up" only state a
fault.
"""
_IDIOM = re.compile(
    r"\b(?:do not|don['’]?t|never)\s+(?:forget|hesitate|mind)\b|\bnicht vergessen\b"
    r"|\bno (?:longer|matter|problem)\b|\bnot (?:only|just)\b"
)


class Clause(msgspec.Struct, frozen=True):
    """Part of a sentence: its stems, and whether it negates or forbids something."""

    stems: frozenset[str]
    is_negated: bool
    is_prohibition: bool


def list_clauses(text: str, find_stems: Callable[[str], frozenset[str]]) -> Iterator[Clause]:
    """Yield the clauses in a text that contain a significant word."""
    plain = _IDIOM.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    for part in _CLAUSE.split(plain):
        if stems := find_stems(part):
            yield Clause(stems, bool(_NEGATION.search(part)), bool(_PROHIBITION.search(part)))


def find_forbidden_stems(
    own_clauses: Iterable[Clause], all_clauses: Iterable[Clause]
) -> frozenset[str]:
    """Return stems that `own_clauses` forbid and `all_clauses` contain only in prohibitions."""
    forbidden = (clause.stems for clause in own_clauses if clause.is_prohibition)
    allowed = (clause.stems for clause in all_clauses if not clause.is_prohibition)
    return frozenset().union(*forbidden).difference(*allowed)


def has_other_negations(
    clauses: Iterable[Clause], source_clauses: Iterable[Clause], forbidden: frozenset[str]
) -> bool:
    """Return whether a clause forbids something and its nearest sources do not, or vice versa."""
    sources = tuple(source_clauses)
    text_clauses = tuple(clauses)
    least = min(2, len(frozenset[str]().union(*(clause.stems for clause in text_clauses))))
    for clause in text_clauses:
        shared = max((len(clause.stems & source.stems) for source in sources), default=0)
        nearest = [source for source in sources if len(clause.stems & source.stems) == shared]
        if clause.is_prohibition:
            if not shared or not any(source.is_negated for source in nearest):
                return True
        elif not clause.is_negated and (
            clause.stems & forbidden
            or (shared >= least and all(source.is_prohibition for source in nearest))
        ):
            return True
    return False
