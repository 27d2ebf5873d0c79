"""Each CLI's transcripts tell their session and folder."""

import json

import pytest

from rekindle.harnesses.session_files import SESSION_FILES, hash_folder

ID = "30bc600c-59d1-47d3-8b01-c0bbd4e423f5"
NAME = f"rollout-2026-11-18T10-36-05-{ID}.jsonl"


def lines(*records):
    return [json.dumps(record, separators=(",", ":")).encode() for record in records]


TRANSCRIPTS = {
    "claude-code": lines(
        {"type": "mode", "sessionId": ID},
        {"type": "user", "sessionId": ID, "cwd": "/home/user/x"},
    ),
    "codex": lines({"type": "session_meta", "payload": {"id": ID, "cwd": "/home/user/x"}}),
    "gemini": lines({"sessionId": ID, "projectHash": hash_folder("/home/user/x"), "kind": "main"}),
}
SUBAGENTS = {
    "claude-code": lines({"sessionId": ID, "cwd": "/home/user/x", "isSidechain": True}),
    "codex": lines(
        {
            "type": "session_meta",
            "payload": {"id": ID, "cwd": "/home/user/x", "source": {"parent_thread_id": ID}},
        }
    ),
    "gemini": lines({"sessionId": ID, "projectHash": hash_folder("/home/user/x"), "kind": "sub"}),
}


@pytest.mark.parametrize("cli", SESSION_FILES)
def test_a_session_belongs_to_its_folder(cli):
    identify = SESSION_FILES[cli].identify
    assert identify(TRANSCRIPTS[cli], "/home/user/x") == ID
    assert identify(TRANSCRIPTS[cli], "/home/user/y") == ""
    assert identify([b"{torn", b""], "/home/user/x") == ""
    assert identify([], "/home/user/x") == ""


@pytest.mark.parametrize("cli", SESSION_FILES)
def test_a_sub_agent_is_not_a_session(cli):
    assert SESSION_FILES[cli].identify(SUBAGENTS[cli], "/home/user/x") == ""


def test_an_id_that_is_not_a_uuid_is_ignored():
    forged = lines({"sessionId": "../../x", "cwd": "/x"})
    assert SESSION_FILES["claude-code"].identify(forged, "/x") == ""


def test_a_transcript_is_placed_where_the_cli_looks_for_it():
    assert SESSION_FILES["claude-code"].place("/a/b_c.d", "s.jsonl") == "projects/-a-b-c-d/s.jsonl"
    assert SESSION_FILES["claude-code"].place("/a" * 200, "s.jsonl") == ""
    assert SESSION_FILES["codex"].place("/a", NAME) == f"sessions/2026/11/18/{NAME}"
    assert SESSION_FILES["codex"].place("/a", "x.jsonl") == ""


ANSWER = {"type": "response_item", "payload": {"type": "message", "content": ["output_text"]}}


@pytest.mark.parametrize(
    ("cli", "record", "is_over"),
    [
        ("claude-code", {"type": "assistant", "message": {"stop_reason": "end_turn"}}, True),
        ("claude-code", {"type": "assistant", "message": {"stop_reason": "stop_sequence"}}, True),
        ("claude-code", {"type": "assistant", "message": {"stop_reason": "tool_use"}}, False),
        ("claude-code", {"type": "assistant", "message": {"stop_reason": None}}, False),
        ("claude-code", {"type": "assistant", "isSidechain": True, "message": {}}, None),
        ("claude-code", {"type": "user", "message": {"content": "assistant"}}, None),
        ("codex", {"type": "event_msg", "payload": {"type": "task_started"}}, False),
        ("codex", {"type": "event_msg", "payload": {"type": "task_complete"}}, True),
        ("codex", {"type": "event_msg", "payload": {"type": "turn_aborted"}}, True),
        ("codex", ANSWER, False),
        ("codex", {"type": "response_item", "payload": {"type": "function_call"}}, None),
        ("gemini", {"type": "gemini", "content": "I will run the tests"}, None),
    ],
)
def test_the_end_of_a_turn_is_read_as_the_cli_writes_it(cli, record, is_over):
    (line,) = lines(record)
    assert SESSION_FILES[cli].ends_turn(line) is is_over
