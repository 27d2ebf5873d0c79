"""A hook's inbox record: a few words written by Rekindle, then the CLI's unchanged payload.

    hook claude-code PostToolUse 4f1c - 1794709671134562890 - {"session_id":…}

The hook writes the record without a JSON encoder, and a harness parses the payload. If the middle
of a payload was cut out, it is no longer valid JSON, but the fields at both ends can still be read.
"""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import json_codec

_WORDS = 7
_NONE = "-"
PREFIX = b"1 hook "
"""Version and kind at the start of a hook's record."""
VISITOR = "visitor"
"""Launch id for a person's own session next to a supervised one."""


class HookRecord(msgspec.Struct, frozen=True, kw_only=True):
    harness: str
    event: str
    source: str = ""
    """Cause of the event, such as startup or resume, if the CLI distinguishes causes."""
    launch: str = ""
    """Id of the launch that the session belongs to, or empty for a person's own session."""
    visitor: bool = False
    """Whether this is a person's own session next to a supervised one."""
    process: str = ""
    """Identity of the session's process; empty if the hook did not record it."""
    ts: datetime
    cut: int = 0
    """Original size in bytes of a truncated payload; 0 if the payload is complete."""
    payload: bytes

    def fields(self) -> dict[str, Any]:
        """Return the payload's fields, or only the complete text fields if the payload was cut."""
        if not self.cut:
            payload = json_codec.decode_foreign(self.payload, "hook payload")
            if not isinstance(payload, dict):
                raise DocumentError("hook payload", "is not a JSON object")
            return payload
        texts = re.findall(rb'"([a-z_]{1,40})"\s*:\s*"([^"\\]{0,200})"', self.payload)
        return {key.decode(): value.decode("utf-8", "replace") for key, value in reversed(texts)}


def parse(line: bytes) -> HookRecord:
    """Parse the rest of an inbox line, after its version and the word `hook`."""
    words = line.split(b" ", _WORDS - 1)
    if len(words) < _WORDS:
        raise DocumentError("hook record", "is torn")
    harness, event, launch, process, nanoseconds, flag = (
        "" if word == _NONE else word
        for word in (word.decode("ascii", "replace") for word in words[:6])
    )
    try:
        ts = datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC)
        cut = int(flag.removeprefix("cut:")) if flag.startswith("cut:") else 0
    except (ValueError, OverflowError, OSError) as error:
        raise DocumentError("hook record", f"is damaged ({error})") from error
    name, _, source = event.partition(":")
    return HookRecord(
        harness=harness,
        event=name,
        source=source,
        launch="" if launch == VISITOR else launch,
        visitor=launch == VISITOR,
        process=process,
        ts=ts,
        cut=cut,
        payload=words[_WORDS - 1],
    )
