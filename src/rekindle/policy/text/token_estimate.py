"""Estimate how many tokens a text costs a language model, without a tokenizer.

Budgets are given in tokens, but an exact count needs a vocabulary of several megabytes that belongs
to one model, and trimming only needs the approximate size. So each character is mapped to a letter
for its kind, and runs of equal letters are counted and weighted. The weights were fitted by least
squares against o200k, on English and Chinese handover documents (for other scripts, on translated
software messages). They were then rounded, mostly up, because an estimate that is too low does more
harm to a budget.

Runs do not cross line breaks, and empty lines cost nothing, so the lines' estimates add up to the
estimate for the whole text, except for rounding.
"""

import re

# Kinds of character, by their first byte in UTF-8. That byte identifies the script well enough, and
# translating bytes is as fast as copying them. A later line overrides an earlier one.
_KINDS = (
    (b"a", range(0x61, 0x7B)),  # lowercase letters
    (b"A", range(0x41, 0x5B)),  # uppercase letters
    (b"0", range(0x30, 0x3A)),  # digits
    (b"!", (*range(0x21, 0x30), *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x7F))),
    (b"-", b"-=_*#~."),  # characters used in rules and separators
    (b" ", b" \t\r\v\f"),
    (b"\n", b"\n"),
    (b"e", (*range(0xC3, 0xCA), 0xCC, 0xCD)),  # accented Latin letters and combining accents
    (b"v", (0xE1,)),  # Vietnamese, but also Georgian, Burmese and Khmer
    (b"c", range(0xCE, 0xD5)),  # Greek, Cyrillic
    (b"i", (*range(0xD5, 0xDC), 0xE0)),  # Armenian, Hebrew, Arabic; Indic scripts, Thai
    (b"k", (0xE3,)),  # Japanese kana, and the Chinese full stop and comma
    (b"h", range(0xE4, 0xEA)),  # Chinese characters
    (b"g", range(0xEA, 0xEE)),  # Korean
    (b"s", (0xC2, 0xE2, 0xEF)),  # symbols, arrows, boxes, fullwidth punctuation
    (b"m", (0xF0,)),  # emoji
)
_OTHER = b"x"  # control characters, rare scripts, private use
_CONTINUATION = bytes(range(0x80, 0xC0))  # later bytes of a character are dropped

# Cost of runs: tokens per run, and tokens per character in the run. If possible, a pattern starts
# with a literal letter, so that the search can skip to it.
_WEIGHTS = (
    # A word, split where lowercase changes to uppercase (camelCase is two words): usually one
    # token, more if the word is long.
    (rb"a[aev]*|e[aev]*|v[aev]*|AA*[aev]*", 0.84, 0.042),
    # Extra cost of a word: uppercase letters in a row, because few uppercase words are in the
    # vocabulary, and accents, which suggest a language whose words are split into pieces.
    (rb"AA+", 0.0, 0.1),
    (rb"e", 1.1, 0.0),
    (rb"v", 0.35, 0.0),
    # Digits are grouped by three. The cost is above one, because adjacent letters and punctuation
    # are split as well.
    (rb"00?0?", 1.2, 0.0),
    # Punctuation: a separator line of any length, or otherwise up to three characters together. The
    # cost is below one, because punctuation often merges with the next word.
    (rb"----+|-[-!]?[-!]?|![-!]?[-!]?", 0.85, 0.0),
    # A single space is part of the next word; indentation, and a space before a digit, are not.
    (rb"  +| (?=0)", 0.94, 0.0),
    # The line break after a non-blank line. The cost is below one, because final punctuation merges
    # with it.
    (rb"[^ \n][^\n]*", 0.73, 0.0),
    # Chinese: common words of two or three characters are one token.
    (rb"hh*", 0.77, 0.69),
    (rb"kk*", 0.05, 0.63),
    (rb"gg*", 0.7, 0.5),
    (rb"cc*", 0.7, 0.2),
    (rb"ii*", 0.15, 0.42),
    # Symbols: a separator line in pieces of eight, or otherwise each symbol separately.
    (rb"ssss(?:s?){4}|s", 1.08, 0.0),
    (rb"m", 1.85, 0.0),
    # Anything else is split into bytes.
    (_OTHER, 2.0, 0.0),
)


def _classify_bytes() -> bytes:
    kinds = bytearray(_OTHER * 256)
    for letter, members in _KINDS:
        for member in members:
            kinds[member] = letter[0]
    return bytes(kinds)


_KIND_OF_BYTE = _classify_bytes()
_PATTERNS = tuple((re.compile(pattern), run, char) for pattern, run, char in _WEIGHTS)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens in a text, to within 25 % for English and Chinese documents.

    A text that is not blank counts as at least one token.
    """
    return int(estimate_unrounded(text) + 0.5)


def estimate_unrounded(text: str) -> float:
    """Return the estimate before rounding. Unrounded estimates of lines add up."""
    # Lenient decoding may leave lone surrogates, which must not make trimming fail.
    kinds = text.encode("utf-8", "surrogatepass").translate(_KIND_OF_BYTE, _CONTINUATION)
    tokens = 0.0
    for pattern, per_run, per_char in _PATTERNS:
        runs = pattern.findall(kinds)
        tokens += per_run * len(runs)
        if per_char:
            tokens += per_char * len(b"".join(runs))
    return tokens
