"""Find whole names and numbers in a text, and compare them exactly.

An instruction can depend on a single address or number, so part of a name does not identify it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise

from rekindle.formats.identifiers import strip_invisible

_NOT_IN_NAMES = r"\s<>\"`“”|*\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(
    rf"[a-z][a-z\d+.-]*://[^{_NOT_IN_NAMES}]+|[^{_NOT_IN_NAMES}'‘’«»()\[\]{{}},;!?]+",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BEFORE = re.compile(r"\A(?:[$€£#~≈=+&-]+(?=\d)|\.{2,}(?!/)|[:–—]+)")
_AFTER = re.compile(r"[.,:;!?)\]}'’%…+–—-]+\Z")
_INSIDE = re.compile(r"\w\.\w|\w:\w|\A\.\w")
_PROSE = frozenset({"e.g", "i.e", "z.b", "d.h", "a.m", "p.m"})
_NUMBERED = re.compile(
    r"(?:\b(?:account|channel|host|id|issue|job|key|level|limit|line|node|number|nr|no|phase|pid|port"
    r"|pr|process|room|section|server|step|ticket|user|version)\b[\s.:=#]*|#\s*)(\d)(?![\w.,:/-]*\w)",
    re.IGNORECASE,
)
"""Pattern for a single digit that identifies something, as in `process 1` or `#7`."""

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL = {word: number for number, word in enumerate(_UNITS)} | {
    word: number for number, word in zip(range(20, 100, 10), _TENS, strict=True)
}
_LARGE = {"thousand": 1_000, "million": 1_000_000}
_NUMBER_WORD = "|".join((*_SMALL, "hundred", *_LARGE))
_SPELLED = re.compile(
    rf"\b(?:{_NUMBER_WORD})\b(?:(?:[\s-]+|\s+and\s+)(?:{_NUMBER_WORD})\b)*", re.IGNORECASE
)
"""Pattern for a number in English words, such as `two thousand` or `twenty-five`."""


def find_names(text: str) -> frozenset[str]:
    """Return the names and numbers in a text, in lower case.

    Names are URLs, hosts, paths, files with an extension, and identifiers with a digit, an
    underscore or mixed case. Numbers have at least two digits, or one after a word such as `port`.
    """
    names = (name for token, name in _list_tokens(text) if name and _is_name(token, name))
    return frozenset(names) | _find_numbered(text)


class KnownNames:
    """The names and words that the person, the agent and the notes used."""

    def __init__(self, texts: Iterable[str]) -> None:
        listed = tuple(texts)
        self._words = frozenset(
            name for text in listed for _, name in _list_tokens(text) if len(name) > 1
        ).union(*map(_find_numbered, listed), *map(_find_spelled, listed))
        self._paths = tuple(word for word in self._words if "/" in word)

    def find_unknown(self, text: str) -> frozenset[str]:
        """Return the names in a text that the sources do not contain in full."""
        return frozenset(name for name in find_names(text) if not self._is_known(name))

    def _is_known(self, name: str) -> bool:
        if name in self._words:
            return True
        if not name.isdigit() and any(path.endswith(f"/{name}") for path in self._paths):
            return True
        # A file in a path may be known by its name alone, but a page on another host may not.
        first, _, _ = name.partition("/")
        is_local = ":" not in name and "@" not in name and not re.search(r"\w\.\w", first)
        return is_local and any(
            name.endswith(f"/{word}") for word in self._words if _INSIDE.search(word)
        )


def _list_tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield each token in a text with its lowercase form, without surrounding punctuation."""
    plain = _THOUSANDS.sub("", _normalize_text(text))
    for token in _TOKEN.findall(plain):
        name = _AFTER.sub("", _BEFORE.sub("", token))
        yield token, name.rstrip("/").casefold()


def _normalize_text(text: str) -> str:
    return unicodedata.normalize("NFKC", strip_invisible(text))


def _find_numbered(text: str) -> frozenset[str]:
    return frozenset(_NUMBERED.findall(_normalize_text(text)))


def _find_spelled(text: str) -> frozenset[str]:
    """Return the numbers that a text spells out in English, as digits."""
    return frozenset(str(_add_up(words)) for words in _SPELLED.findall(_normalize_text(text)))


def _add_up(words: str) -> int:
    total = group = 0
    for word in re.findall("[a-z]+", words.casefold()):
        if word == "hundred":
            group = max(group, 1) * 100
        elif word in _LARGE:
            total, group = total + max(group, 1) * _LARGE[word], 0
        else:
            group += _SMALL.get(word, 0)
    return total + group


def _is_name(token: str, name: str) -> bool:
    digits = sum(character.isdigit() for character in name)
    letters = any(character.isalpha() for character in name)
    return name not in _PROSE and (
        digits > 1
        or bool(digits and letters)
        or bool(letters and re.search(r"[_/\\@]", token))
        or bool(_INSIDE.search(name))
        or any(first.islower() and second.isupper() for first, second in pairwise(token))
    )
