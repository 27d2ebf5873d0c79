"""The transcripts of the real CLIs as a person reads them: `story.txt` beside the recordings.

With another version of a CLI: set REKINDLE_WRITE_STORIES, run this, and read what has changed.
"""

import json
import os
import random
from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import WarningReport
from rekindle.documents.transcripts.turns import (
    PromptText,
    ToolResult,
    TranscriptCursor,
    Turn,
    render,
)
from rekindle.flows.transcripts.transcript_reader import (
    TranscriptReader,
    detect_harness,
)
from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.ports import (
    Harness,
    complete_harness,
)
from rekindle.testing.recordings import (
    Recording,
    load_recordings,
)

COMMAND = complete_harness(command_harness)
RECORDINGS = Path(__file__).parents[2] / "recordings"
CLIS: dict[Path, Harness] = {
    RECORDINGS / "claude-code" / "2.1.325": claude_harness,
    RECORDINGS / "codex" / "0.166.0": codex_harness,
    RECORDINGS / "gemini-cli" / "0.61.0": gemini_harness,
}
CASES = [
    pytest.param(one, harness, id=f"{harness.NAME}-{one.name}")
    for folder, harness in CLIS.items()
    for one in load_recordings(folder)
    if one.transcript
]


def turns_of(path: Path, harness: Harness) -> list[Turn]:
    reading = TranscriptReader(str(path), harness)
    return list(reading.all())


def written(one: Recording, to: Path) -> Path:
    path = to / f"{one.name}.jsonl"
    path.write_bytes(one.transcript + b"\n")
    return path


def story(folder: Path, harness: Harness, to: Path) -> str:
    told = []
    for one in load_recordings(folder):
        turns = [
            render(turn).replace("word " * 200, "word … ")
            for turn in turns_of(written(one, to), harness)
        ]
        told.append(f"=== {one.name}\n" + ("".join(turns) or "(nothing)\n"))
        if one.aside:
            path = to / "aside.jsonl"
            path.write_bytes(one.aside + b"\n")
            asides = harness.asides(str(path), "")
            reading = TranscriptReader(str(path), harness, thread="a1", begins=asides.begins)
            turns = [render(turn) for turn in reading.all()]
            told.append(f"=== {one.name}: beside it\n" + "".join(turns))
    return "\n".join(told)


@pytest.mark.parametrize("folder", CLIS, ids=lambda folder: folder.parent.name)
def test_every_recording_tells_the_story_that_a_person_has_read(folder, tmp_path):
    kept, told = folder / "story.txt", story(folder, CLIS[folder], tmp_path)
    if os.environ.get("REKINDLE_WRITE_STORIES"):
        kept.write_text(told, encoding="utf-8")
    assert told == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize(("one", "harness"), CASES)
def test_it_is_told_whose_a_transcript_is(one, harness, tmp_path):
    path = written(one, tmp_path)
    if not turns_of(path, harness):
        pytest.skip("nothing was said or done in it")
    assert (
        detect_harness(str(path), [claude_harness, codex_harness, gemini_harness, COMMAND])
        is harness
    )


@pytest.mark.parametrize(("one", "harness"), CASES)
def test_cut_anywhere_it_invents_no_turn(one, harness, tmp_path):
    whole = {turn.number: turn for turn in turns_of(written(one, tmp_path), harness)}
    data, path = one.transcript + b"\n", tmp_path / "cut.jsonl"
    places = (
        range(len(data))
        if len(data) < 300
        else random.Random(one.name).sample(range(len(data)), 60)
    )
    for place in places:
        path.write_bytes(data[:place])
        for turn in turns_of(path, harness):
            assert_less(turn, whole[turn.number])


def assert_less(cut: Turn, whole: Turn) -> None:
    """All that a cut transcript tells, the whole one tells too."""
    assert (cut.who, cut.thread, cut.at, cut.compacted) == (
        whole.who,
        whole.thread,
        whole.at,
        whole.compacted,
    )
    assert whole.text.startswith(cut.text)
    for mine, all_of_it in zip(cut.calls, whole.calls, strict=False):
        assert (mine.tool, mine.about) == (all_of_it.tool, all_of_it.about)
        assert mine.result in {"open", all_of_it.result}
        assert mine.shown in {"", all_of_it.shown}
    assert len(cut.calls) <= len(whole.calls)


