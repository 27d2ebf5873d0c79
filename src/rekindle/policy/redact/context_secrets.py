"""Find secrets by their context: URLs, headers, key blocks, encodings and printed files."""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from rekindle.policy.redact import context_patterns, key_blocks, value_tests
from rekindle.policy.redact.encoded_secrets import find_encoded
from rekindle.policy.redact.known_tokens import SecretSpan
from rekindle.policy.redact.literal_search import LiteralPositions

_LINE = re.compile(r"[^\n]*\n?")
_COMMAND_REACH = 400
"""Number of characters before a heredoc in which to look for its command."""
_COOKIES = re.compile(r"cookie\x01{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}(?P<v>[^\n\"'\x01]{8,8000})")
_COOKIE = re.compile(r"(?<![^\s;,:=])[\w.\-]{1,80}=(?P<v>[^\s;,]{8,4000})")
_HEREDOC = re.compile(r"<<[-~]?[ \t]{0,2}\\?[\"']?(?P<end>\w{2,20})[\"']?[^\n]{0,80}\n")
_MENTIONS_SECRET = re.compile(r"(?i)secret|token|passw|credential|api[-_]?key|private|auth")
_HEREDOC_LINES = 20
_SECRET_MANIFEST = re.compile(
    r"kind(?<!\wkind)[\"']?\x01{0,3}[\"']?: ?\x01{0,3}[\"']?(?:Secret|SealedSecret)\b"
)
_MANIFEST_VALUE = re.compile(
    r"(?m)^[^\n\w]{0,20}(?:\d{1,6}[\t ])?[^\n]{0,40}?[\w.\-]{1,80}[\"']?: [\"']?"
    r"(?P<v>[A-Za-z0-9+/]{12,}+={0,2})[\"']?[\s\x01]{0,4}$"
)
_SECRET_FILE = re.compile(
    r"(?:\$ |run\(|bash\()[^\n]{0,80}?(?:secret|token|passw|credential|api[-_]?key|private"
    r"|[-_/]key\b|id_[re]|\bpass\b|\bop read)[^\n]{0,200}\n(?P<l>[^\n]{1,4000})"
)
_ONE_WORD = re.compile(
    r"(?:[ \t]{0,8}\d{1,7}\t|(?:\[[^\]\n]{1,40}\] ){1,3}|[+\-> |]{1,8})?"
    r"(?P<v>[^\s\"'\x01]{12,4000})[\s\x01\"']*\Z"
)


LITERALS = (*context_patterns.LITERALS, *key_blocks.LITERALS)


def find_formatted(
    view: str, low: str, literals: LiteralPositions, inner: Callable[[str], bool]
) -> Iterator[SecretSpan]:
    """Yield the secrets in a text. `inner` checks whether a decoded text contains a secret."""
    yield from context_patterns.find_by_pattern(view, low, literals)
    yield from key_blocks.find_key_blocks(view, literals)
    if "<<" in view:
        yield from _find_heredocs(view)
    if "cookie" in low:
        yield from _find_cookies(view, low)
    if "secret" in low and _SECRET_MANIFEST.search(view):
        yield from _find_manifest_values(view)
    yield from _find_file_values(view, low)
    yield from find_encoded(view, inner)


def _find_heredocs(view: str) -> Iterator[SecretSpan]:
    """Yield single-word lines from heredocs whose command mentions secrets."""
    for match in _HEREDOC.finditer(view):
        line = max(view.rfind("\n", 0, match.start()), match.start() - _COMMAND_REACH) + 1
        if not _MENTIONS_SECRET.search(view, line, match.start()):
            continue
        for below in islice(_LINE.finditer(view, match.end()), _HEREDOC_LINES):
            if match["end"] in below[0]:
                break
            word = _ONE_WORD.match(view, below.start(), below.end())
            if (
                word is None
                or value_tests.is_placeholder(word["v"])
                or value_tests.is_code(word["v"])
            ):
                continue
            if value_tests.is_random(word["v"], 12) or value_tests.has_mixed_characters(word["v"]):
                yield (*word.span("v"), "secret")


def _find_cookies(view: str, low: str) -> Iterator[SecretSpan]:
    for header in _COOKIES.finditer(low):
        for pair in _COOKIE.finditer(view, *header.span("v")):
            if value_tests.is_random(pair["v"], 12) or value_tests.is_uuid(pair["v"]):
                yield (*pair.span("v"), "cookie")


def _find_manifest_values(view: str) -> Iterator[SecretSpan]:
    """Yield every base64 value below `data` in a Kubernetes manifest of kind Secret."""
    done = 0
    for match in _SECRET_MANIFEST.finditer(view):
        if match.start() < done:
            continue
        stop = view.find("\n---", match.end())
        done = stop if stop > 0 else len(view)
        for item in _MANIFEST_VALUE.finditer(view, match.end(), done):
            if len(item["v"]) % 4 == 0 and not item["v"].islower():  # other values are not base64
                yield (*item.span("v"), "secret")


def _find_file_values(view: str, low: str) -> Iterator[SecretSpan]:
    """Yield the output of a command that reads a file with secrets, if it is a single word."""
    if "\n" not in view or not any(mark in low for mark in ("$ ", "run(", "bash(")):
        return
    for match in _SECRET_FILE.finditer(low):
        word = _ONE_WORD.match(view, *match.span("l"))
        if word is None or value_tests.is_placeholder(word["v"]) or value_tests.is_file(word["v"]):
            continue
        if value_tests.is_random(word["v"], 12) or value_tests.is_uuid(word["v"]):
            yield (*word.span("v"), "secret")
