"""Find the secrets in a text and replace them with placeholders.

`find_secrets` returns their positions, and `redact_text` replaces each with a placeholder:

    Authorization: Bearer [redacted:github-token:3f9a]

The same secret has the same placeholder everywhere, so readers can follow it. The digits are the
first 16 bits of a hash, or the first 8 for a secret that is short enough to be guessed. An attacker
who tries a million passwords against such a placeholder gets thousands of matches. The digits
distinguish two secrets but do not confirm a guess.

A finding never spans a line break, so every line keeps its number. In a text or a line that is
valid JSON, a finding never leaves its string or splits an escape, so the JSON stays valid.
Redacting a second time changes nothing.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import pairwise

import msgspec

from rekindle.policy.redact import (
    context_secrets,
    known_tokens,
    named_secrets,
    public_fields,
    value_tests,
)
from rekindle.policy.redact.json_strings import clip_to_json, is_json
from rekindle.policy.redact.known_tokens import SecretSpan
from rekindle.policy.redact.literal_search import LiteralSearch
from rekindle.policy.settings.runtime_settings import (
    REDACT_GUESSABLE_CHARACTERS,
    REDACT_ROUNDS,
    REDACT_SHORTEST,
)

RULES = (
    "anthropic-key api-key authorization bot-token cloud-key cookie encoded-secret github-token"
    " gitlab-token jwt key openai-key password password-hash platform-token private-key secret"
    " seed-phrase signing-key slack-token stripe-key token tunnel-token twilio-key url-password"
    " url-signature url-token webhook"
).split()

_PLACEHOLDER = re.compile(rf"\[redacted:(?:{'|'.join(RULES)}):[0-9a-f]{{2,4}}\]")
_ESCAPE = re.compile(r"(\\(?<!\\\\)\\*+)(?:([nrt])|u([0-9a-fA-F]{4})|([\"'/]))")
# Terminal colour codes, raw or in the escaped forms that programs write.
_COLOUR = re.compile(r"(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033|e))\[[0-9;:?]{0,40}[ -/]{0,2}[A-Za-z]")
_COLOURS = ("\x1b[", "1b[", "1B[", "033[", "\\e[")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_MARGIN = re.compile(
    r"[\x01\"'\\ ]{0,8}\n(?:[ \t]{0,8}\d{1,7}\t|[ \t]{0,40}\d{1,7}[→|:] ?|"
    r"(?:\[[^\]\n]{1,40}\] ){1,3}|[+\-> |]{1,12}|[ \t]{1,40})?"
    r"(?P<v>[A-Za-z0-9+/=_\-.%~]{4,4000})(?P<then>[^\n]{0,2})"
)
_LONG = 190
"""Minimum length of a match that may be only the beginning of a longer secret."""
_NEAR = 20_000
"""Distance from a replaced secret, in characters, within which the search repeats. Most patterns
match fewer than 4,000 characters."""
_LONGER = re.compile(r"[^\s\x01\x02\"'`<>,;&\\]*+")
_IN_ONE_LINE = re.compile(r"(?:\\+[nrt]|[ \t+>|])*")
_LITERALS = LiteralSearch(
    {*context_secrets.LITERALS, *named_secrets.LITERALS, *public_fields.LITERALS}
)


class SecretFinding(msgspec.Struct, frozen=True, order=True):
    """A secret in a text, with its offsets in code points."""

    start: int
    end: int
    rule: str


def redact_text(text: str, allow: Sequence[str] = ()) -> str:
    """Return the text with every secret replaced by a placeholder."""
    return _replace_findings(text, find_secrets(text, allow))


def find_secrets(text: str, allow: Sequence[str] = ()) -> list[SecretFinding]:
    """Return the secrets in a text, in order, without overlaps or line breaks.

    Replacing a secret may reveal another one near it, so the search repeats until it finds nothing
    more.
    """
    findings = find_once(text, allow)
    new = findings
    for _ in range(REDACT_ROUNDS - 1):
        if not new:
            break
        replaced = _replace_findings(text, findings)
        new = [
            SecretFinding(start + finding.start, start + finding.end, finding.rule)
            for start, end in _list_changed_parts(replaced)
            for finding in find_once(replaced[start:end], allow)
        ]
        findings = sorted([*findings, *_map_to_original(new, findings)])
    return findings


def _list_changed_parts(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that are near a placeholder, in whole lines.

    JSON is a single part, because the findings in it depend on where its strings start and end.
    """
    if len(text) < 4 * _NEAR or is_json(text):
        return [(0, len(text))]
    parts: list[tuple[int, int]] = []
    for match in _PLACEHOLDER.finditer(text):
        if parts and match.end() + _NEAR <= parts[-1][1]:
            continue
        start = text.rfind("\n", 0, max(0, match.start() - _NEAR)) + 1
        end = text.find("\n", match.end() + _NEAR)
        if parts and start <= parts[-1][1]:
            start = parts.pop()[0]
        parts.append((start, end if end >= 0 else len(text)))
    return parts


