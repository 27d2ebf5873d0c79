"""A CLI's transcript is moved without secrets, and with the new path of its folder."""

import json
from io import BytesIO

import pytest

from rekindle.errors import StoreError
from rekindle.harnesses.session_files import hash_folder
from rekindle.policy.redact.redaction import Redaction
from rekindle.system.files import durable_files
from rekindle.wiring.keeping import moved_transcript

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
"""A token in the format of a real one."""


def test_secrets_are_redacted_and_signatures_stay():
    lines = [
        {"type": "user", "text": f"use {SECRET}"},
        {"type": "assistant", "signature": SECRET, "text": "ok"},
    ]
    data = (
        b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"{torn " + SECRET.encode()
    )
    cleaned = [*moved_transcript.redact_transcript(BytesIO(data), Redaction())]
    assert SECRET not in json.loads(cleaned[0])["text"]
    assert cleaned[1] == json.dumps(lines[1]).encode() + b"\n"
    assert SECRET.encode() not in cleaned[2]


def test_only_the_session_s_own_folder_is_renamed():
    data = (
        b'{"cwd":"/a/b","text":"see /a/b/c","x":{"cwd": "/a/b"},"y":{"cwd":"/a/bc"},"h":"%b"}\n'
        % hash_folder("/a/b").encode()
    )
    renamed = json.loads(b"".join(moved_transcript.rename_folder([data], "/a/b", "/n")))
    assert renamed == {
        "cwd": "/n",
        "text": "see /a/b/c",
        "x": {"cwd": "/n"},
        "y": {"cwd": "/a/bc"},
        "h": hash_folder("/n"),
    }


def test_another_transcript_of_the_same_session_is_not_replaced(tmp_path):
    path = tmp_path / "a/b/s.jsonl"
    assert moved_transcript.is_place_free(path, [b"2\n"], [b"1\n"], Redaction())
    moved_transcript.place_transcript("codex", tmp_path, path, [b"1\n"])
    assert not moved_transcript.is_place_free(path, [b"2\n"], [b"1\n"], Redaction())
    with pytest.raises(StoreError, match="another transcript"):
        moved_transcript.is_place_free(path, [b"3\n"], [b"2\n"], Redaction())
    assert path.read_bytes() == b"1\n"


def test_the_original_of_a_redacted_transcript_is_recognised(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps({"text": SECRET}).encode() + b"\n")
    exported = [*moved_transcript.redact_transcript([path.read_bytes()], Redaction())]
    assert not moved_transcript.is_place_free(path, [b"moved"], exported, Redaction())


def test_a_transcript_may_be_longer_than_other_files(tmp_path, monkeypatch):
    path = tmp_path / "s.jsonl"
    assert moved_transcript.read_large_file(path) is None
    path.write_bytes(b"x" * 1000)
    monkeypatch.setattr(durable_files, "FILE_BYTES", 100)
    assert moved_transcript.read_large_file(path) == b"x" * 1000
    monkeypatch.setattr(moved_transcript, "EXPORT_BYTES", 999)
    with pytest.raises(StoreError, match="1,000 bytes"):
        moved_transcript.read_large_file(path)
