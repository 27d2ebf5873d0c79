"""Redaction of what a store keeps."""

import json
import random

import pytest

from fakes import drawn
from rekindle.documents.events import Heartbeat, LoopAdded, StateAdopted
from rekindle.errors import DocumentError
from rekindle.policy.redact.redaction import Redaction
from rekindle.system import clock

RNG = random.Random(4)
CLEAN = Redaction()
WRITTEN = "Tundra-4711x"


def test_an_event_is_redacted_in_its_written_texts():
    """Texts, ids and settings lose their secrets; mere names stay."""
    secret = "gh" + "p_" + drawn(RNG, 36)
    clean = Redaction().event
    added = clean(LoopAdded(ts=clock.read_clock(), id=f"rotate-{secret}", text=f"rotate {secret}"))
    assert secret not in added.text
    assert added.id.startswith("rotate-redacted-github-token-")
    adopted = clean(StateAdopted(ts=clock.read_clock(), numbers={"db_password": "Tundra-4711x"}))
    assert adopted.numbers["db_password"].startswith("[redacted:password:")
    beat = Heartbeat(ts=clock.read_clock(), session="s1", tool="Bash", call="call-1")
    assert clean(beat) is beat


def test_bytes_that_are_not_text_pass_as_they_are():
    data = b"\xff\xfe DB_PASSWORD=Tundra-4711x \xff"
    cleaned = CLEAN.data(data)
    assert b"Tundra" not in cleaned
    assert cleaned.startswith(b"\xff\xfe DB_PASSWORD=[redacted:")
    assert cleaned.endswith(b" \xff")
    plain = b"nothing \xff here"
    assert CLEAN.data(plain) is plain


def test_new_placeholders_are_counted():
    before, after = b"a [redacted:x] b", b"[redacted:x] [redacted:y] [redacted:z]"
    assert CLEAN.count(before, after) == 2
    assert CLEAN.count(after, before) == 0


def test_json_stays_json_and_names_make_secrets():
    raw = {"db_password": WRITTEN, "list": [WRITTEN, {"token": "x"}], "n": 3, "none": None}
    cleaned = json.loads(CLEAN.json(json.dumps(raw).encode()))
    assert cleaned["db_password"].startswith("[redacted:password:")
    assert cleaned["list"] == [WRITTEN, {"token": "x"}]
    assert (cleaned["n"], cleaned["none"]) == (3, None)
    named = json.loads(CLEAN.json(json.dumps({"db_password": [WRITTEN]}).encode()))
    assert named["db_password"][0].startswith("[redacted:password:")
    plain = b'{ "a" : 1 }'
    assert CLEAN.json(plain) is plain


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_json_that_is_nested_too_deeply_is_refused(depth):
    """The versions of Python give up at different depths: in the parser, or in the redaction."""
    deep = b"[" * depth + b'"x"' + b"]" * depth
    with pytest.raises(DocumentError, match="nested too deeply"):
        CLEAN.json(deep)


def test_an_exception_of_the_manifest():
    text = f"DB_PASSWORD={WRITTEN}"
    assert WRITTEN not in CLEAN.text(text)
    assert Redaction(allow=(WRITTEN,)).text(text) == text


def test_short_texts_are_left_alone():
    assert CLEAN.text("pw=a1b2") == "pw=a1b2"
    assert CLEAN.identity("rotate-keys") == "rotate-keys"


def test_a_text_of_the_shortest_length_is_searched():
    assert CLEAN.text("pw=Tu4!x") != "pw=Tu4!x"
    assert CLEAN.text("pw=Tu4!") == "pw=Tu4!"
