"""A record that a hook put into the inbox."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.hooks.hook_record import HookRecord, parse
from rekindle.errors import DocumentError

AT = 1794709671134562890
TIME = datetime.fromtimestamp(AT / 1e9, UTC)


def line(words):
    return f"{words} ".encode() + b'{"a": 1, "b": "x y"}'


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            f"claude-code PostToolUse 4f1c 12.3 {AT} -",
            {"event": "PostToolUse", "launch": "4f1c", "process": "12.3"},
        ),
        (
            f"claude-code SessionStart:resume - - {AT} -",
            {"event": "SessionStart", "source": "resume"},
        ),
        (
            f"claude-code Stop visitor - {AT} cut:70000",
            {"event": "Stop", "visitor": True, "cut": 70000},
        ),
    ],
)
def test_a_record_is_read(words, expected):
    """A dash is nothing; the payload stays as it came, spaces and all."""
    given = {"harness": "claude-code", "ts": TIME, "payload": b'{"a": 1, "b": "x y"}'}
    assert parse(line(words)) == HookRecord(**given | expected)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("claude-code Stop - -", "is torn"),
        ("claude-code Stop - - soon -", "is damaged"),
        (f"claude-code Stop - - {AT} cut:many", "is damaged"),
        (f"claude-code Stop - - {'9' * 40} -", "is damaged"),
    ],
)
def test_a_damaged_record_is_refused(words, reason):
    with pytest.raises(DocumentError, match=reason):
        parse(words.encode() if reason == "is torn" else line(words))


def record(payload, cut=0):
    return HookRecord(harness="x", event="Stop", ts=TIME, payload=payload, cut=cut)


def test_the_fields_of_a_payload():
    assert record(b'{"a": 1, "b": [2]}').fields() == {"a": 1, "b": [2]}
    with pytest.raises(DocumentError, match="not a JSON object"):
        record(b"[1]").fields()


def test_of_a_cut_payload_the_whole_texts_are_left():
    """The first of several with the same name counts."""
    payload = b'{"session_id": "s1", "n": 3, "cut": "ab... \\"x", "tail": "t", "session_id": "s2"'
    assert record(payload, cut=9).fields() == {"session_id": "s1", "tail": "t"}
