"""The turns that a transcript tells of: each once, with all that it took."""

import json

import pytest

from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.ports import complete_harness


def line(**record):
    return json.dumps(record, separators=(",", ":")).encode()


COUNTED = {"input_tokens": 400, "output_tokens": 10, "total_tokens": 410}
CODEX = line(
    type="token_usage_record",
    payload={
        "response_id": "resp_1",
        "usage": COUNTED,
        "thread_token_usage": {"input_tokens": 4000, "total_tokens": 4100},
    },
)
SUMMED = line(
    type="event_msg",
    payload={"type": "token_count", "info": {"last_token_usage": COUNTED}},
)
CLAUDE = line(
    type="assistant",
    message={
        "id": "msg_1",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 300, "cache_read_input_tokens": 100, "output_tokens": 10},
    },
)
GEMINI = line(id="g1", type="gemini", model="m", tokens={"input": 400, "output": 7, "total": 410})


@pytest.mark.parametrize(
    ("harness", "told", "turn"),
    [
        (codex_harness, CODEX, "resp_1"),
        (claude_harness, CLAUDE, "msg_1"),
        (gemini_harness, GEMINI, "g1"),
    ],
)
def test_a_turn_has_its_own_id_and_all_of_its_tokens(harness, told, turn):
    """Its id makes it count once, however often it is written."""
    found = harness.turn(told)
    assert found.turn == turn
    assert found.usage.tokens + found.usage.written == 410


@pytest.mark.parametrize(
    "harness", [codex_harness, claude_harness, gemini_harness, complete_harness(command_harness)]
)
@pytest.mark.parametrize(
    "told",
    [
        b"",
        b'{"type":"token_usage_record","usage":',
        b'{"tokens":{"input":-1},"type":"gemini"}',
        b'["token_usage_record","usage","tokens"]',
        line(type="token_usage_record", payload={"usage": {"input_tokens": "many"}}),
        SUMMED,
    ],
)
def test_a_line_that_is_not_a_turn_does_not_count(harness, told):
    """Torn and odd lines are ignored, and a repeated line is not added twice."""
    assert harness.turn(told) is None