def _map_to_original(
    new: list[SecretFinding], earlier: list[SecretFinding]
) -> Iterator[SecretFinding]:
    """Convert offsets in a text with placeholders to offsets in the original text."""
    ends, shifts, grown = [], [0], 0
    for finding in earlier:
        grown += (
            len(finding.rule) + _count_digits(finding.end - finding.start) + len("[redacted::]")
        )
        grown -= finding.end - finding.start
        ends.append(finding.end + grown)
        shifts.append(grown)
    for finding in new:
        shift = shifts[bisect_right(ends, finding.start)]
        yield SecretFinding(finding.start - shift, finding.end - shift, finding.rule)


def render_placeholder(rule: str, secret: str) -> str:
    """Return a placeholder's content: the rule, and digits that identify the secret."""
    digest = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16, person=b"rekindle")
    return f"{rule}:{digest.hexdigest()[: _count_digits(len(secret))]}"


def _count_digits(size: int) -> int:
    return 2 if size < REDACT_GUESSABLE_CHARACTERS else 4


def _replace_findings(text: str, findings: Iterable[SecretFinding]) -> str:
    pieces = []
    position = 0
    for finding in findings:
        pieces += [
            text[position : finding.start],
            f"[redacted:{render_placeholder(finding.rule, text[finding.start : finding.end])}]",
        ]
        position = finding.end
    return "".join([*pieces, text[position:]])


def find_once(text: str, allow: Sequence[str] = ()) -> list[SecretFinding]:
    """Return the secrets found in one pass over the text."""
    if len(text) < REDACT_SHORTEST:
        return []
    spans = _find_in_view(text)
    if any(mark in text for mark in _COLOURS):
        spans += _find_without_colours(text)
    if not spans:
        return []
    visible = _subtract_spans(spans, [match.span() for match in _PLACEHOLDER.finditer(text)])
    aligned = _merge_spans(_align_to_escapes(text, span) for span in visible)
    findings = [
        SecretFinding(start, end, rule)
        for start, end, rule in clip_to_json(text, aligned)
        if end > start
    ]
    return [finding for finding in findings if not _is_allowed(finding, text, allow)]


def _find_in_view(text: str) -> list[SecretSpan]:
    view = _undo_escapes(text)
    spans = list(_find_spans(view))
    if not spans:
        return []
    spans += _join_next_line(view, spans)
    spans += _join_line_breaks(text, spans)
    return _extend_to_end(view, spans)


def _find_without_colours(text: str) -> list[SecretSpan]:
    """Find secrets after removing colour codes, which may be inside a secret."""
    starts, removed_before, squeezed, position, removed = [0], [0], [], 0, 0
    for match in _COLOUR.finditer(text):
        squeezed.append(text[position : match.start()])
        position = match.end()
        removed += len(match[0])
        starts.append(position - removed)
        removed_before.append(removed)
    squeezed.append(text[position:])

    def find_original(at: int) -> int:
        return at + removed_before[bisect_right(starts, at) - 1]

    return [
        (find_original(start), find_original(end - 1) + 1, rule)
        for start, end, rule in _find_in_view("".join(squeezed))
        if end > start
    ]


def _extend_to_end(view: str, spans: list[SecretSpan]) -> list[SecretSpan]:
    """Extend each match to the end of its secret, because the rules stop at a maximum length."""
    extended, first, last = [], 0, 0
    for start, end, rule in sorted(spans):
        if end - start < _LONG or rule == "url-password":
            extended.append((start, end, rule))
            continue
        if not first <= end <= last:
            longer = _LONGER.match(view, end)
            first, last = end, longer.end() if longer else end
        extended.append((start, last, rule))
    return extended


