"""The transcripts of the real CLIs as a person reads them: `story.txt` beside the recordings.

With another version of a CLI: set REKINDLE_WRITE_STORIES, run this, and read what has changed.
"""

import os
import random
from pathlib import Path

import pytest

from rekindle.documents.transcript import Cursor, Turn, render
from rekindle.flows.read_transcript import ReadTranscript, told_by
from rekindle.harnesses import claude_code, codex, command, gemini
from rekindle.ports import Harness
from rekindle.testing.recording import Recording, load_all

RECORDINGS = Path(__file__).parents[2] / "recordings"
CLIS: dict[Path, Harness] = {
    RECORDINGS / "claude-code" / "2.1.325": claude_code,
    RECORDINGS / "codex" / "0.166.0": codex,
    RECORDINGS / "gemini-cli" / "0.61.0": gemini,
}
CASES = [
    pytest.param(one, harness, id=f"{harness.NAME}-{one.name}")
    for folder, harness in CLIS.items()
    for one in load_all(folder)
    if one.transcript
]


def turns_of(path: Path, harness: Harness) -> list[Turn]:
    reading = ReadTranscript(str(path), harness)
    return list(reading.all())


def written(one: Recording, to: Path) -> Path:
    path = to / f"{one.name}.jsonl"
    path.write_bytes(one.transcript + b"\n")
    return path


def story(folder: Path, harness: Harness, to: Path) -> str:
    told = []
    for one in load_all(folder):
        turns = [
            render(turn).replace("word " * 200, "word … ")
            for turn in turns_of(written(one, to), harness)
        ]
        told.append(f"=== {one.name}\n" + ("".join(turns) or "(nothing)\n"))
        if one.aside:
            path = to / "aside.jsonl"
            path.write_bytes(one.aside + b"\n")
            asides = harness.asides(str(path), "")
            reading = ReadTranscript(str(path), harness, thread="a1", begins=asides.begins)
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
    assert told_by(str(path), [claude_code, codex, gemini, command]) is harness


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
    cursor, found, rest = Cursor(), [], []
    for place in sorted({*range(0, len(data), 701), len(data)}):
        path.write_bytes(data[:place])
        reading = ReadTranscript(str(path), harness, cursor)
        found += reading.finished()
        cursor, rest = reading.cursor(), list(reading.rest())
    assert found + rest == whole


@pytest.mark.parametrize("harness", [claude_code, codex, gemini, command], ids=lambda one: one.NAME)
def test_what_is_no_transcript_tells_nothing(harness, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        bytes(range(256)) * 40 + b'\n{"type":"user","message":7}\n[]\n{"type":"assistant"}\n'
    )
    assert turns_of(path, harness) == []
    assert turns_of(tmp_path / "gone.jsonl", harness) == []
    assert told_by(str(path), [harness]) is None
