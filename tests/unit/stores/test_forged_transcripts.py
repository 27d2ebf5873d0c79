"""Transcripts that an agent names in a report of its own making."""

import json
import os
import time

import pytest

from rekindle.documents import events
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.stores.log import inbox

SESSION = "6f1c2a34-0000-4000-8000-00000000abcd"
HOOKED = {one.NAME: one for one in (claude_harness, codex_harness, gemini_harness)}
OWN = {
    "claude-code": f"/h/.claude/projects/-h-project/{SESSION}.jsonl",
    "codex": f"/h/.codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-{SESSION}.jsonl",
    "gemini": f"/h/.gemini/tmp/project/chats/session-2026-11-16T10-00-{SESSION[:8]}.jsonl",
}
FOREIGN = {
    "any file": "/h/.ssh/id_ed25519",
    "a file in the CLI's folder": "/h/.claude/.credentials.json",
    "a relative path": f"projects/p/{SESSION}.jsonl",
    "another session": "/h/.claude/projects/p/00000000-0000-4000-8000-000000000000.jsonl",
    "a path that leads up": f"/h/projects/../{SESSION}.jsonl",
    "a longer name": f"/h/.claude/projects/p/{SESSION}.jsonl.bak",
    "a pattern": "/h/.claude/projects/p/.*",
}


@pytest.fixture
def store(tmp_path, clock):
    made = FileStore(
        tmp_path,
        host="host-a",
        settings=Settings(),
        clock=clock,
        harnesses={name: harness.read_hook for name, harness in HOOKED.items()},
    )
    made.create("trades")
    return made


def report(store, harness, path):
    """Write what a hook of the CLI writes, as any program in the workspace can."""
    payload = json.dumps({"session_id": SESSION, "transcript_path": path})
    line = f"\n1 hook {harness} SessionStart:startup - - {time.time_ns()} - {payload}\n"
    with (store.folder("trades").inbox / "00000000000000000001-a.seg").open("a") as file:
        file.write(line)


def known_transcript(store):
    with store.writer("trades") as writer:
        writer.fold()
        return writer.projection.lives[SESSION].transcript


@pytest.mark.parametrize("harness", OWN)
def test_a_session_s_own_transcript_is_known_by_its_path(store, harness):
    """The path is the one that the CLI uses, wherever its folder is."""
    report(store, harness, OWN[harness])
    assert known_transcript(store) == OWN[harness]


@pytest.mark.parametrize("path", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("harness", OWN)
def test_no_other_file_is_taken_for_a_transcript(store, harness, path):
    """It would be read with the user's rights, and archived where the agent can read it."""
    report(store, harness, path)
    assert known_transcript(store) == ""


def test_a_transcript_of_another_cli_is_not_taken_either(store):
    """Each harness knows its own paths alone."""
    for harness in OWN:
        others = [path for name, path in OWN.items() if name != harness]
        for path in others:
            report(store, harness, path)
    assert known_transcript(store) == ""


@pytest.mark.parametrize("harness", [*OWN, "unknown"])
def test_a_record_that_no_hook_wrote_names_no_transcript(store, clock, harness):
    """An event in the workspace's inbox passes no harness."""
    forged = events.SessionStarted(
        ts=clock(), session=SESSION, harness=harness, transcript="/h/.ssh/id_ed25519"
    )
    inbox.append_records(store.folder("trades").inbox, [forged], durable=True)
    assert store.read("trades").projection.lives[SESSION].transcript == ""
    assert known_transcript(store) == ""


def test_a_link_in_the_place_of_a_transcript_is_not_followed(tmp_path):
    """The agent can put one under a name that its CLI would use."""
    (tmp_path / "secret").write_text("secret\n")
    link = tmp_path / f"{SESSION}.jsonl"
    link.symlink_to(tmp_path / "secret")
    assert transcript_files.read_tail(str(link)) == b""
    assert transcript_files.read_tail(str(tmp_path / "secret")) == b"secret\n"


def test_a_link_above_a_transcript_is_not_followed(tmp_path):
    """The agent can replace a folder after its report was read."""
    real = tmp_path / "real"
    real.mkdir()
    (real / "s.jsonl").write_text("secret\n")
    (tmp_path / "link").symlink_to(real)
    assert transcript_files.read_tail(str(tmp_path / "link/s.jsonl")) == b""
    assert transcript_files.read_tail(str(real / "s.jsonl")) == b"secret\n"


@pytest.mark.parametrize("harness", OWN)
def test_a_home_that_is_reached_by_a_link_is_resolved(store, tmp_path, harness):
    """/home is a link on some systems, and a CLI's folder for some users."""
    path = tmp_path / "real" / OWN[harness].removeprefix("/h/")
    path.parent.mkdir(parents=True)
    path.write_text("own\n")
    (tmp_path / "home").symlink_to("real")
    report(store, harness, str(tmp_path / "home" / OWN[harness].removeprefix("/h/")))
    assert known_transcript(store) == str(path)
    assert transcript_files.read_tail(known_transcript(store)) == b"own\n"


def test_the_target_of_a_link_must_be_a_transcript_s_place_too(store, tmp_path):
    """Otherwise a link of the agent gives any file of that name the form of a transcript's path."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / f"{SESSION}.jsonl").touch()
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects/p").symlink_to("../private")
    report(store, "claude-code", str(tmp_path / f"projects/p/{SESSION}.jsonl"))
    assert known_transcript(store) == ""


def test_a_link_in_the_place_of_the_sub_agents_folder_is_not_followed(store, tmp_path):
    """It would lead to all sessions of the user."""
    others = tmp_path / "h/.claude/projects/-h-private"
    others.mkdir(parents=True)
    message = {"role": "user", "content": "private words"}
    line = json.dumps({"type": "user", "message": message, "uuid": "a"})
    (others / "other.jsonl").write_text(f"{line}\n")
    own = tmp_path / f"work/projects/p/{SESSION}.jsonl"
    own.with_suffix("").mkdir(parents=True)
    own.touch()
    aside = own.with_suffix("") / "subagents"
    aside.symlink_to(others.parent)
    report(store, "claude-code", str(own))
    assert known_transcript(store) == str(own)
    TranscriptArchiver(store, "trades", [claude_harness]).all()
    assert TranscriptArchive(store.folder("trades").transcripts).all() == []
    # The file in the place of the link is archived: the report itself is as a CLI writes it.
    aside.unlink()
    others.rename(aside)
    TranscriptArchiver(store, "trades", [claude_harness]).all()
    assert len(TranscriptArchive(store.folder("trades").transcripts).all()) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_transcript_of_another_user_is_not_read(tmp_path):
    """A supervisor that runs as root can read every file."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text("secret\n")
    os.chown(path, 65534, 65534)
    assert transcript_files.read_tail(str(path)) == b""
