"""Hide the public fields of structured text before the search for secrets.

These fields contain random text: the encrypted blocks in the transcripts of agent CLIs, ETags, and
the public half of a JWK. A value that has the format of a known token stays visible.
"""

import re

from rekindle.policy.redact import known_tokens
from rekindle.policy.redact.literal_search import LiteralPositions
from rekindle.policy.redact.value_tests import PLACEHOLDER_CHARACTER

_Q = r"\x01{0,7}[\"']"
_VALUE = rf"(?P<v>[A-Za-z0-9+/_\-]{{20,}}+={{0,2}})(?={_Q}|\.\.\.|…|\Z)"
_COLON = rf"{_Q}[ \t]{{0,4}}:[ \t]{{0,4}}{_Q}"
_SEALED = {
    "encrypted": re.compile(
        rf"encrypted_?(?:[cC]ontent|index){_COLON}(?=gAAAAA|[A-Za-z0-9+/]{{64}})" + _VALUE
    ),
    "thought": re.compile(rf"thought_?[sS]ignature{_COLON}(?=[A-Za-z0-9+/]{{64}})" + _VALUE),
    # The beginning of a protocol buffer: the number of its first field, and a length.
    "signature": re.compile(
        rf"signature(?<!\wsignature){_COLON}(?=[CE][g-v][A-Za-z0-9+/]{{60}})" + _VALUE
    ),
    "redacted_thinking": re.compile(
        rf"redacted_thinking{_Q}[ \t]{{0,4}},[ \t]{{0,4}}{_Q}data{_COLON}"
        r"(?=[CE][g-v][A-Za-z0-9+/]{60})" + _VALUE
    ),
}
_ETAG = re.compile(
    r"(?:etag(?<!\wetag)|if-(?<!\wif-)(?:none-)?match)\x01{0,7}[\"'`]?\]?[ \t]{0,4}[:=, ][ \t]{0,4}"
    r"(?:\x01{0,7}[\"'`]?(?:w/)?){1,3}(?P<v>[a-z0-9+/=_.:\-]{4,100})(?![a-z0-9+/=_.:\-])"
)
_JWK_KIND = re.compile(rf"kty(?<!\wkty)(?:{_Q})?[ \t]{{0,4}}:")
_JWK_FIELDS = (
    re.compile(
        rf"\b(?:n|e|x|y|kid|x5t(?:#S256)?)(?:{_Q})?\s{{0,4}}:\s{{0,40}}{_Q}"
        r"(?P<v>[A-Za-z0-9_\-+/=.:]{1,4000})"
    ),
    re.compile(
        rf"\bx5c(?:{_Q})?\s{{0,4}}:\s{{0,40}}\[(?P<v>[A-Za-z0-9+/=\s\x01\"',]{{1,20000}})\]"
    ),
)
_JWK_END = re.compile("[^}]{0,8000}")
_JWK_REACH = 8_000
"""Maximum distance, in characters, between the type of a JWK and the start of its object."""
_ETAG_STARTS = ("etag", "if-match", "if-none-match")
LITERALS = (*_SEALED, *_ETAG_STARTS, "kty")
_LONGEST_TOKEN = 200
"""Maximum length of a field that could be a token instead. A longer field is random text, which may
contain the prefix of a token by chance."""


def hide_public_fields(view: str, low: str, literals: LiteralPositions) -> str:
    """Overwrite the values of public fields, so that no rule finds them.

    `low` is `view` in lower case.
    """
    spans = [
        match.span("v")
        for start, pattern in _SEALED.items()
        for match in literals.match(pattern, view, (start,))
    ]
    etags = [match.span("v") for match in literals.match(_ETAG, low, _ETAG_STARTS)]
    spans += _leave_tokens(view, [*etags, *_find_jwk_fields(view, literals)])
    if not spans:
        return view
    pieces, position = [], 0
    for start, end in sorted(spans):
        begin = max(start, position)
        pieces += [view[position:begin], PLACEHOLDER_CHARACTER * (end - begin)]
        position = max(position, end)
    return "".join([*pieces, view[position:]])


def _find_jwk_fields(view: str, literals: LiteralPositions) -> list[tuple[int, int]]:
    """Return the spans of the public fields of each JWK."""
    spans: list[tuple[int, int]] = []
    done = 0
    for kind in literals.match(_JWK_KIND, view, ("kty",)):
        if kind.start() < done:
            continue
        before = view[max(done, kind.start() - _JWK_REACH) : kind.start()]
        start = kind.start() - len(before) + before.rfind("{") + 1
        done = _JWK_END.match(view, kind.end()).end()  # type: ignore[union-attr]
        for pattern in _JWK_FIELDS:
            spans += [field.span("v") for field in pattern.finditer(view, start, done)]
    return spans


def _leave_tokens(view: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that are not a known token."""
    return [
        (start, end)
        for start, end in spans
        if end - start > _LONGEST_TOKEN or not known_tokens.find_known(view[start:end])
    ]
