"""What a hook put into the inbox: a few words of ours, then the CLI's payload as it came.

    hook claude-code PostToolUse 4f1c - 1794709671134562890 - {"session_id":…}

hook.py writes it without JSON; a harness reads the payload. One that was cut in its middle is no
JSON any more: what stands whole at its two ends can still be found in it.
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
"""What a record of this kind begins with, and its version."""
VISITOR = "visitor"
"""Stands in the place of a launch for a person's own session beside a supervised one."""


class HookRecord(msgspec.Struct, frozen=True, kw_only=True):
    harness: str
    event: str
    source: str = ""
    """What the event was fired by, where the CLI has kinds of it: startup, resume, …"""
    launch: str = ""
    """The launch that the session belongs to; empty for a person's own."""
    visitor: bool = False
    """A person's own session beside a supervised one."""
    process: str = ""
    """Which process works on the session, as far as the event says it."""
    ts: datetime
    cut: int = 0
    """The payload's size, where it had to be cut; else 0."""
    payload: bytes

    def fields(self) -> dict[str, Any]:
        """The payload's fields; of a cut one, the texts that stand whole."""
        if not self.cut:
            found = json_codec.decode_foreign(self.payload, "hook payload")
            if not isinstance(found, dict):
                raise DocumentError("hook payload", "is not a JSON object")
            return found
        texts = re.findall(rb'"([a-z_]{1,40})"\s*:\s*"([^"\\]{0,200})"', self.payload)
        return {key.decode(): value.decode("utf-8", "replace") for key, value in reversed(texts)}


def parse(line: bytes) -> HookRecord:
    """A line of the inbox without its version and its `hook`."""
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
