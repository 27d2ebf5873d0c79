"""The protocol: versions, ids, and errors for everything that is not a request."""

import json

import pytest

from rekindle.mcp import messages
from rekindle.mcp.messages import PROTOCOLS, ProtocolError


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        *((version, version) for version in PROTOCOLS),
        *((version, PROTOCOLS[0]) for version in ("2026-07-28", "1999-01-01", "", None, 7, [])),
    ],
)
def test_the_version_is_the_one_asked_for_or_the_newest_supported_one(asked, answered):
    """A client with a newer version falls back, or leaves."""
    result = messages.answer_directly("initialize", {"protocolVersion": asked})
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert "propose_failed_approach" in result["instructions"]


def test_a_probe_of_a_later_protocol_is_not_answered_directly():
    """The server then says that it does not know the method."""
    assert messages.answer_directly("server/discover", {}) is None
    assert messages.answer_directly("ping", {}) == {}


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000, b"9" * 10_000]
)
def test_a_line_that_is_not_an_object_is_an_error(line):
    """No line makes the parser crash."""
    with pytest.raises(ProtocolError) as caught:
        messages.parse(line)
    error = json.loads(messages.render_error(None, caught.value))
    assert error["id"] is None
    assert error["error"]["code"] in {messages.PARSE_ERROR, messages.INVALID_REQUEST}


@pytest.mark.parametrize("identity", [None, True, 1.5, [], {}])
def test_an_id_is_a_string_or_a_whole_number(identity):
    """A notification has no id; null is not one."""
    assert messages.find_id({}) is None
    assert messages.find_id({"id": 0}) == 0
    with pytest.raises(ProtocolError):
        messages.find_id({"id": identity})


def test_a_message_is_one_line_of_ascii():
    """Text of an agent cannot end a message early, and need not be valid Unicode."""
    line = messages.render_result(1, messages.make_text_result("a\nb\u2028\ud800é"))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert line.isascii()
    assert json.loads(line)["result"]["content"][0]["text"] == "a\nb\u2028\ud800é"