def _undo_escapes(text: str) -> str:
    """Resolve the escapes in a text without changing its length.

    Colour codes become blanks. Placeholders become a character that no pattern matches.
    """
    if "[redacted:" in text:
        text = _PLACEHOLDER.sub(
            lambda match: value_tests.PLACEHOLDER_CHARACTER * len(match[0]), text
        )
    if any(mark in text for mark in _COLOURS):
        text = _COLOUR.sub(lambda match: " " * len(match[0]), text)
    if "\\" not in text:
        return text

    def undo_escape(match: re.Match[str]) -> str:
        slashes, control, code, sign = match.groups()
        if control:
            return "\x01" * len(slashes) + _CONTROL[control]
        if len(slashes) % 2 == 0:  # the backslashes escape each other, not the next character
            return match[0]
        return "\x01" * (len(match[0]) - 1) + (sign or _decode_escape(int(code, 16)))

    return _ESCAPE.sub(undo_escape, text)


def _decode_escape(code: int) -> str:
    return "\x01" if code < ord(" ") and chr(code) not in _CONTROL.values() else chr(code)


def _lower_in_place(view: str) -> str:
    """Convert a text to lower case without changing its length. `lower` alone lengthens "İ"."""
    return view.replace("\u0130", "I").lower()


def _find_spans(text: str) -> Iterable[SecretSpan]:
    low = _lower_in_place(text)
    literals = _LITERALS.find(low)
    view = public_fields.hide_public_fields(text, low, literals)
    if view is not text:
        low = _lower_in_place(view)
    for run in known_tokens.TOKEN_RUN.finditer(view):
        start = run.start()
        for begin, end, rule in known_tokens.find_tokens(run[0]):
            yield start + begin, start + end, rule
    yield from context_secrets.find_formatted(view, low, literals, _holds_a_secret)
    yield from named_secrets.find_named(view, low, literals)


def _holds_a_secret(text: str) -> bool:
    return any(True for _ in _find_spans(text))


def _join_next_line(view: str, spans: list[SecretSpan]) -> list[SecretSpan]:
    """Return the rest of each token that a narrow terminal wrapped onto the next line."""
    joined = []
    for start, end, rule in spans:
        if end - start < 16 or rule in {"private-key", "encoded-secret"}:
            continue
        after = _MARGIN.match(view, end)
        if (
            after is None
            or after["then"][:1] in {"=", ":", "("}
            or not value_tests.is_random(after["v"], 8)
        ):
            continue
        if (
            "=" in after["v"].rstrip("=")
            or value_tests.is_uuid(after["v"])
            or value_tests.is_file(after["v"])
        ):
            continue
        joined.append((*after.span("v"), rule))
    return joined


def _join_line_breaks(text: str, spans: list[SecretSpan]) -> list[SecretSpan]:
    """Return the escaped line breaks in key blocks written on one line, as in JSON."""
    blocks = sorted(span for span in spans if span[2] == "private-key")
    return [
        (before[1], after[0], before[2])
        for before, after in pairwise(blocks)
        if after[0] - before[1] < 60 and _IN_ONE_LINE.fullmatch(text, before[1], after[0])
    ]


def _subtract_spans(
    spans: list[SecretSpan], placeholders: list[tuple[int, int]]
) -> list[SecretSpan]:
    """Return the parts of the spans outside `placeholders`, which must be in ascending order."""
    if not placeholders:
        return spans
    visible = []
    first = 0
    for begin, end, rule in sorted(spans):
        start = begin
        while first < len(placeholders) and placeholders[first][1] <= start:
            first += 1
        index = first
        while index < len(placeholders) and placeholders[index][0] < end:
            if placeholders[index][0] > start:
                visible.append((start, placeholders[index][0], rule))
            start = max(start, placeholders[index][1])
            index += 1
        if start < end:
            visible.append((start, end, rule))
    return visible


def _align_to_escapes(text: str, span: SecretSpan) -> SecretSpan:
    """Move the ends of a span so that they do not split an escape."""
    start, end, rule = span
    if _count_slashes_before(text, start) % 2:
        start -= 1
    if _count_slashes_before(text, end) % 2 and end > start:
        end -= 1
    return start, end, rule


def _count_slashes_before(text: str, at: int) -> int:
    first = at
    while first > 0 and text[first - 1] == "\\":
        first -= 1
    return at - first


def _merge_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort the spans and merge those that overlap, keeping the first one's rule."""
    merged: list[SecretSpan] = []
    for start, end, rule in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], end), before[2])
        else:
            merged.append((start, end, rule))
    return merged


def _is_allowed(finding: SecretFinding, text: str, allow: Sequence[str]) -> bool:
    if not allow:
        return False
    secret = text[finding.start : finding.end]
    return any(
        fnmatchcase(secret, entry) or entry == render_placeholder(finding.rule, secret)
        for entry in allow
    )
