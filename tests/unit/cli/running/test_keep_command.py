"""`keep` closes a session only when its turn is over, and never loses it, with stub programs."""

import json
import subprocess
import sys
import uuid

import click
import pytest
from click.testing import CliRunner

from rekindle import config
from rekindle.cli.running import keep_command
from rekindle.errors import NotFoundError, OwnershipError, UsageError
from rekindle.harnesses.session_files import hash_folder
from rekindle.wiring.keeping import close_session
from rekindle.wiring.open_store import open_store

WAITS = "import signal; signal.pause()"


class Person:
    """A person who starts CLIs by hand. Their programs do nothing but wait."""

    def __init__(self, home, folder, monkeypatch):
        self.home, self.folder = home, folder
        self.programs, self.steps, self.started = [], [], []
        monkeypatch.setattr(close_session.time, "sleep", self._poll)
        monkeypatch.setattr(keep_command, "run", lambda agent, **_: self.started.append(agent))

    def _poll(self, seconds):
        """Make the next change each time the command waits, and bury programs that have exited."""
        if self.steps:
            self.steps.pop(0)()
        for program in self.programs:
            program.poll()

    def start(self, name, **more):
        argv = [name, "-c", WAITS, *more.pop("words", ())]
        program = subprocess.Popen(argv, executable=sys.executable, cwd=self.folder, **more)
        self.programs.append(program)
        return program

    def write(self, path, *records):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        )

    def claude(self, session=None, status="idle"):
        session = session or str(uuid.uuid4())
        self.write_claude(session)
        program = self.start("claude")
        self.mark(program, session, status)
        return session, program

    def write_claude(self, session):
        about = {"sessionId": session, "cwd": str(self.folder)}
        said = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
        self.write(
            f".claude/projects/x/{session}.jsonl",
            {"type": "user", "message": {"role": "user", "content": "Count."}, **about},
            {"type": "assistant", "message": {**said, "stop_reason": "end_turn"}, **about},
        )

    def mark(self, program, session, status):
        mark = {"sessionId": session, "pid": program.pid, "status": status}
        self.write(f".claude/sessions/{program.pid}.json", mark)

    def keep(self, *words):
        return CliRunner().invoke(
            keep_command.keep,
            [*words, "--yes"],
            standalone_mode=False,
            catch_exceptions=False,
        )

    def kept(self):
        """Return the sessions that were recorded as started by a person."""
        project = config.load_project(self.folder)
        (name,) = project.manifest.agents
        attempts = open_store(project).read(name).projection.attempts.values()
        return [record.session for record in attempts]


@pytest.fixture
def person(tmp_path, monkeypatch):
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    made = Person(home, folder, monkeypatch)
    yield made
    for program in made.programs:
        program.kill()
        program.wait()


def test_a_session_that_was_kept_before_is_kept_again(person):
    """Its session is in the agent's log, and its program has exited when it is recorded."""
    session, _ = person.claude()
    person.keep()
    person.claude(session)
    person.keep()
    assert person.kept() == [session, session]


def test_an_ended_session_that_was_kept_before_is_kept_by_its_id(person):
    session, _ = person.claude()
    person.keep()
    person.keep(session[:8])
    assert person.kept() == [session, session]


def test_a_session_of_another_agent_is_refused(person):
    session, _ = person.claude()
    person.keep()
    with pytest.raises(OwnershipError, match="belongs to the agent project"):
        person.keep(session, "other")


@pytest.mark.parametrize("status", ["busy", "waiting"])
def test_a_session_is_closed_only_when_its_program_is_idle(person, status):
    session, program = person.claude(status=status)
    seen = []
    person.steps = [
        lambda: seen.append(program.poll()),
        lambda: seen.append(program.poll()),
        lambda: seen.append(program.poll()),
        lambda: person.mark(program, session, "idle"),
    ]
    told = person.keep().output
    assert "it is working" in told
    assert "waiting until the session's turn is over" in told
    assert seen == [None] * 3
    assert program.poll() is not None
    assert person.kept() == [session]


def test_now_closes_a_working_session_at_once(person):
    session, program = person.claude(status="busy")
    assert "closed the session" in person.keep("--now").output
    assert program.poll() is not None
    assert person.kept() == [session]


