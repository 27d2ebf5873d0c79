"""Turns in the transcripts of a session and its subagents."""

import json
from datetime import date
from types import SimpleNamespace

import pytest

from rekindle.documents.manifest import ModelPrice
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.launches.transcript_turns import TranscriptTurns
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.list_prices import PriceList

SESSION, OTHER = "01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"
PRICES = PriceList({"default": ModelPrice(10.0, 100.0)})


class Scene:
    def __init__(self, harness):
        self.meter = SpendMeter(RunSpending(), PRICES, date(2026, 11, 18))
        self.watched = ProcessOutput()
        agent = SimpleNamespace(harness=harness)
        quota = SimpleNamespace(take_lines=lambda lines: None)
        self.turns = TranscriptTurns(agent, self.watched, self.meter, quota)

    @property
    def tokens(self):
        return self.meter.spent().tokens


def codex_turn(name, tokens):
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 0}
    payload = {"response_id": name, "usage": usage}
    return {"type": "token_usage_record", "payload": payload}


def codex_start(thread, parent="", *, forked=False):
    payload = {"id": thread, "model": "m"}
    payload |= {"parent_thread_id": parent} if parent else {}
    payload |= {"forked_from_id": parent} if forked else {}
    return {"type": "session_meta", "payload": payload}


def write(path, *records):
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture
def scene():
    return Scene(codex_harness)


def test_the_turns_of_subagents_count(scene, tmp_path):
    own = write(tmp_path / "rollout-1.jsonl", codex_start(SESSION), codex_turn("a", 1000))
    write(tmp_path / "rollout-2.jsonl", codex_start(OTHER, SESSION), codex_turn("b", 200))
    write(tmp_path / "rollout-3.jsonl", codex_start("x", "another"), codex_turn("c", 70_000))
    for _ in range(2):
        scene.turns.count(own)
        scene.turns.count_subagents(own, SESSION)
        assert scene.tokens == 1200
    write(tmp_path / "rollout-2.jsonl", codex_turn("d", 30))
    scene.turns.count_subagents(own, SESSION)
    assert scene.tokens == 1230


def test_a_copy_of_the_session_in_a_subagent_s_transcript_does_not_count(scene, tmp_path):
    """The copy may contain turns that an earlier launch has counted."""
    own = write(tmp_path / "rollout-1.jsonl", codex_start(SESSION), codex_turn("a", 1000))
    scene.turns.skip_existing(own, SESSION)
    path = tmp_path / "rollout-2.jsonl"
    write(path, codex_start(OTHER, SESSION, forked=True), codex_turn("a", 1000))
    scene.turns.count_subagents(own, SESSION)
    assert scene.tokens == 0
    write(path, {"type": "x", "payload": {"thread_id": OTHER}}, codex_turn("b", 5))
    scene.turns.count_subagents(own, SESSION)
    assert scene.tokens == 5


def test_a_resumed_session_counts_only_its_new_turns(scene, tmp_path):
    own = write(tmp_path / "rollout-1.jsonl", codex_start(SESSION), codex_turn("a", 1000))
    other = tmp_path / "rollout-2.jsonl"
    write(other, codex_start(OTHER, SESSION), codex_turn("b", 200))
    scene.turns.skip_existing(own, SESSION)
    write(tmp_path / "rollout-1.jsonl", codex_turn("c", 30))
    write(other, codex_turn("d", 4))
    scene.turns.count(own)
    scene.turns.count_subagents(own, SESSION)
    assert scene.tokens == 34


def test_the_transcript_has_the_whole_answer_of_a_turn_in_the_stream(tmp_path):
    """Claude Code prints a turn before the model has finished writing."""
    scene = Scene(claude_harness)

    def line(written):
        usage = {"input_tokens": 100, "output_tokens": written}
        message = {"id": "m1", "model": "m", "content": [], "usage": usage}
        return {"type": "assistant", "message": message}

    for item in claude_harness.read_stream(json.dumps(line(1)).encode()):
        scene.watched.take(item, 0.0)
        scene.meter.take(item)
    assert scene.tokens == 101
    scene.turns.count(write(tmp_path / "session.jsonl", line(900)))
    assert scene.tokens == 1000


def test_nothing_is_counted_before_the_transcript_is_known(scene):
    scene.turns.count("")
    scene.turns.count_subagents("", SESSION)
    assert scene.tokens == 0
