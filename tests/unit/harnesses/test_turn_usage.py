"""The cached tokens of each turn, in the recordings of the real CLIs."""

import json
from pathlib import Path

import pytest

from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.claude_code.claude_messages import read_usage
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.mark.parametrize(
    ("harness", "folder", "stored"),
    [
        (claude_harness, "claude-code", 30),
        (codex_harness, "codex", 30),
        (gemini_harness, "gemini-cli", 0),  # its API does not report them
    ],
)
def test_the_cached_tokens_of_a_turn(harness, folder, stored):
    """The model reported 1,000 new tokens, 200 cached and 30 stored, then 2,000 and 1,230."""
    (recording,) = RECORDINGS.glob(f"{folder}/*/tool.jsonl")
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    records = [json.dumps(one["transcript"]).encode() for one in lines if "transcript" in one]
    turns = {found.turn: found.usage for one in records if (found := harness.turn(one))}
    first, second = turns.values()
    assert (first.tokens, first.written) == (1230, 10)
    assert (first.cached, first.stored, first.stored_long) == (200, stored, 0)
    assert (second.tokens, second.written) == (3230, 5)
    assert (second.cached, second.stored, second.stored_long) == (1230, 0, 0)


@pytest.mark.parametrize(("hour", "kept"), [(0, (30, 0)), (20, (10, 20)), (99, (0, 30))])
def test_tokens_that_claude_code_keeps_for_an_hour_have_their_own_count(hour, kept):
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_1h_input_tokens": hour},
    }
    found = read_usage({"model": "m", "usage": usage})
    assert found is not None
    assert (found.tokens, found.cached) == (42, 7)
    assert (found.stored, found.stored_long) == kept
