"""Find secrets in base64 and in hex dumps."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from rekindle.policy.redact.known_tokens import SecretSpan

_BASE64 = re.compile(r"(?<![A-Za-z0-9/_])[A-Za-z0-9+/]{24,}+={0,2}(?![A-Za-z0-9+/=])")
_HEX_ROW = re.compile(
    r"0:?[ \t]{1,3}(?P<h>[0-9a-f]{2}(?:[ ]{0,2}[0-9a-f]{2}){3,15})[ \t]{1,50}(?P<a>[^\n]{1,20})"
)
_NEXT_LINE = re.compile(
    r"\x01{0,4}\n[+\-> |]{0,8}(?P<v>[A-Za-z0-9+/]{2,24}={0,2})(?=[\s\x01\"']|\Z)"
)
_APART = 60
"""Maximum distance, in characters, between two base64 lines that are decoded together."""
_PRINTABLE = re.compile(r"[\t\n\r\x20-\x7e]+")


def find_encoded(view: str, inner: Callable[[str], bool]) -> Iterator[SecretSpan]:
    """Yield encoded texts that contain a secret. `inner` checks each decoded text."""
    yield from _find_base64(view, inner)
    yield from _find_dumped(view, inner)


def _find_base64(view: str, inner: Callable[[str], bool]) -> Iterator[SecretSpan]:
    """Yield base64 that decodes to a secret. Adjacent lines are decoded together."""
    group: list[tuple[int, int]] = []
    text = ""

    def flush_group() -> Iterator[SecretSpan]:
        if group and inner(text):
            yield from ((*span, "encoded-secret") for span in group)
            # the last line may be too short to be recognized on its own
            rest = _NEXT_LINE.match(view, group[-1][1])
            if rest is not None:
                yield (*rest.span("v"), "encoded-secret")

    for match in _BASE64.finditer(view):
        # Printable text in base64 never starts with "+", so a "+" is the marker of a diff line.
        start = match.start() + match[0].startswith("+")
        decoded = _decode_run(view[start : match.end()])
        if decoded is None:
            continue
        if group and start - group[-1][1] > _APART:
            yield from flush_group()
            group, text = [], ""
        group.append((start, match.end()))
        text += decoded
    yield from flush_group()


def _decode_run(run: str) -> str | None:
    try:
        data = base64.b64decode(run[: len(run) // 4 * 4] if not run.endswith("=") else run)
    except (binascii.Error, ValueError):
        return None
    text = data.decode("latin-1")
    return text if _PRINTABLE.fullmatch(text) else None


def _find_dumped(view: str, inner: Callable[[str], bool]) -> Iterator[SecretSpan]:
    """Yield both columns of a hex dump whose text contains a secret."""
    rows: list[re.Match[str]] = []
    text = ""

    def flush_rows() -> Iterator[SecretSpan]:
        if rows and inner(text):
            for row in rows:
                yield (*row.span("h"), "encoded-secret")
                yield (*row.span("a"), "encoded-secret")

    for row in _HEX_ROW.finditer(view):
        data = bytes.fromhex(row["h"]).decode("latin-1")
        if not _PRINTABLE.fullmatch(data):
            continue
        if rows and row.start() - rows[-1].end() > _APART:
            yield from flush_rows()
            rows, text = [], ""
        rows.append(row)
        text += data
    yield from flush_rows()
