"""Count work by the counters in a relay, such as "140 of 10,000 files"."""

import re

_NUMBER = r"(\d[\d,]{0,14})"
_COUNTER = re.compile(
    rf"(?<![\w.,/-]){_NUMBER}\s*(?:/|of|out of|共)\s*{_NUMBER}(?![\w/-]|[.,]\d)", re.IGNORECASE
)
_SHARE = re.compile(
    r"(?<![\w.,/-])(\d{1,3})(?:\.\d+)?\s?% (?:done|completed?|finished)", re.IGNORECASE
)
_LEFT = re.compile(
    rf"(?:remaining|left|剩余)\s*[:：]?\s*{_NUMBER}(?![\w.,/-])"
    rf"|(?<![\w.,/-]){_NUMBER} (?:[a-z]+ )?(?:remaining|left|to go)(?![a-z])",
    re.IGNORECASE,
)
_CHECKED = re.compile(r"^\s*(?:[-+*]|\d{1,3}[.)])\s+\[[xX✓✔]\]", re.MULTILINE)
_UNCHECKED = re.compile(r"^\s*(?:[-+*]|\d{1,3}[.)])\s+\[ \]", re.MULTILINE)
_REPEATED = re.compile(
    r"(?:attempts?|cycles?|days?|iterations?|loops?|rounds?|runs?|sessions?|tr(?:y|ies))\W*\Z",
    re.IGNORECASE,
)
"""What precedes a counter of cycles instead of work."""


def find_counted_work(before: str, after: str) -> str:
    """Describe a counter that moved towards its end, or return "" if none did."""
    was = _read_counters(before)
    for total, count in _read_counters(after).items():
        if was.get(total, count) < count <= total:
            return f"{count:,} of {total:,}, up from {was[total]:,}"
    checked = [len(_CHECKED.findall(text)) for text in (before, after)]
    if checked[1] > checked[0] and _UNCHECKED.search(before):
        return f"{checked[1]:,} checked items, up from {checked[0]:,}"
    left = [_read_left(text) for text in (before, after)]
    if left[0] is not None and left[1] is not None and left[1] < left[0]:
        return f"{left[1]:,} left, down from {left[0]:,}"
    return ""


def _read_counters(text: str) -> dict[int, int]:
    """Return the largest count for each total in a text. A percentage counts towards 100."""
    counters: dict[int, int] = {}
    for found in _COUNTER.finditer(text):
        if _REPEATED.search(text, max(0, found.start() - 20), found.start()):
            continue
        count, total = map(_read_number, found.groups())
        counters[total] = max(count, counters.get(total, 0))
    shares = [int(share) for share in _SHARE.findall(text)]
    return {**counters, 100: max(shares)} if shares else counters


def _read_left(text: str) -> int | None:
    found = _LEFT.search(text)
    return _read_number(found[1] or found[2]) if found else None


def _read_number(text: str) -> int:
    return int(text.replace(",", ""))