@pytest.mark.parametrize(("one", "harness"), CASES)
def test_read_as_it_grows_it_is_the_same(one, harness, tmp_path):
    whole = turns_of(written(one, tmp_path), harness)
    data, path = one.transcript + b"\n", tmp_path / "growing.jsonl"
    cursor, found, rest = TranscriptCursor(), [], []
    for place in sorted({*range(0, len(data), 701), len(data)}):
        path.write_bytes(data[:place])
        reading = TranscriptReader(str(path), harness, cursor)
        found += reading.finished()
        cursor, rest = reading.cursor(), list(reading.rest())
    assert found + rest == whole


@pytest.mark.parametrize(
    "harness", [claude_harness, codex_harness, gemini_harness, COMMAND], ids=lambda one: one.NAME
)
def test_a_file_that_is_not_a_transcript_tells_nothing(harness, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        bytes(range(256)) * 40 + b'\n{"type":"user","message":7}\n[]\n{"type":"assistant"}\n'
    )
    assert turns_of(path, harness) == []
    assert turns_of(tmp_path / "gone.jsonl", harness) == []
    assert detect_harness(str(path), [harness]) is None


def user(content, **more):
    return json.dumps({"type": "user", "message": {"content": content}, **more}).encode()


@pytest.mark.parametrize(
    "tag", ["bash-stdout", "task-notification", "local-command-stdout", "command-name"]
)
def test_what_the_cli_puts_in_a_persons_place_is_the_clis(tag):
    (told,) = claude_harness.read_transcript(user(f"<{tag}>obey</{tag}>"))
    assert isinstance(told.what, WarningReport)
    (said,) = claude_harness.read_transcript(user("<b>bold</b> words of a person"))
    assert isinstance(said.what, PromptText)


def test_text_beside_a_tool_s_result_is_not_a_person_s():
    given = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    words = {"type": "text", "text": "obey"}
    told = claude_harness.read_transcript(user([given, words]))
    assert [type(one.what) for one in told] == [ToolResult, WarningReport]


def test_a_sub_agent_without_a_name_is_not_the_main_thread():
    (told,) = claude_harness.read_transcript(user("look", isSidechain=True))
    assert told.thread == "sidechain"


@pytest.mark.parametrize(
    ("tool", "ok"), [("read_file", True), ("run_shell_command", False)], ids=str
)
def test_only_a_command_fails_by_its_exit_code(tool, ok):
    response = {"functionResponse": {"response": {"output": "a\nExit Code: 1\n"}}}
    call = {"id": "c", "name": tool, "status": "success", "result": [response]}
    line = json.dumps({"type": "gemini", "id": "m", "content": "", "toolCalls": [call]})
    told = gemini_harness.read_transcript(line.encode())
    assert [one.what.ok for one in told if isinstance(one.what, ToolResult)] == [ok]


TAIL = 65_536


def require_less_at(folder, tmp_path, places_of):
    """Cut all recordings of a CLI in a row; the turns before the tail are read once."""
    harness, path = CLIS[folder], tmp_path / "joined.jsonl"
    told = [one.transcript + b"\n" for one in load_recordings(folder) if one.transcript]
    # The ids of the recordings were made the same in all of them.
    ids, other = b"-8000-000000000000", b"-8000-%012d"
    data = b"".join(one.replace(ids, other % number) for number, one in enumerate(told))
    path.write_bytes(data)
    whole = {turn.number: turn for turn in turns_of(path, harness)}
    first = len(data) - TAIL
    assert first > 0
    path.write_bytes(data[:first])
    before = TranscriptReader(str(path), harness)
    list(before.finished())
    for place in places_of(range(first, len(data))):
        path.write_bytes(data[:place])
        for turn in TranscriptReader(str(path), harness, before.cursor()).all():
            assert_less(turn, whole[turn.number])


@pytest.mark.parametrize("folder", CLIS, ids=lambda folder: folder.parent.name)
def test_a_tail_cut_at_a_few_bytes_invents_no_turn(folder, tmp_path):
    require_less_at(folder, tmp_path, lambda places: random.Random(7).sample(places, 150))


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("folder", CLIS, ids=lambda folder: folder.parent.name)
def test_a_tail_cut_at_any_byte_invents_no_turn(folder, tmp_path):
    if os.environ.get("REKINDLE_TORTURE") != "whole":
        pytest.skip("each of its last 65,536 bytes: only in `just torture`")
    require_less_at(folder, tmp_path, lambda places: places)
