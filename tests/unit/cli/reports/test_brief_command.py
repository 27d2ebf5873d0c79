"""`rekindle brief` as a command."""

import json
import os
import sys
import time
from datetime import timedelta

import pytest

from rekindle.cli.main import run
from rekindle.documents import brief as briefs
from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.flows.supervision.supervisor import RunResult
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.files import file_locks
from rekindle.wiring.access.trust_checks import accept_folder

MANIFEST = """\
version: 1
agents:
  trades: {harness: claude-code}
  books: {harness: claude-code}
personas:
  summarizer: {adapter: command, command: [PYTHON, model.py]}
runtime:
  brief: {at: "00:00"}
"""
MODEL = """\
import json, re, sys
prompt = sys.stdin.read()
turn = [int(re.findall(r"^[|] \\[(\\d+)\\]", prompt, re.M)[-1])]
say = dict.fromkeys(("Changed", "Next", "Risk", "open_loops", "resolved", "numbers"), [])
say["Changed"] = [{"text": "the parser reads anything", "turns": turn}]
say["Next"] = [{"text": "tell the others", "turns": turn}]
say["resolved"] = [{"id": "empty-files", "reason": "it reads them", "turns": turn},
                   {"id": "rate-limit", "reason": "sixty", "turns": turn}]
print(json.dumps(say))
"""


@pytest.fixture
def project(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "rekindle.yaml").write_text(MANIFEST.replace("PYTHON", sys.executable))
    (tmp_path / "model.py").write_text(MODEL)
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("model.py", str(tmp_path / "model.py")))
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    accept_folder(tmp_path)
    store.create("trades")
    long_ago = clock.read_clock() - timedelta(days=30)
    path = tmp_path / "session.jsonl"
    said = "I am done: empty-files is resolved. I tell them next."
    message = {"role": "assistant", "id": "m", "content": [{"type": "text", "text": said}]}
    line = {"type": "assistant", "timestamp": clock.read_clock().isoformat(), "message": message}
    path.write_text(json.dumps(line) + "\n")
    with store.writer("trades") as writer:
        writer.append(
            events.LoopAdded(ts=long_ago, id="empty-files", text="They are refused"),
            events.LoopAdded(ts=long_ago, id="rate-limit", text="How many an hour?"),
            events.LoopAdded(ts=long_ago, id="old-thing", text="It is long forgotten"),
            events.SessionStarted(
                ts=clock.read_clock() - timedelta(days=1),
                session="s-1",
                harness="claude-code",
                transcript=str(path),
            ),
            events.Heartbeat(ts=clock.read_clock(), session="s-1"),
        )

    def call(*words, code=0):
        found = run(["brief", *words])
        out, err = capfd.readouterr()
        assert found == code, out + err
        return out, err

    call.store, call.path = store, tmp_path
    return call


def test_it_is_written_shown_and_said_what_came_of_it(project):
    out, err = project("trades")
    assert out.startswith("<!-- rekindle: brief 1 -->\ntrades — ")
    assert "- the parser reads anything (unverified)\n" in out
    assert "(since " in out
    assert ", stale, reported done: sixty)" in out
    assert "written by a model from 1 turn" in err
    assert "resolved: empty-files" in err
    assert "`rekindle resolve rate-limit REASON -a trades` if so" in err
    assert project.store.folder("trades").document("brief").read_text() == out
    out_again, err = project("trades")
    assert out_again == out
    assert "nothing was said or done since the last brief: this is the last brief" in err


def test_with_json_a_program_is_told_the_same(project):
    told = json.loads(project("trades", "--json")[0])
    assert told["agent"] == "trades"
    found = told["brief"]
    assert (found["how"], found["turns"], found["resolved"]) == ("headless", 1, ["empty-files"])
    assert briefs.parse(found["text"]).name == "trades"


def test_what_is_due_is_written_once_for_all_agents(project):
    out, _ = project("--due")
    assert out.splitlines()[0].startswith("✓ trades: written by a model from 1 turn")
    assert out.splitlines()[1] == "· books: no brief is due"
    out, _ = project("--due")
    assert out.splitlines() == ["· trades: no brief is due", "· books: no brief is due"]


def test_a_watchdog_leaves_the_writing_to_a_process_of_its_own(project):
    assert run(["watch", "--once"]) == 0
    path = project.store.folder("trades").document("brief")
    deadline = time.monotonic() + 30
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "the parser reads anything" in path.read_text()
    log = project.store.root.path / "briefs.log"
    while "books" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "✓ trades: written by a model from 1 turn" in log.read_text()
    assert "· trades: no brief is due" in project("--due")[0]


def test_of_two_who_write_what_is_due_one_does(project):
    with file_locks.hold_lock(project.store.folder("trades").briefing, 0.0):
        assert "· trades: another process is writing it" in project("--due")[0]
        assert "is busy" in project("trades", code=6)[1]
    assert "✓ trades" in project("--due")[0]


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_run_that_ends_has_them_written_where_that_is_wanted(project, monkeypatch, is_wanted):
    begun = []
    outcome = RunResult(1, "done", "done")
    monkeypatch.setattr("rekindle.cli.running.run_command.run_supervisor", lambda *_, **__: outcome)
    monkeypatch.setattr(
        "rekindle.cli.running.run_command.start_briefs", lambda *_: begun.append(True)
    )
    manifest = project.path / "rekindle.yaml"
    said = f'"00:00", on_session_end: {str(is_wanted).lower()}'
    manifest.write_text(manifest.read_text().replace('"00:00"', said))
    assert run(["run", "trades"]) == 0
    assert begun == [True] * is_wanted


