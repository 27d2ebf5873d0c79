"""Transcripts that are kept after the CLI has deleted its own."""

import json
import random
from datetime import UTC, datetime

import pytest

from fakes import drawn
from rekindle.documents import event as events
from rekindle.flows.archive_transcripts import ArchiveTranscripts
from rekindle.harnesses import claude_code, codex, gemini
from rekindle.stores.files import transcripts as archives
from rekindle.stores.files.transcripts import TranscriptArchive
from rekindle.system import disk

SESSION = "6f1c0000-0000-4000-8000-000000000001"
HARNESSES = [claude_code, codex, gemini]


def asked(text, **more):
    return {"type": "user", "message": {"role": "user", "content": text}, "uuid": text, **more}


def answered(identity, *blocks, **more):
    content = [
        {"type": "text", "text": block} if isinstance(block, str) else block for block in blocks
    ]
    message = {"id": identity, "model": "opus", "content": content, "usage": {"input_tokens": 7}}
    return {"type": "assistant", "message": message, **more}


def called(call, command):
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


def gave(call, text):
    return asked([{"type": "tool_result", "tool_use_id": call, "content": text}])


class Place:
    def __init__(self, store, tmp_path):
        self.store = store
        self.store.create("trades")
        self.path = tmp_path / f"{SESSION}.jsonl"
        started = events.SessionStarted(
            ts=datetime(2026, 1, 1, tzinfo=UTC),
            session=SESSION,
            harness="claude-code",
            transcript=str(self.path),
        )
        with self.store.writer("trades") as writer:
            writer.append(started)
        self.archive = TranscriptArchive(self.store.folder("trades").transcripts)

    def write(self, *records, to=None):
        with (to or self.path).open("a") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")

    def keep(self):
        ArchiveTranscripts(self.store, "trades", HARNESSES).all()

    def texts(self):
        kept = self.archive.find(SESSION)
        return [turn.text for turn in self.archive.turns(kept)] if kept else None


@pytest.fixture
def place(store, tmp_path):
    return Place(store, tmp_path)


def test_what_the_cli_deletes_is_still_there(place):
    place.write(asked("fix it"), answered("m1", called("c1", "ls")), gave("c1", "a.py"))
    place.write(answered("m2", "done"))
    place.keep()
    place.path.unlink()
    place.keep()
    assert place.texts() == ["fix it", "", "done"]


def test_it_grows_with_its_source_and_repeats_nothing(place):
    for number in range(5):
        place.write(asked(f"q{number}"), answered(f"m{number}", f"a{number}"))
        place.keep()
        place.keep()
    assert place.texts() == [text for n in range(5) for text in (f"q{n}", f"a{n}")]
    assert [turn.number for turn in place.archive.turns(place.archive.find(SESSION))] == [
        *range(1, 11)
    ]


def test_the_next_look_reads_only_what_was_added(place, monkeypatch):
    place.write(
        *(record for n in range(500) for record in (asked(f"q{n}"), answered(f"m{n}", "a")))
    )
    place.keep()
    lines = []
    read = claude_code.read_transcript
    monkeypatch.setattr(
        claude_code, "read_transcript", lambda line: lines.append(line) or read(line)
    )
    place.write(asked("one more"))
    place.keep()
    # The last answer, which was not over, and what came since.
    assert len(lines) == 2


def test_no_secret_is_kept(place):
    secret = "gh" + "p_" + drawn(random.Random(7), 36)
    place.write(asked(f"use {secret}"), answered("m1", called("c1", f"login {secret}")))
    place.write(gave("c1", f"token {secret} ok"), answered("m2", f"used {secret}"))
    place.keep()
    kept = place.archive.find(SESSION)
    assert len(list(place.archive.turns(kept))) == 3
    told = "".join(map(repr, place.archive.turns(kept)))
    assert secret not in told
    for path in place.store.folder("trades").transcripts.iterdir():
        assert secret.encode() not in path.read_bytes()


def test_a_sub_agent_with_a_file_of_its_own_is_kept_apart(place):
    place.write(asked("fix it"), answered("m1", "done"))
    aside = place.path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    aside.parent.mkdir(parents=True)
    place.write(asked("look", isSidechain=True), answered("s1", "seen"), to=aside)
    place.keep()
    kept = place.archive.find(SESSION, "agent-a1")
    assert [(turn.thread, turn.text) for turn in place.archive.turns(kept)] == [
        ("agent-a1", "look"),
        ("agent-a1", "seen"),
    ]
    assert place.texts() == ["fix it", "done"]


def test_of_the_rollouts_beside_it_only_the_sub_agents_are_its_own(place):
    """Codex keeps all of them in one folder."""

    def meta(identity, **more):
        return {"type": "session_meta", "payload": {"id": identity, **more}}

    def said(text):
        content = [{"type": "output_text", "text": text}]
        item = {"type": "message", "role": "assistant", "content": content}
        return {"type": "response_item", "payload": item}

    below = place.path.with_name("rollout-1-below.jsonl")
    other = place.path.with_name("rollout-2-other.jsonl")
    compact = {"separators": (",", ":")}
    for path, records in (
        (place.path, [meta(SESSION), said("done")]),
        (below, [meta("a", parent_thread_id=SESSION), said("seen")]),
        (other, [meta("b", forked_from_id=SESSION), said("elsewhere")]),
    ):
        path.write_text("".join(json.dumps(one, **compact) + "\n" for one in records))
    place.keep()
    assert [kept.thread for kept in place.archive.all()] == ["", "rollout-1-below"]


@pytest.mark.parametrize("point", ["write_from", "replace"])
def test_killed_at_any_point_it_keeps_each_turn_once(place, monkeypatch, point):
    place.write(asked("one"), answered("m1", "two"))
    place.keep()
    place.write(asked("three"), answered("m2", "four"))
    real = getattr(disk, point)

    class Killed(BaseException):
        pass

    def dies(*arguments, **named):
        if point == "write_from":
            real(*arguments, **named)  # the turns are there, and nobody knows
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(archives.disk, point, dies)
        with pytest.raises(Killed):
            place.keep()
    assert place.texts() == ["one", "two"]
    place.keep()
    assert place.texts() == ["one", "two", "three", "four"]


def test_a_damaged_cursor_is_made_anew_from_the_source(place):
    place.write(asked("one"), answered("m1", "two"))
    place.keep()
    (place.store.folder("trades").transcripts / f"{SESSION}.json").write_text("{")
    place.keep()
    assert place.texts() == ["one", "two"]


def test_a_source_that_a_power_loss_has_cut_loses_nothing_that_was_kept(place):
    place.write(asked("one"), answered("m1", "two"), asked("three"))
    place.keep()
    place.path.write_bytes(place.path.read_bytes()[:40])
    place.write(asked("x"))
    place.keep()
    assert place.texts()[:2] == ["one", "two"]


def test_what_only_we_may_read_is_written(place):
    place.write(asked("one"))
    place.keep()
    folder = place.store.folder("trades").transcripts
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
