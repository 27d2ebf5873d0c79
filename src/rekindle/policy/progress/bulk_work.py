"""Count work by the counters in a relay, such as "140 of 10,000 files"."""

import re

_COUNTER = re.compile(
    r"(?<![\w.,/-])(\d[\d,]*)\s*(?:/|of|out of|共)\s*(\d[\d,]*)(?![\w/-]|[.,]\d)", re.IGNORECASE
)


def find_counted_work(before: str, after: str) -> str:
    """Describe a counter that grew towards the same total, or return "" if none did."""
    was = _read_counters(before)
    for total, count in _read_counters(after).items():
        if was.get(total, count) < count <= total:
            return f"{count:,} of {total:,}, up from {was[total]:,}"
    return ""


def _read_counters(text: str) -> dict[int, int]:
    """Return the largest count for each total in a text."""
    counters: dict[int, int] = {}
    for found in _COUNTER.finditer(text):
        count, total = (int(part.replace(",", "")) for part in found.groups())
        counters[total] = max(count, counters.get(total, 0))
    return counters