def test_one_that_fails_does_not_keep_the_others_waiting(project):
    folder = project.store.folder("books")
    folder.path.mkdir(parents=True)
    (folder.path / "ops.jsonl").mkdir()
    out, err = project("--due", code=5)
    assert out.splitlines()[0].startswith("✓ trades")
    assert out.splitlines()[1].startswith("· books: ")
    assert "ops.jsonl" in err


def test_an_agent_of_which_nothing_is_known_has_no_brief(project):
    _, err = project("books", code=7)
    assert "no session of books has any turns yet" in err
    assert not project.store.folder("books").document("brief").exists()


def test_which_agent_must_be_said(project):
    _, err = project(code=2)
    assert "which agent?" in err


def test_the_page_shows_every_agent_and_asks_no_model(project):
    (project.path / "model.py").unlink()
    with project.store.writer("trades") as writer:
        writer.commit_relay(
            relays.parse("## Next Action\nShip it\n\n## Open Questions\n- Which port?\n- none\n"),
            by="agent",
        )
        now = clock.read_clock()
        writer.append(
            events.LaunchStarted(ts=now, launch="l", cycle=1, session="s-1", harness="claude-code"),
            events.LaunchEnded(
                ts=now,
                launch="l",
                cycle=1,
                session="s-1",
                exit="auth",
                usd=1.5,
                tokens=1_200,
                run_usd=1.5,
                run_tokens=1_300,
            ),
            events.SafeModeEntered(ts=now, why="auth", words="Not logged in"),
        )
    out, _ = project("--all")
    lines = out.splitlines()
    assert lines[1] == "2 agents, 1 waits for you, $1.50, 1,300 tokens in these runs"
    text = "\n".join(lines)
    assert "trades: needs you (Not logged in)" in text
    assert "Not logged in → rekindle restart trades" in text
    assert "next:     Ship it" in text
    assert "Which port?" in text
    assert "none" not in [line.strip() for line in lines]
    assert "old-thing: open since " in text
    assert "cost:     $1.50, 1,300 tokens in this run\n" in text
    assert "brief:    none yet: rekindle brief trades" in text
    assert "books: stopped (not started yet)" in text


def test_the_page_after_a_brief_says_what_was_done(project):
    project("trades")
    out, _ = project("--all")
    assert "done:     the parser reads anything (unverified)" in out
    assert "next:     tell the others" in out
    assert "rate-limit: is it done? sixty → rekindle resolve rate-limit REASON -a trades" in out
    out, _ = project("--html", "page.html")
    assert out.startswith("✓ wrote page.html: 2 agents, 1 waits for you")
    page = (project.path / "page.html").read_text()
    assert "the parser reads anything" in page
    assert project("--html", "-")[0] == page
    assert json.loads(project("--all", "--json")[0])["entries"][0]["agent"] == "trades"


def test_an_agent_that_cannot_be_read_hides_no_other(project):
    (project.store.folder("trades").path / "ops.jsonl").unlink()
    (project.store.folder("trades").path / "ops.jsonl").mkdir()
    out, _ = project("--all")
    assert "trades: broken (" in out
    assert "books: stopped" in out


def test_what_only_shows_writes_nothing(project):
    for words in (("--all", "--due"), ("--html", "x", "--mechanical")):
        assert "only show" in project(*words, code=2)[1]


def test_a_page_is_written_in_one_form(project):
    assert "cannot be used together" in project("--html", "x.html", "--json", code=2)[1]
    assert not (project.path / "x.html").exists()


def test_a_page_is_written_where_it_was_asked_for(project):
    real, link = project.path / "real.html", project.path / "link.html"
    link.symlink_to(real)
    project("--html", "link.html")
    assert link.is_symlink()
    assert "<html" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o644
    pipe = project.path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    project("--html", "pipe")
    assert pipe.is_fifo(), "as a device would stay one"
    assert b"<html" in os.read(reader, 100_000)
    os.close(reader)
    assert "does not exist" in project("--html", "no/where.html", code=2)[1]


def test_a_folder_with_a_name_that_is_not_text_has_a_page(project, monkeypatch):
    other = project.path.parent / os.fsdecode(b"caf\xe9")
    project.path.rename(other)
    monkeypatch.chdir(other)
    assert "caf\ufffd" in project("--html", "-")[0]
    assert "caf\ufffd" in project("--all")[0]
    assert json.loads(project("--all", "--json")[0])["project"] == "caf\ufffd"


def test_a_zone_that_is_none_is_said_with_its_line(project):
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace('"00:00"', '"00:00", zone: Nowhere/Land'))
    _, err = project("--due", code=3)
    assert "rekindle.yaml:8: there is no time zone 'Nowhere/Land'" in err


def test_a_loop_that_is_resolved_is_gone_at_once_and_twice_is_once(project):
    project("trades")
    known = project.store.read("trades").projection.loops
    assert open_loops.resolve_loop(known, "empty-files", "again", clock.read_clock()) is None
