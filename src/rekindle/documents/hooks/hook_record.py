"""An inbox record of a hook: a few words written by Rekindle, then the CLI's unchanged payload.

    hook claude-code PostToolUse 4f1c - 1794709671134562890 - {"session_id":…}

The hook writes it without a JSON encoder; a harness parses the payload. A payload that was cut in
the middle is no longer valid JSON, but the fields at its two ends can still be read.
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
"""Value that marks a person's own session beside a supervised one, in place of a launch id."""


class HookRecord(msgspec.Struct, frozen=True, kw_only=True):
    harness: str
    event: str
    source: str = ""
    """Cause of the event, if the CLI distinguishes several: startup, resume, …"""
    launch: str = ""
    """Id of the launch that the session belongs to; empty for a person's own session."""
    visitor: bool = False
    """Whether the session is a person's own, beside a supervised one."""
    process: str = ""
    """Identity of the session's process; empty if the hook did not record it."""
    ts: datetime
    cut: int = 0
    """Full size in bytes of a payload that was cut; 0 if it is complete."""
    payload: bytes

    def fields(self) -> dict[str, Any]:
        """Return the payload's fields; if the payload was cut, its complete text fields."""
        if not self.cut:
            payload = json_codec.decode_foreign(self.payload, "hook payload")
            if not isinstance(payload, dict):
                raise DocumentError("hook payload", "is not a JSON object")
            return payload
        texts = re.findall(rb'"([a-z_]{1,40})"\s*:\s*"([^"\\]{0,200})"', self.payload)
        return {key.decode(): value.decode("utf-8", "replace") for key, value in reversed(texts)}


def parse(line: bytes) -> HookRecord:
    """Parse an inbox line from which the version and the word `hook` were removed."""
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
