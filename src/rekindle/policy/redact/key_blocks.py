"""Find private keys between BEGIN and END lines, even if one of the two lines is missing."""

import re
from collections.abc import Iterator
from itertools import islice

from rekindle.policy.redact.known_tokens import SecretSpan
from rekindle.policy.redact.literal_search import LiteralPositions

_LINE = re.compile(r"[^\n]*\n?")
_BLOCK = re.compile(
    r"-----? ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10} ?-{4,5}|Private-Lines: \d{1,4}"
    r"|\$ANSIBLE_VAULT;[^\n]{1,40}"
)
_BLOCK_STARTS = ("-----begin", "----begin", "----- begin", "---- begin", "private-lines: ")
_VAULT = "$ansible_vault;"
_LAST_STARTS = ("-----end", "----end", "----- end", "---- end")
LITERALS = (*_BLOCK_STARTS, _VAULT, *_LAST_STARTS)
_BLOCK_END = re.compile(
    r"-----? ?END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10} ?-{4,5}|Private-MAC:|-----BEGIN "
)
_LAST_LINE = re.compile(r"-----? ?END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10} ?-{4,5}")
_BODY = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{16,}+")
_LAST = re.compile(r"(?:^|[\s+>|\]])(=?[A-Za-z0-9+/]{2,15}={0,2})[\s\x01\"',]*$")
_HEADER = re.compile(r"[A-Z][A-Za-z]{1,12}-[A-Za-z-]{2,12}: ")
_REAL_BREAK = re.compile(r"(?<!\x01)\n")
_STRANGE_LINES = 6
_LONGEST_BLOCK = 400
_LONGEST_LINE = 4_000
_KEY_BODY = re.compile(
    r"(?:MII[A-Za-z0-9+/]{3}(?:IBADAN|IBAAKC)|MHcCAQEEI|MIG[A-Za-z0-9]AgE[AB]|MC4CAQAw"
    r"|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{12}"
)


def find_key_blocks(view: str, literals: LiteralPositions) -> Iterator[SecretSpan]:
    """Yield the lines of private keys."""
    yield from _find_blocks(view, literals)
    yield from _find_bodies(view)


def _find_bodies(view: str) -> Iterator[SecretSpan]:
    """Yield private keys without a BEGIN line, recognized by their first bytes."""
    done = 0
    for match in _KEY_BODY.finditer(view):
        if match.start() < done:
            continue
        stop = _end_of_string(view, match.start())
        for span in _find_block_body(view, match.start(), stop, is_closed=False):
            done = span[1]
            yield span


def _find_blocks(view: str, literals: LiteralPositions) -> Iterator[SecretSpan]:
    """Yield the lines between BEGIN and END, or lines that look like a key if END is missing."""
    done = 0
    for begin in literals.match(_BLOCK, view, (*_BLOCK_STARTS, _VAULT)):
        if begin.start() < done:
            continue
        end = _BLOCK_END.search(view, begin.end(), begin.end() + _LONGEST_BLOCK * 100)
        done = end.start() if end else _end_of_string(view, begin.end())
        yield from _find_block_body(view, begin.end(), done, is_closed=end is not None)
    for end in literals.match(_LAST_LINE, view, _LAST_STARTS):
        if end.start() > done:
            yield from _find_block_end(view, end.start())


def _end_of_string(view: str, at: int) -> int:
    """Return the latest possible end of a block without an END line."""
    first = view.find("\n", at)
    if first < 1 or view[first - 1] != "\x01":
        return len(view)
    real = _REAL_BREAK.search(view, at)
    return real.start() if real else len(view)


def _find_block_body(
    view: str, position: int, stop: int, *, is_closed: bool
) -> Iterator[SecretSpan]:
    strange, was_full = 0, False
    for line in islice(_LINE.finditer(view, position, stop), _LONGEST_BLOCK):
        bodies = [] if _HEADER.search(line[0]) else list(_BODY.finditer(line[0]))
        for body in bodies:
            yield line.start() + body.start(), line.start() + body.end(), "private-key"
        short = _LAST.search(line[0])
        if not bodies and short and (was_full or is_closed):
            yield line.start() + short.start(1), line.start() + short.end(1), "private-key"
        was_full = bool(bodies)
        strange = 0 if bodies else strange + 1
        if strange > _STRANGE_LINES:
            return


def _find_block_end(view: str, stop: int) -> Iterator[SecretSpan]:
    """Yield the last lines of a key block whose beginning is missing."""
    for _ in range(_LONGEST_BLOCK):
        start = max(view.rfind("\n", 0, max(0, stop - 1)) + 1, stop - _LONGEST_LINE)
        line = view[start:stop]
        bodies = list(_BODY.finditer(line))
        if not bodies and line.strip():
            return
        for body in bodies:
            yield start + body.start(), start + body.end(), "private-key"
        stop = start
        if stop == 0:
            return