def test_wait_closes_and_writes_nothing_until_the_person_closes_the_session(person):
    session, program = person.claude(status="idle")
    seen = []

    def look():
        seen.append((program.poll(), [path.name for path in person.folder.iterdir()]))

    def close():
        program.kill()
        program.wait()

    person.steps = [look, look, close]
    person.keep("--wait")
    assert seen == [(None, [])] * 2
    assert person.kept() == [session]


def test_nothing_is_written_after_ctrl_c(person):
    person.claude()

    def interrupt():
        raise KeyboardInterrupt

    person.steps = [interrupt]
    with pytest.raises(click.Abort):
        person.keep("--wait")
    assert list(person.folder.iterdir()) == []


def test_a_terminal_is_not_closed_if_its_server_runs_other_sessions(person):
    """Codex's server cannot exit then, so closing the terminal would be of no use."""
    session, other = str(uuid.uuid4()), str(uuid.uuid4())
    locks = person.home / ".codex/thread-writer-locks"
    locks.mkdir(parents=True)
    for each, place in ((session, str(person.folder)), (other, "/elsewhere")):
        meta = {"type": "session_meta", "payload": {"id": each, "cwd": place}}
        person.write(f".codex/sessions/2026/11/18/rollout-2026-11-18T10-00-00-{each}.jsonl", meta)
    held = [(locks / f"{each}.lock").open("w") for each in (session, other)]
    files = [lock.fileno() for lock in held]
    person.start("codex", words=["app-server"], pass_fds=files)
    terminal = person.start("codex")
    for lock in held:
        lock.close()
    with pytest.raises(OwnershipError, match="other session"):
        person.keep()
    assert terminal.poll() is None


def test_a_program_whose_session_is_not_certain_is_refused(person):
    for _ in range(2):
        session = str(uuid.uuid4())
        begins = {"sessionId": session, "projectHash": hash_folder(str(person.folder))}
        person.write(f".gemini/tmp/x/chats/session-{session}.jsonl", {**begins, "kind": "main"})
        person.start("gemini")
    with pytest.raises(OwnershipError, match="not clear in which session"):
        person.keep(session)
    assert [program.poll() for program in person.programs] == [None, None]


def test_sessions_that_may_be_running_are_listed_as_such(person, capsys):
    """Two transcripts and one program: either session may be the one that it runs."""
    program = person.start("gemini")
    for _ in range(2):
        session = str(uuid.uuid4())
        begins = {"sessionId": session, "projectHash": hash_folder(str(person.folder))}
        person.write(f".gemini/tmp/x/chats/session-{session}.jsonl", {**begins, "kind": "main"})
    with pytest.raises(UsageError, match="2 were found"):
        keep_command.keep(["--yes"], standalone_mode=False)
    listed = capsys.readouterr().out
    assert listed.count(f"perhaps running (process {program.pid})") == 2
    assert "not running" not in listed


def test_what_a_new_agent_may_do_is_told_before_the_question(person, capsys):
    """A person approved each call so far, and must know that this ends."""
    person.claude()
    for options, may in (
        ([], "the agent may edit and run commands\n  to permit less, use --tools edit"),
        (["--tools", "edit"], "the agent may edit this folder\n  to permit less, use --tools read"),
        (["--tools", "read"], "the agent may only read\n"),
    ):
        with pytest.raises(UsageError, match="no terminal"):
            keep_command.keep(options, standalone_mode=False)
        assert f"calls run without your approval: {may}" in capsys.readouterr().out
    assert list(person.folder.iterdir()) == []


def test_the_permissions_of_an_agent_are_not_changed(person):
    session, _ = person.claude()
    person.keep()
    assert "if the persona edit-and-run in rekindle.yaml" in person.keep(session).output
    with pytest.raises(UsageError, match="--tools is for a new agent"):
        person.keep(session, "--tools", "read")
    assert person.kept() == [session, session]


def test_several_sessions_and_unknown_sessions_are_refused(person):
    with pytest.raises(NotFoundError, match="no session of Claude Code"):
        person.keep()
    person.claude()
    person.claude()
    with pytest.raises(UsageError, match="2 are running"):
        person.keep()
    with pytest.raises(NotFoundError, match="there is no session nope"):
        person.keep("nope")
    with pytest.raises(UsageError, match="exclude each other"):
        person.keep("--wait", "--now")
    assert [program.poll() for program in person.programs] == [None, None]
