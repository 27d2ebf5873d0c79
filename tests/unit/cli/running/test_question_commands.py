"""`questions`, `answer`, `approve`, `deny`, with a program whose relay waits for a person."""

import json
import os
import pwd
import re
import signal
import sys

import pytest

from rekindle import config
from rekindle.documents import events
from rekindle.policy.operator import answers, questions
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.open_store import open_store

pytestmark = pytest.mark.timeout(300)

AGENT = """\
import os, pathlib, signal, sys
if pathlib.Path(".idle").exists():
    signal.pause()
folder = pathlib.Path(os.environ["REKINDLE_FOLDER"])
draft = folder.parents[1] / "drafts" / folder.name / "relay.md"
# Hidden files are no sign of work: a relay that waits without work is asked about at once.
number = len(list(pathlib.Path(".").glob(".prompt-*")))
pathlib.Path(f".prompt-{number}").write_text(sys.stdin.read())
draft.write_text(f"## Next Action\\nWaiting for Ann to choose grammar {number}\\n")
"""
WAITS = "Waiting for Ann to choose grammar 0"


class Project:
    def __init__(self, place, folder):
        self.place, self.path = place, folder / "project"
        self.path.mkdir()
        (self.path / "agent.py").write_text(AGENT)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        (self.path / "rekindle.yaml").write_text(
            "version: 1\nagents:\n  trades:\n    harness: command\n"
            f"    command: [{sys.executable}, agent.py]\n    until: [test, -e, done]\n"
        )
        accept_folder(self.path)

    def start(self, *arguments):
        return self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *arguments],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.path), "LC_ALL": "C.UTF-8"},
            cwd=self.path,
        )

    def __call__(self, *arguments, code=0):
        started = self.start(*arguments)
        assert started.wait() == code, started.out + started.err
        return started.out + started.err

    def known(self):
        store = open_store(config.load_project(self.path))
        return store.read("trades").projection if store.exists("trades") else None

    def log(self, kind):
        path = self.path / ".rekindle/agents/trades/ops.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [one for one in map(json.loads, lines) if one["kind"] == kind]

    def prompts(self):
        return len(list(self.path.glob(".prompt-*")))


@pytest.fixture
def project(place, tmp_path):
    return Project(place, tmp_path)


def test_a_relay_that_waits_is_answered_once_though_the_supervisor_is_killed(project):
    """After a kill between question and answer, the next supervisor passes the answer on once."""
    running = project.start("run", "trades")
    project.place.wait_for(lambda: len(project.log("question.asked")) == 1)
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    [row] = json.loads(project("questions", "--json"))["questions"]
    assert (row["id"], row["text"], row["state"]) == ("trades-1", WAITS, "open")
    assert (row["command"], row["others"]) == ('rekindle answer trades-1 "TEXT"', ["stop"])
    assert '→ rekindle answer trades-1 "TEXT"  (or: stop)\n' in project("status")
    assert re.search(rf"trades-1  waiting, asked .+\n  {WAITS}\n", project("questions", "trades-1"))
    assert "no question with id 'trades-7'" in project("questions", "trades-7", code=7)
    [asked] = json.loads(project("status", "--json"))["agents"][0]["questions"]
    assert asked["others"] == row["others"]
    for words in ((), ("trades",), ("trades-1",)):  # without a terminal
        refused = project("answer", *words, code=2)
        assert "no answer was given" in refused
        assert '`rekindle answer trades-1 "TEXT"`; choices: TEXT, stop' in refused
    assert "not one of the choices" in project("answer", "trades-1", "", code=2)
    assert "TEXT is a placeholder" in project("answer", "trades-1", "TEXT", code=2)
    assert "use `rekindle answer`" in project("approve", "trades-1", code=2)
    for words in (("trdes-1", "stop"), ("trdes", "stop"), ("trdes", "Take", "two"), ("trdes",)):
        assert "trdes" in project("answer", *words, code=7)
    assert project.log("question.answered") == []
    token = f"ghp_{'a1B2c3D4e5' * 4}"[:40]  # the record of it differs from the typed text
    assert "its next cycle will get the answer" in project(
        "answer", f"Take the second one, {token}"
    )
    assert "is closed: it was answered by" in project("answer", "trades-1", "stop", code=7)
    assert "No open questions." in project("questions")
    running = project.start("run", "trades")
    project.place.wait_for(lambda: len(project.log("question.asked")) == 2)
    told = "A person has answered: Take the second one"
    assert told in (project.path / ".prompt-1").read_text()
    [answer] = project.log("question.answered")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert (answer["by"], answer["origin"], bool(answer["host"])) == (user, "command", True)
    given = json.loads(project("deny", "trades", "--json"))
    assert (given["v"], given["choice"]) == (1, "stop")
    running.wait()
    assert project.prompts() == 2
    assert project.known().run.desired == "stopped"
    assert "answered by" in project("questions", "--all")


