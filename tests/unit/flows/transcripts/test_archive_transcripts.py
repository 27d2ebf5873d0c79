"""Transcripts that are kept after the CLI has deleted its own."""

import json
import os
import random
from datetime import UTC, datetime

import pytest

from fakes import drawn
from rekindle.documents import events
from rekindle.errors import StoreError
from rekindle.flows.transcripts import archive_transcripts
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.stores.files import transcript_archive as archives
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.system.files import durable_files
from rekindle.testing.recordings import load_recordings
from unit.harnesses.test_stories import RECORDINGS

SESSION = "6f1c0000-0000-4000-8000-000000000001"
CODEX = RECORDINGS / "codex" / "0.166.0"
HARNESSES = [claude_harness, codex_harness, gemini_harness]


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
        TranscriptArchiver(self.store, "trades", HARNESSES).all()

    def texts(self):
        kept = self.archive.find(SESSION)
        return [turn.text for turn in self.archive.turns(kept)] if kept else None

    def parts(self):
        found = self.archive.parts(SESSION)
        return [[turn.text for turn in self.archive.turns(part)] for part in found]

    def file(self, ending):
        return self.store.folder("trades").transcripts / f"{SESSION}{ending}"


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
    read = claude_harness.read_transcript
    monkeypatch.setattr(
        claude_harness, "read_transcript", lambda line: lines.append(line) or read(line)
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


@pytest.mark.parametrize("point", ["write_from", "replace_file"])
def test_killed_at_any_point_it_keeps_each_turn_once(place, monkeypatch, point):
    place.write(asked("one"), answered("m1", "two"))
    place.keep()
    place.write(asked("three"), answered("m2", "four"))
    real = getattr(durable_files, point)

    class Killed(BaseException):
        pass

    def dies(*arguments, **named):
        if point == "write_from":
            real(*arguments, **named)  # the turns are there, and the cursor does not know
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(archives.durable_files, point, dies)
        with pytest.raises(Killed):
            place.keep()
    assert place.texts() == ["one", "two"]
    place.keep()
    assert place.texts() == ["one", "two", "three", "four"]


def test_a_damaged_cursor_is_rebuilt_from_the_source(place):
    place.write(asked("one"), answered("m1", "two"))
    place.keep()
    (place.store.folder("trades").transcripts / f"{SESSION}.json").write_text("{")
    place.keep()
    assert place.texts() == ["one", "two"]


def test_a_source_that_a_power_loss_has_cut_loses_nothing_that_was_kept(place):
    place.write(asked("one"), answered("m1", "two"), asked("three"))
    place.keep()
    place.path.write_bytes(place.path.read_bytes()[:40] + b"\n")
    place.write(asked("x"), answered("m9", "y"))
    place.keep()
    assert place.parts() == [["one", "two", "three"], ["x", "y"]]


@pytest.mark.parametrize("more", [0, 1, 9])
def test_another_file_in_its_place_is_another_story(place, more):
    place.write(asked("one"), answered("m1", "two"), asked("three"))
    place.keep()
    place.path.unlink()
    others = [asked(f"other {n}") for n in range(3 + more)]
    place.write(*others)
    place.keep()
    place.write(asked("and on"))
    place.keep()
    told = [f"other {n}" for n in range(3 + more)]
    assert place.parts() == [["one", "two", "three"], [*told, "and on"]]


def test_a_copy_of_the_same_file_is_the_same_story(place):
    place.write(asked("one"), answered("m1", "two"))
    place.keep()
    data = place.path.read_bytes()
    place.path.unlink()
    place.path.write_bytes(data)
    place.write(asked("three"))
    place.keep()
    assert place.parts() == [["one", "two", "three"]]


def test_a_lost_note_hides_nothing_when_the_source_is_gone(place):
    place.write(asked("one"), answered("m1", "two"), asked("three"), answered("m2", "four"))
    place.keep()
    place.write(asked("five"), answered("m3", "six"))
    place.keep()
    place.path.unlink()
    for damage in (b"{", b"", None):
        note = place.file(".json")
        note.unlink(missing_ok=True)
        if damage is not None:
            note.write_bytes(damage)
        told = [turn.text for kept in place.archive.all() for turn in place.archive.turns(kept)]
        assert told == ["one", "two", "three", "four", "five"]


def test_a_lost_note_and_a_shorter_source_erase_nothing(place):
    place.write(asked("one"), answered("m1", "two"), asked("three"), answered("m2", "four"))
    place.keep()
    place.file(".json").write_text("{")
    place.path.unlink()
    place.write(asked("new"))
    place.keep()
    place.keep()
    assert place.parts() == [["one", "two", "three"], ["new"]]


@pytest.mark.parametrize("damage", ["flipped", "short"])
def test_a_damaged_archive_is_said_to_be_and_never_added_to(place, damage):
    place.write(*(asked(f"q{n}") for n in range(200)))
    place.keep()
    path = place.file(".jsonl.gz")
    data = path.read_bytes()
    half = len(data) // 2
    bad = data[:half] if damage == "short" else data[:half] + b"\0\0\0\0" + data[half + 4 :]
    path.write_bytes(bad)
    with pytest.raises(StoreError, match="is damaged") as caught:
        place.parts()
    assert caught.value.hint
    place.write(asked("one more"))
    place.keep()
    assert path.read_bytes()[: len(bad)] == bad
    if damage == "short":
        assert place.texts()[-1] == "one more"
        assert len(place.texts()) == 201


def test_what_was_read_before_it_is_killed_is_kept(place, monkeypatch):
    monkeypatch.setattr(archive_transcripts, "ARCHIVE_STEP_BYTES", 1_000)
    place.write(*(asked(f"q{n} " + "x" * 200) for n in range(50)))
    seen = []
    add = TranscriptArchive.add

    class Killed(BaseException):
        pass

    def dies(self, *arguments):
        seen.append(1)
        if len(seen) > 5:
            raise Killed
        return add(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(TranscriptArchive, "add", dies)
        with pytest.raises(Killed):
            place.keep()
    assert 10 < len(place.texts()) < 40
    place.keep()
    assert [text.split()[0] for text in place.texts()] == [f"q{n}" for n in range(50)]


def test_two_names_are_two_files(place):
    aside = place.path.with_suffix("") / "subagents"
    for folder in ("x", "y"):
        (aside / folder).mkdir(parents=True)
        place.write(asked(folder), to=aside / folder / "agent-1.jsonl")
    place.write(asked("main"))
    place.keep()
    kept = place.archive.all()
    assert len(kept) == 3
    assert sorted(t.text for one in kept for t in place.archive.turns(one)) == ["main", "x", "y"]
    names = [
        archives.ArchivedTranscript(session="a", thread="b"),
        archives.ArchivedTranscript(session="a.b"),
    ]
    for one in names:
        place.archive.note(one)
    assert place.archive.find("a.b").thread == ""


@pytest.mark.timeout(20)
def test_pipes_and_loops_of_links_do_not_block(place):
    place.write(asked("one"))
    aside = place.path.with_suffix("") / "subagents"
    aside.mkdir(parents=True)
    os.mkfifo(aside / "agent-p.jsonl")
    (aside / "l1").symlink_to(".")
    (aside / "l2").symlink_to(".")
    (aside / "dangling.jsonl").symlink_to("nowhere")
    place.write(asked("beside"), to=aside / "agent-1.jsonl")
    place.keep()
    assert [kept.thread for kept in place.archive.all()] == ["", "agent-1"]
    place.path.unlink()
    os.mkfifo(place.path)
    place.keep()
    assert place.texts() == ["one"]


def test_no_secret_is_kept_wherever_it_stands(place):
    secret = "gh" + "p_" + drawn(random.Random(7), 36)
    call = {"type": "tool_use", "id": "c1", "name": f"t{secret}", "input": {"command": secret}}
    record = answered("m1", call, timestamp=secret, isSidechain=True, agentId=secret)
    record["message"]["model"] = secret
    long = answered("m2", called("c2", "x" * 180 + " " + secret))
    place.write(record, long, gave("c2", "x"))
    place.keep()
    (sub, main) = place.archive.turns(place.archive.find(SESSION))
    assert secret[:12] not in repr(sub) + repr(main)
    assert len(main.calls[0].about) <= 200


def test_a_file_that_is_a_copy_at_first_tells_only_what_is_its_own(place):
    """A sub-agent of Codex begins with its parent's history."""
    one = next(one for one in load_recordings(CODEX) if one.name == "subagent")
    below = place.path.with_name("rollout-1-below.jsonl")
    meta = {"type": "session_meta", "payload": {"id": SESSION}}
    place.path.write_text(json.dumps(meta, separators=(",", ":")) + "\n")
    whole = one.aside.replace(one.session.encode(), SESSION.encode()).replace(b'": ', b'":')
    lines = whole.splitlines(keepends=True)
    own = next(at for at, line in enumerate(lines) if b"thread_settings_applied" in line)
    below.write_bytes(b"".join(lines[:own]))
    place.keep()
    kept = place.archive.find(SESSION, below.stem)
    assert kept is None or not list(place.archive.turns(kept))
    below.write_bytes(b"".join(lines) + b"\n")
    place.keep()
    turns = list(place.archive.turns(place.archive.find(SESSION, below.stem)))
    assert [turn.who for turn in turns] == ["person", "agent", "agent"]
    assert "spawn_agent" not in repr(turns)


def test_what_only_we_may_read_is_written(place):
    place.write(asked("one"))
    place.keep()
    folder = place.store.folder("trades").transcripts
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
