"""`rekindle transcript` and `rekindle summarize` as commands."""

import json
import os
import random
import sys
from datetime import timedelta

import pytest

from fakes import drawn
from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.documents.primer import SOURCE_OF_TRUTH
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.system import clock, host
from rekindle.wiring.access.trust_checks import (
    accept_folder,
    forget_folder,
)

MANIFEST = """\
version: 1
agents: {trades: {harness: claude-code}}
personas:
  summarizer: {adapter: command, command: [PYTHON, -c, "PROGRAM"]}
"""
SECRET = "gh" + "p_" + drawn(random.Random(7), 36)
SESSIONS = ("aaaa-1", "bbbb-2")


@pytest.fixture
def told(tmp_path, monkeypatch, capfd):
    """Record two sessions by hooks: one of today, one of three days ago."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    program = f"import sys; sys.exit('no: {SECRET}')"
    text = MANIFEST.replace("PYTHON", sys.executable).replace("PROGRAM", program)
    (tmp_path / "rekindle.yaml").write_text(text)
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    accept_folder(tmp_path)
    store.create("trades")
    for session, days in zip(SESSIONS, (0, 3), strict=True):
        path = tmp_path / f"{session}.jsonl"
        at = (clock.read_clock() - timedelta(days=days, minutes=5)).isoformat()
        message = {"role": "user", "content": f"words of {session} {SECRET}"}
        first = {"type": "user", "timestamp": at, "message": message}
        odd = {"type": "user", "timestamp": "0001-01-01T00:00:00+14:00", "message": message}
        path.write_text("".join(json.dumps(one) + "\n" for one in (first, odd)[: days or 1]))
        with store.writer("trades") as writer:
            ended = {"session": session, "harness": "claude-code", "transcript": str(path)}
            writer.append(events.SessionStarted(ts=clock.read_clock(), **ended))

    def call(*words, code=0):
        found = run(list(words))
        out, err = capfd.readouterr()
        assert found == code, out + err
        return out, err

    call.archive = TranscriptArchive(store.folder("trades").transcripts)
    return call


def test_a_folder_that_was_not_accepted_gets_no_session_of_the_user(told, tmp_path):
    """A cloned repository can name a session, and bring the folder that it is archived in."""
    forget_folder(tmp_path)
    assert "has no transcript" in told("transcript", code=7)[1]
    told("logs")
    assert told.archive.all() == []
    accept_folder(tmp_path)
    assert "words of aaaa-1" in told("transcript")[0]


@pytest.mark.parametrize(
    ("since", "sessions"),
    [
        ("1d", ["aaaa-1"]),
        ("4d", ["bbbb-2", "aaaa-1"]),
        ("999999w", ["bbbb-2", "aaaa-1"]),
        ("0001-01-01T00:00+14:00", ["bbbb-2", "aaaa-1"]),
        ("2020-01-01", ["bbbb-2", "aaaa-1"]),
    ],
)
def test_since_a_time(told, since, sessions):
    out, _ = told("transcript", "trades", "--since", since, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    # One turn has an invalid time, so it is never too old.
    assert [one["session"] for one in found if one.get("at")] == sessions


def test_of_one_session(told):
    out, _ = told("transcript", "trades", "--session", "bbb", "--last", "1")
    assert "words of bbbb-2" in out
    assert "aaaa-1" not in out
    _, err = told("transcript", "trades", "--session", "cc", code=7)
    assert "watchdog" in err
    told("transcript", "trades", "--since", "yesterday", code=2)


def test_as_json_without_a_secret(told):
    out, _ = told("transcript", "trades", "--json")
    assert {json.loads(line)["harness"] for line in out.splitlines()} == {"claude-code"}
    assert SECRET not in out


def test_while_another_keeps_them_what_is_kept_is_shown(told):
    before, _ = told("transcript", "trades")
    with open("aaaa-1.jsonl", "a") as file:  # noqa: PTH123 - in the project's folder
        file.write(json.dumps({"type": "user", "message": {"content": "more"}}) + "\n")
    with told.archive.adding("trades"):
        assert told("transcript", "trades")[0] == before
    assert "more" in told("transcript", "trades")[0]


def test_a_summary_takes_no_primer_for_the_word_of_a_person(told):
    asked = f"open loops of yesterday\n\n{SOURCE_OF_TRUTH}\n\nGo on."
    with open("aaaa-1.jsonl", "a") as file:  # noqa: PTH123 - in the project's folder
        file.write(json.dumps({"type": "user", "message": {"content": asked}}) + "\n")
    out, _ = told("summarize", "aaaa-1.jsonl", "--as", "relay", "--mechanical")
    assert "of yesterday" not in out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_summary_tells_a_secret(told, form):
    out, err = told("summarize", "aaaa-1.jsonl", "--as", "checkpoint", *form)
    assert "words of aaaa-1" in out
    assert "command gave no answer: no: " in (err if not form else json.loads(out)["words"])
    assert SECRET not in out + err


def test_a_commit_that_is_not_there_is_said_to_be(told):
    _, err = told(
        *("summarize", "aaaa-1.jsonl", "--as", "brief", "--mechanical", "--since", "nosuch"), code=2
    )
    assert "git has no commit 'nosuch'" in err


@pytest.mark.timeout(20)
def test_a_pipe_is_not_a_transcript(told, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    told("summarize", "pipe", "--as", "brief", code=4)
