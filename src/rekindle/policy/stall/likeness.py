"""How much two texts have in common, whatever the order and the script."""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from rekindle.policy.settings import STALL_STEM_CHARACTERS, STALL_SWAP_WORDS

_WORD = re.compile(r"[a-z0-9]+")
_SMALL = re.compile(
    "(?:an?|and|are|as|at|be|by|for|from|in|into|is|its?|next|now|of|on|or|our|should|so|that|the"
    "|then|this|to|we|will|with)"
)
_FOREIGN = re.compile(r"[^\W\d_a-z]{2,}")
_PAIRED = re.compile(r"(?=(..))")

# From one relay to the next most lines stay the same.
_cached = lru_cache(maxsize=16_384)


def likeness(one: str, other: str) -> float:
    """How alike two plain texts are, from 0 to 1.

    By their pairs of characters, which know every script; or, where there are words to be told
    apart, by these, if they have more in common: a directive is often only put differently.
    """
    if one == other:
        return 1.0
    alike = _shared(_pairs(one), _pairs(other))
    if one.isascii() and other.isascii():
        return max(alike, _shared(_stems(one), _stems(other)))
    return alike


def swapped(one: str, other: str) -> str:
    """The word that took another's place, where that is all that changed; else empty."""
    old, new = one.split(), other.split()
    if len(old) != len(new) or len(old) < STALL_SWAP_WORDS:
        return ""
    changed = [after for before, after in zip(old, new, strict=True) if before != after]
    return changed[0] if len(changed) == 1 else ""


@_cached
def significant(plain: str) -> frozenset[str]:
    """What a text is about, whatever the order and the script: stems, and pairs of characters."""
    foreign = (_PAIRED.findall(run) for run in _FOREIGN.findall(plain))
    return frozenset(_stems(plain)) | frozenset(pair for run in foreign for pair in run)


@_cached
def _pairs(plain: str) -> Counter[str]:
    bare = "".join(filter(str.isalnum, plain))
    return Counter(map("".join, pairwise(bare))) or Counter([bare or plain])


@_cached
def _stems(plain: str) -> Counter[str]:
    words = (word for word in _WORD.findall(plain) if not _SMALL.fullmatch(word))
    return Counter(word[:STALL_STEM_CHARACTERS] for word in words)


def _shared(some: Counter[str], others: Counter[str]) -> float:
    size = some.total() + others.total()
    return 2 * (some & others).total() / size if size else 0.0
