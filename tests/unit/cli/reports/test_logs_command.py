"""`rekindle logs`: the actions of several agents, line by line, in the order of time."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.wiring.access.trust_checks import accept_folder

MANIFEST = "version: 1\nagents:\n  trades: {harness: claude-code}\n  docs: {harness: codex}\n"
BEGAN = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


def at(minutes):
    return BEGAN + timedelta(minutes=minutes)


class Project:
    def __init__(self, folder):
        (folder / "rekindle.yaml").write_text(MANIFEST)
        accept_folder(folder)
        self.path = folder
        self.transcript = folder / "session.jsonl"
        self.store = FileStore(
            folder, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
        )

    def add(self, agent, *happened):
        with self.store.writer(agent) as writer:
            writer.append(*happened)

    def launch(self, agent, minute, **more):
        known = {"launch": f"l{minute}", "cycle": 1, "session": "s-1", "harness": "claude-code"}
        self.add(agent, events.LaunchStarted(ts=at(minute), **known | more))

    def write_turn(self, minute, text, who="assistant", **call):
        """Append a turn to the transcript that the agent's CLI writes."""
        content = [{"type": "text", "text": text}]
        if call:
            content.append({"type": "tool_use", "id": f"c{minute}", **call})
        line = {
            "type": who,
            "uuid": f"u{minute}",
            "sessionId": "s-1",
            "timestamp": f"{at(minute):%Y-%m-%dT%H:%M:%S.000Z}",
            "message": {"id": f"m{minute}", "role": who, "content": content},
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield Project(tmp_path)
    monkeypatch.undo()
    time.tzset()


def lines(capfd, *arguments):
    assert run(["logs", *arguments]) == 0
    return [line.rstrip() for line in capfd.readouterr().out.splitlines()]


def tell_story(project):
    started = {"session": "s-1", "harness": "claude-code", "transcript": str(project.transcript)}
    project.launch("trades", 0)
    project.add("trades", events.SessionStarted(ts=at(0), **started))
    project.write_turn(0, "Write the parser. Then report.", who="user")
    project.write_turn(1, "I write the parser", name="Write", input={"file_path": "parser.py"})
    refused = {"launch": "l0", "cycle": 1, "tool": "Write", "about": "parser.py", "of_run": 1}
    project.launch("docs", 2, session="d-1", harness="codex")
    ended = {"cycle": 1, "session": "s-1", "launch": "l0"}
    project.add(
        "trades",
        events.LaunchEnded(ts=at(3), exit="crash", words="exit code 1", **ended),
        events.CallRefused(ts=at(3), **refused),
        events.WaitStarted(ts=at(4), why="limit", until=at(60)),
        events.RunEnded(ts=at(70), why="cycles"),
    )


def test_events_and_transcripts_of_several_agents_are_merged_by_time(project, capfd):
    tell_story(project)
    assert lines(capfd) == [
        "2026-04-09 01:00:00  trades  cycle 1, a fresh session (s-1)",
        "2026-04-09 01:01:00  trades    I write the parser",
        "2026-04-09 01:01:00  trades    · Write parser.py",
        "2026-04-09 01:02:00  docs    cycle 1, a fresh session (d-1)",
        "2026-04-09 01:03:00  trades  ! exit code 1",
        "2026-04-09 01:03:00  trades    ✗ Write parser.py: refused, no permission",
        "2026-04-09 01:04:00  trades  waiting until 2026-04-09 02:00:00: a usage limit",
        "2026-04-09 02:10:00  trades  out of cycles: nothing verifies that the work is done",
    ]


def test_one_agent_has_no_column_of_names_and_the_newest_lines_are_last(project, capfd):
    tell_story(project)
    assert lines(capfd, "-n", "1", "docs") == [
        "2026-04-09 01:02:00  cycle 1, a fresh session (d-1)"
    ]
    assert len(lines(capfd, "-n", "3")) == 3


def test_nothing_has_happened_yet(project, capfd):
    assert run(["logs"]) == 0
    assert "Nothing has happened yet: start an agent with `rekindle run`." in capfd.readouterr().err


def test_followed_logs_print_events_and_turns_as_they_come_and_end_with_ctrl_c(project, tmp_path):
    """A turn is printed once, also if its tool call comes later."""
    tell_story(project)
    argv = [sys.executable, "-m", "rekindle", "logs", "-f", "-n", "1"]
    env = {**os.environ, "TZ": "UTC"}
    printed = tmp_path / "printed"
    with printed.open("wb") as file:
        following = subprocess.Popen(argv, cwd=tmp_path, stdout=file, env=env)
        try:
            wait_for(lambda: b"out of cycles" in printed.read_bytes())
            project.write_turn(80, "Now the tests")
            wait_for(lambda: b"Now the tests" in printed.read_bytes())
            project.launch("docs", 81, session="d-2")
            wait_for(lambda: b"docs    cycle 1, a fresh session (d-2)" in printed.read_bytes())
            following.send_signal(signal.SIGINT)
            assert following.wait(10) == 130
        finally:
            following.kill()
            following.wait()
    assert printed.read_bytes().count(b"Now the tests") == 1


def wait_for(is_so, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_commands_of_the_operator_are_named_by_their_verb_once_each(project, capfd):
    """Two events that one command records have one line."""
    project.launch("docs", 0, session="d-1")
    project.add(
        "docs",
        events.DesiredSet(ts=at(1), desired="stopped"),
        events.DesiredSet(ts=at(2), desired="running", cycles=10),
        events.RestartRequested(ts=at(2), once=True),
        events.RestartRequested(ts=at(3), fresh=True),
        events.DesiredSet(ts=at(3), desired="running"),
        events.PersonAnswered(ts=at(4), text="Use\nSQLite."),
        events.DesiredSet(ts=at(4), desired="running"),
    )
    assert [line.split("  ")[1] for line in lines(capfd, "-n", "4", "docs")] == [
        "you stopped it",
        "you started it",
        "you restarted it in a fresh session",
        "you answered: Use SQLite.",
    ]


def test_safe_mode_is_followed_by_the_question_with_its_command(project, capfd):
    """`restart`, which would skip the question, is not shown."""
    project.launch("docs", 0, session="d-1")
    choices = {"choices": ("retry", "stop"), "default": "stop"}
    project.add(
        "docs",
        events.SafeModeEntered(ts=at(1), why="auth", words="not logged in"),
        events.QuestionAsked(
            ts=at(1), question="docs-1", number=1, about="auth", text="not logged in", **choices
        ),
    )
    assert lines(capfd, "-n", "2", "docs") == [
        "2026-04-09 01:01:00  needs you, in safe mode: not logged in",
        "2026-04-09 01:01:00  docs-1 asks: not logged in → rekindle answer docs-1 retry (or: stop)",
    ]
