"""Clip findings to JSON strings so that redacted JSON stays valid."""

import json
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from rekindle.policy.redact.known_tokens import SecretSpan
from rekindle.policy.settings.runtime_settings import REDACT_SHORTEST

_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_JSON_ENDS = {"{": "}", "[": "]", '"': '"'}


def clip_to_json(text: str, spans: list[SecretSpan]) -> list[SecretSpan]:
    """Clip the spans inside JSON so that they stay within strings and do not split escapes."""
    clipped: list[SecretSpan] = []
    remaining = deque(spans)
    for begin, stop in _find_json_parts(text, spans):
        while remaining and remaining[0][0] < begin:
            clipped.append(remaining.popleft())
        inside = []
        while remaining and remaining[0][0] < stop:
            inside.append(remaining.popleft())
        clipped += _clip_to_strings(text, begin, stop, inside)
    return [*clipped, *remaining]


def _clip_to_strings(
    text: str, begin: int, stop: int, spans: list[SecretSpan]
) -> Iterator[SecretSpan]:
    strings = [
        (match.end() - 1, match.start() + 1) for match in _JSON_TEXT.finditer(text, begin, stop)
    ]
    place, current, escapes = 0, -1, []
    for start, end, rule in spans:
        place = bisect_right(strings, (start, stop), lo=max(0, place - 1))
        while place < len(strings) and strings[place][1] < end:
            closes, opens = strings[place]
            if current != place:
                current = place
                escapes = [match.span() for match in _JSON_ESCAPE.finditer(text, opens, closes)]
            yield (
                _escape_start(escapes, max(start, opens)),
                _escape_start(escapes, min(end, closes)),
                rule,
            )
            place += 1


def _escape_start(escapes: list[tuple[int, int]], at: int) -> int:
    """Move a position to the start of the escape that it would otherwise split."""
    place = bisect_right(escapes, (at,)) - 1
    return escapes[place][0] if place >= 0 and escapes[place][1] > at else at


def _find_json_parts(text: str, spans: list[SecretSpan]) -> Iterator[tuple[int, int]]:
    """Yield the parts that are JSON: the whole text, or single lines that contain a span."""
    if not spans:
        return
    if is_json(text):
        yield 0, len(text)
        return
    stop = -1
    for start, _, _ in spans:
        if start < stop:
            continue
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if is_json(text[begin:stop]):
            yield begin, stop


def is_json(text: str) -> bool:
    """Return whether a text is a JSON object, array or string."""
    text = text.strip()
    if len(text) < REDACT_SHORTEST or _JSON_ENDS.get(text[0]) != text[-1]:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
