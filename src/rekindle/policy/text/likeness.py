"""Measure how similar two texts are, regardless of word order and script."""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from rekindle.policy.settings.runtime_settings import (
    STALL_STEM_CHARACTERS,
    STALL_SWAP_WORDS,
)

_WORD = re.compile(r"[a-z0-9]+")
_SMALL = re.compile(
    "(?:an?|and|are|as|at|be|by|for|from|in|into|is|its?|next|now|of|on|or|our|should|so|that|the"
    "|then|this|to|we|will|with)"
)
_FOREIGN = re.compile(r"[^\W\d_a-z]{2,}")
_PAIRED = re.compile(r"(?=(..))")

# Cached, because most lines stay the same from one relay to the next.
_cached = lru_cache(maxsize=16_384)


def measure_likeness(text: str, other: str) -> float:
    """Return how similar two plain texts are, from 0 to 1.

    The similarity is the share of common character pairs, which works for every script. If both
    texts are ASCII and the share of common words is higher, that share is used, because a directive
    is often only rephrased.
    """
    if text == other:
        return 1.0
    alike = _measure_shared(_count_pairs(text), _count_pairs(other))
    if text.isascii() and other.isascii():
        return max(alike, _measure_shared(_count_stems(text), _count_stems(other)))
    return alike


def find_swapped_word(text: str, other: str) -> str:
    """Return the new word if exactly one word was replaced, otherwise ""."""
    old, new = text.split(), other.split()
    if len(old) != len(new) or len(old) < STALL_SWAP_WORDS:
        return ""
    changed = [after for before, after in zip(old, new, strict=True) if before != after]
    return changed[0] if len(changed) == 1 else ""


@_cached
def find_significant_words(plain: str) -> frozenset[str]:
    """Return a text's word stems, and character pairs for words in other scripts."""
    foreign = (_PAIRED.findall(run) for run in _FOREIGN.findall(plain))
    return frozenset(_count_stems(plain)) | frozenset(pair for run in foreign for pair in run)


@_cached
def _count_pairs(plain: str) -> Counter[str]:
    bare = "".join(filter(str.isalnum, plain))
    return Counter(map("".join, pairwise(bare))) or Counter([bare or plain])


@_cached
def _count_stems(plain: str) -> Counter[str]:
    words = (word for word in _WORD.findall(plain) if not _SMALL.fullmatch(word))
    return Counter(word[:STALL_STEM_CHARACTERS] for word in words)


def _measure_shared(some: Counter[str], others: Counter[str]) -> float:
    size = some.total() + others.total()
    return 2 * (some & others).total() / size if size else 0.0
