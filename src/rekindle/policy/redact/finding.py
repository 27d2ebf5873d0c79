"""Redaction: what must not leave a transcript is replaced before anything is written.

`find` says where the secrets of a text are, `redact` puts a placeholder in the place of each:

    Authorization: Bearer [redacted:github-token:3f9a]

The same secret has the same placeholder everywhere, so that a reader can follow it. The digits are
the first 16 bits of a hash; of a secret that is short enough to be guessed, the first 8. Whoever
tries a million passwords against such a placeholder is left with thousands that fit: they tell two
secrets apart, and confirm no guess.

No finding reaches over a line break, splits an escape or leaves the string it stands in, so that
JSON stays JSON and every line stays where it was. Redacting again changes nothing.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import pairwise

import msgspec

from rekindle.policy.redact import named, structure, tokens, values
from rekindle.policy.settings import REDACT_GUESSABLE_CHARACTERS, REDACT_ROUNDS, REDACT_SHORTEST

RULES = (
    "anthropic-key api-key authorization bot-token cloud-key cookie encoded-secret github-token"
    " gitlab-token jwt key openai-key password password-hash platform-token private-key secret"
    " seed-phrase signing-key slack-token stripe-key token tunnel-token twilio-key url-password"
    " url-signature url-token webhook"
).split()

_PLACEHOLDER = re.compile(rf"\[redacted:(?:{'|'.join(RULES)}):[0-9a-f]{{2,4}}\]")
_ESCAPE = re.compile(r"(?<!\\)(\\++)(?:([nrt])|u00([2-7][0-9a-fA-F])|([\"'/]))")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_MARGIN = re.compile(
    r"[\x01\"'\\ ]{0,8}\n(?:[ \t]{0,8}\d{1,7}\t|[ \t]{0,40}\d{1,7}[→|:] ?|"
    r"(?:\[[^\]\n]{1,40}\] ){1,3}|[+\-> |]{1,12}|[ \t]{1,40})?"
    r"(?P<v>[A-Za-z0-9+/=_\-.%~]{4,4000})(?P<then>[^\n]{0,2})"
)
_IN_ONE_LINE = re.compile(r"(?:\\+[nrt]|[ \t+>|])*")


class Finding(msgspec.Struct, frozen=True, order=True):
    """A part of a text that is a secret; offsets in code points."""

    start: int
    end: int
    rule: str


def redact(text: str, allow: Sequence[str] = ()) -> str:
    """The text with a placeholder for every secret."""
    for _ in range(REDACT_ROUNDS):
        found = _find(text, allow)
        if not found:
            break
        text = _replaced(text, found)
    return text


def find(text: str, allow: Sequence[str] = ()) -> list[Finding]:
    """Where the secrets of a text are, in order; none overlap, none holds a line break."""
    return _find(text, allow)


def label(rule: str, secret: str) -> str:
    """What a placeholder says: the rule, and digits that are the same for the same secret."""
    digits = 2 if len(secret) < REDACT_GUESSABLE_CHARACTERS else 4
    digest = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16, person=b"rekindle")
    return f"{rule}:{digest.hexdigest()[:digits]}"


def _replaced(text: str, found: Iterable[Finding]) -> str:
    pieces = []
    position = 0
    for one in found:
        pieces += [
            text[position : one.start],
            f"[redacted:{label(one.rule, text[one.start : one.end])}]",
        ]
        position = one.end
    return "".join([*pieces, text[position:]])


def _find(text: str, allow: Sequence[str]) -> list[Finding]:
    if len(text) < REDACT_SHORTEST:
        return []
    view = _unescaped(text)
    low = _small(view)
    spans = list(_spans(view, low))
    if not spans:
        return []
    spans += _continued(view, spans)
    spans += _between(text, spans)
    kept = _outside(spans, [match.span() for match in _PLACEHOLDER.finditer(text)])
    found = [
        Finding(start, end, rule)
        for start, end, rule in _merged(_whole(text, span) for span in kept)
        if end > start
    ]
    return [one for one in found if not _is_allowed(one, text, allow)]


def _unescaped(text: str) -> str:
    """The text as it reads once its escapes are undone, each character in its place."""
    if "\\" not in text:
        return text

    def undone(match: re.Match[str]) -> str:
        slashes, control, code, sign = match.groups()
        if control:
            return "\x01" * len(slashes) + _CONTROL[control]
        if len(slashes) % 2 == 0:  # the slashes escape each other, and what follows stands alone
            return match[0]
        return "\x01" * (len(match[0]) - 1) + (sign or chr(int(code, 16)))

    return _ESCAPE.sub(undone, text)


def _small(view: str) -> str:
    """Small letters, each in its place: one capital alone would become two characters."""
    return view.replace("\u0130", "I").lower()


def _spans(view: str, low: str) -> Iterable[structure.Span]:
    for run in tokens.RUN.finditer(view):
        start = run.start()
        for begin, end, rule in tokens.find(run[0]):
            yield start + begin, start + end, rule
    yield from structure.find(view, low, _holds_a_secret)
    yield from named.find(view, low)


def _holds_a_secret(text: str) -> bool:
    return any(True for _ in _spans(text, _small(text)))


def _continued(view: str, spans: list[structure.Span]) -> list[structure.Span]:
    """What a narrow terminal put into the next line of a token."""
    found = []
    for start, end, rule in spans:
        if end - start < 16 or rule in {"private-key", "encoded-secret"}:
            continue
        after = _MARGIN.match(view, end)
        if (
            after is None
            or after["then"][:1] in {"=", ":", "("}
            or not values.is_random(after["v"], 8)
        ):
            continue
        if (
            "=" in after["v"].rstrip("=")
            or values.is_uuid(after["v"])
            or values.is_file(after["v"])
        ):
            continue
        found.append((*after.span("v"), rule))
    return found


def _between(text: str, spans: list[structure.Span]) -> list[structure.Span]:
    """The escaped line breaks of a key block that stands in one line of JSON or of a setting."""
    blocks = sorted(span for span in spans if span[2] == "private-key")
    return [
        (before[1], after[0], before[2])
        for before, after in pairwise(blocks)
        if after[0] - before[1] < 60 and _IN_ONE_LINE.fullmatch(text, before[1], after[0])
    ]


def _outside(spans: list[structure.Span], taken: list[tuple[int, int]]) -> list[structure.Span]:
    """The parts of the spans that no placeholder covers; both in order of their beginning."""
    if not taken:
        return spans
    kept = []
    first = 0
    for begin, end, rule in sorted(spans):
        start = begin
        while first < len(taken) and taken[first][1] <= start:
            first += 1
        here = first
        while here < len(taken) and taken[here][0] < end:
            if taken[here][0] > start:
                kept.append((start, taken[here][0], rule))
            start = max(start, taken[here][1])
            here += 1
        if start < end:
            kept.append((start, end, rule))
    return kept


def _whole(text: str, span: structure.Span) -> structure.Span:
    """The span without half an escape at either end."""
    start, end, rule = span
    if _slashes_before(text, start) % 2:
        start -= 1
    if _slashes_before(text, end) % 2 and end > start:
        end -= 1
    return start, end, rule


def _slashes_before(text: str, at: int) -> int:
    first = at
    while first > 0 and text[first - 1] == "\\":
        first -= 1
    return at - first


def _merged(spans: Iterable[structure.Span]) -> list[structure.Span]:
    """In order and without overlap: what begins first names it, of those the longest."""
    merged: list[structure.Span] = []
    for start, end, rule in sorted(spans, key=lambda one: (one[0], -one[1])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], end), before[2])
        else:
            merged.append((start, end, rule))
    return merged


def _is_allowed(one: Finding, text: str, allow: Sequence[str]) -> bool:
    if not allow:
        return False
    secret = text[one.start : one.end]
    return any(fnmatchcase(secret, entry) or entry == label(one.rule, secret) for entry in allow)