def test_after_ctrl_c_run_status_and_answer_agree_that_the_question_is_closed(project):
    running = project.start("run", "trades")
    project.place.wait_for(lambda: "in safe mode" in running.out)
    project.place.signal(running.pid, signal.SIGINT)
    assert running.wait() == 130
    command = 'rekindle answer trades "TEXT"'
    assert running.out.splitlines()[-1].endswith(f"; `{command}` continues")
    [row] = json.loads(project("status", "--json"))["agents"]
    assert (row["state"], row["command"], row["questions"]) == ("stopped", command, [])
    assert "No open questions." in project("questions")
    assert "no question is open" in project("answer", code=7)
    refused = project("answer", "trades-1", "Take two.", code=7)
    assert "question trades-1 is closed: another command made it unnecessary" in refused
    assert f"`{command}` continues" in refused
    for choice in ("stop", "Retry"):
        refused = project("answer", "trades", choice, code=2)
        assert f"trades has no open question that takes {choice!r}" in refused
        assert f"`{command}` continues" in refused
    assert (project.known().run.desired, project.prompts()) == ("stopped", 1)
    assert "Next: `rekindle run trades`" in project("answer", "trades", "Take two.")
    project("run", "trades", "--once", code=22)
    assert "Take two." in (project.path / ".prompt-1").read_text()


def test_of_two_acknowledged_answers_one_counts_though_every_supervisor_is_killed(project):
    """Both commands died before they could fold, and so did the supervisor that folds."""
    running = project.start("run", "trades")
    project.place.wait_for(lambda: len(project.log("question.asked")) == 1)
    running.signal(signal.SIGKILL)
    running.wait()
    known, now = project.known(), clock.read_clock()
    asked = known.questions["trades-1"]
    given = [answers.make_answer(known, asked, words, now) for words in ("Take two", "stop")]
    inbox.append_records(
        find_private_project(project.path).agent("trades").inbox, given, durable=True
    )
    # The agent of the supervisor that folds does nothing: it may be launched before the kill.
    (project.path / ".idle").touch()
    running = project.start("run", "trades")
    project.place.wait_for(lambda: len(project.log("question.answered")) == 2)
    running.signal(signal.SIGKILL)
    running.wait()
    (project.path / ".idle").unlink()
    counted, refused = project.log("question.answered")
    assert ("refused" in counted, "it was answered" in refused["refused"]) == (False, True)
    running = project.start("run", "trades")
    project.place.wait_for(lambda: len(project.log("question.asked")) == 2)
    project("stop", "trades")
    running.wait()
    assert len(project.log("question.answered")) == 2
    told = [path.read_text().count("answered: Take two") for path in project.path.glob(".prompt-*")]
    assert sum(told) == 1
    assert len(project.log("cycle.ended")) == 2


def test_at_its_deadline_a_question_gets_its_default_and_takes_no_answer(project):
    """The agent stops; a text for it without a question still reaches its next cycle."""
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {questions: {deadline: 1s}}\n")
    running = project.start("run", "trades")
    running.wait()
    assert "stopped" in running.out + running.err
    [row] = json.loads(project("questions", "--json"))["questions"]
    assert (row["state"], row["answer"]["origin"]) == ("unanswered", "deadline")
    assert "unanswered, so the default applies: stop" in project("questions")
    assert "its deadline has passed" in project("answer", "trades-1", "Take two", code=7)
    assert (project.known().run.desired, project.prompts()) == ("stopped", 1)
    given = json.loads(project("answer", "trades", "Take", "two", "--json"))
    assert (given["v"], given["text"]) == (1, "Take two")
    assert [one.text for one in project.known().new_answers] == ["Take two"]


def test_after_a_rewritten_log_is_accepted_no_question_has_the_id_of_an_old_one(project):
    """The command of an old notification must not answer a question that the person never saw."""
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(
        f"{manifest.read_text()}runtime: {{restart: {{cooldown: 0s, max_crashes: 1}}}}\n"
    )
    (project.path / "agent.py").write_text("raise SystemExit(1)\n")
    project("run", "--once", "trades", code=22)
    project("answer", "trades-1", "stop")
    log = project.path / ".rekindle/agents/trades/ops.jsonl"
    log.write_bytes(log.read_bytes().replace(b"agent.created", b"agent.Created", 1))
    project("run", "--once", "trades", code=22)
    [row] = json.loads(project("questions", "--json"))["questions"]
    assert (row["id"], row["state"]) == ("trades-2", "open")
    assert "no question with id 'trades-1'" in project("answer", "trades-1", "retry", code=7)
    assert project.known().run.is_safe


def test_an_answer_in_the_workspace_counts_for_nothing(project):
    """Only the user's own folder carries the operator's decisions."""
    store = open_store(config.load_project(project.path))
    store.create("trades")
    with store.writer("trades") as writer:
        now = clock.read_clock()
        entered = events.SafeModeEntered(ts=now, why="auth", words="log in")
        asking = questions.QuestionTerms(now, 60.0)
        writer.append(events.DesiredSet(ts=now, desired="running"), events.RunStarted(ts=now))
        writer.append(*questions.add_questions(writer.projection, [entered], asking))
    known = project.known()
    given = answers.make_answer(known, known.questions["trades-1"], "retry", now)
    inbox = store.folder("trades").inbox
    (inbox / "0-forged.seg").write_bytes(b"\n1 event " + events.render(given) + b"\n")
    assert project.known().run.is_safe
    project("questions")
    with store.writer("trades") as writer:
        writer.fold()
        assert writer.projection.run.is_safe
    assert project.log("inbox.rejected")
    assert project.log("question.answered") == []
    assert "no question with id" in project("answer", "trades-9", "retry", code=7)
    assert "will be started again" in project("approve")
    assert not project.known().run.is_safe
