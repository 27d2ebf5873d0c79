"""Passages of a transcript, put together to turns."""

import json
from pathlib import Path

import msgspec
import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
    UsageReport,
    WarningReport,
    WindowUsage,
)
from rekindle.documents.transcripts.turn_builder import TurnBuilder
from rekindle.documents.transcripts.turns import Passage, PromptText, ToolResult, TranscriptCursor
from rekindle.thresholds.texts import (
    CALLS_KEPT,
    MARGIN_CHARACTERS,
    OPEN_CHARACTERS,
    OPEN_KEPT,
    SHOWN_CHARACTERS,
    TEXT_CHARACTERS,
)

TABLES = json.loads(Path(__file__).with_name("turn_builder.json").read_text())
PIECES = {
    "ask": PromptText,
    "say": AssistantText,
    "call": lambda call: ToolCallStarted("Bash", call, f"run {call}"),
    "ok": lambda call: ToolResult(call, ok=True, text="output"),
    "bad": lambda call: ToolResult(call, ok=False, text="error"),
    "text": lambda call: ToolResult(call, text="output"),
    "empty": lambda call: ToolResult(call, ok=True),
    "used": lambda model: UsageReport(WindowUsage(120, 1000, "reported", model, 7)),
    "compact": lambda _: CompactionReport(9, 1),
    "warn": WarningReport,
}


def flatten(value):
    """Return a struct as a list of its values."""
    if isinstance(value, msgspec.Struct):
        return [flatten(each) for each in msgspec.structs.astuple(value)]
    return [flatten(each) for each in value] if isinstance(value, tuple) else value


def make(word):
    """Return the passage of a word: `say hello`, with @MESSAGE, #THREAD or ! for told again."""
    kind, _, text = word.partition(" ")
    marks = [mark for mark in text.split() if mark[0] in "@#!"]
    bare = " ".join(mark for mark in text.split() if mark[0] not in "@#!")
    return Passage(
        what=PIECES[kind](bare),
        at="2026-04-09T12:00:00Z",
        message="".join(mark[1:] for mark in marks if mark[0] == "@"),
        thread="".join(mark[1:] for mark in marks if mark[0] == "#"),
        repeats_message="!" in marks,
    )


def narrate(story):
    """Return after each line the turns that are over and the cursor; at the end the rest."""
    narration = TurnBuilder(TranscriptCursor(100, 5, "c0"))
    told = []
    for place, line in enumerate(story.split(" | ")):
        passages = [make(word) for word in line.split(" + ")]
        over = [flatten(turn) for turn in narration.take(passages, 10 * place)]
        told.append([over, flatten(narration.cursor(10 * place + 10))])
    return [told, [flatten(turn) for turn in narration.rest()]]


@pytest.mark.parametrize("story", TABLES["stories"])
def test_a_story_is_told_turn_by_turn(story):
    assert narrate(story) == TABLES["stories"][story]


def take(narration, *passages):
    return list(narration.take([Passage(what=what, message="m") for what in passages], 0))


def test_a_turn_keeps_so_much():
    """Texts are cut, calls above a number are left out, and outputs keep both ends."""
    narration = TurnBuilder()
    limit = TEXT_CHARACTERS + MARGIN_CHARACTERS
    calls = [ToolCallStarted("Bash", str(number), "x") for number in range(CALLS_KEPT + 1)]
    long = "o" * 3 * SHOWN_CHARACTERS
    take(
        narration,
        AssistantText("a" * limit),
        AssistantText("b"),
        AssistantText("c"),
        *calls,
        ToolResult("0", ok=True, text=long),
    )
    (turn,) = narration.rest()
    assert len(turn.calls) == CALLS_KEPT
    assert turn.text.startswith("a" * limit)
    assert "b" not in turn.text
    assert len(turn.calls[0].shown) < len(long)
    narration = TurnBuilder()
    take(narration, AssistantText("a" * (limit - 2)), AssistantText("b"), AssistantText("c"))
    (turn,) = narration.rest()
    assert turn.text == "a" * (limit - 2) + "\nb"


def test_many_open_turns_are_closed():
    """A call that never ends does not keep all turns after it in memory."""
    narration = TurnBuilder()
    for number in range(OPEN_KEPT):
        passage = Passage(
            what=ToolCallStarted("Bash", "x", ""), message=str(number), thread=f"t{number}"
        )
        assert list(narration.take([passage], number)) == []
    last = Passage(what=ToolCallStarted("Bash", "x", ""), message="m", thread="last")
    (first,) = narration.take([last], 0)
    assert (first.number, first.calls[0].result) == (1, "unknown")
    assert narration.cursor(99) == TranscriptCursor(1, 2, "")


def test_many_open_characters_are_closed():
    narration = TurnBuilder()
    size = TEXT_CHARACTERS
    closed = []
    for number in range(OPEN_CHARACTERS // size + 2):
        call = Passage(
            what=ToolCallStarted("Bash", "x", ""), message=str(number), thread=f"t{number}"
        )
        text = Passage(what=AssistantText("a" * size), message=str(number), thread=f"t{number}")
        closed += [turn.number for turn in narration.take([call, text], number)]
    assert closed == list(range(1, len(closed) + 1))
    still = OPEN_CHARACTERS // size + 2 - len(closed)
    each = size + len("Bash")
    assert still * each <= OPEN_CHARACTERS < (still + 1) * each
