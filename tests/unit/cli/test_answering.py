"""`answer` acts only on recorded answers."""

from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest

from rekindle.api import answer_questions
from rekindle.cli import trust_prompt
from rekindle.cli.running import answer_commands as cli
from rekindle.cli.running import questions_command
from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.errors import BusyError, ClosedQuestionError, UsageError
from rekindle.policy.operator import answers, questions
from rekindle.system import clock
from rekindle.testing.memory_store import MemoryStore
from rekindle.wiring.access import trust_checks


class Held(MemoryStore):
    """A store whose writer lock is held by a supervisor: answers stay in the inbox."""

    def __init__(self):
        super().__init__(clock=clock.read_clock)
        self.is_busy, self.done = False, []

    def submit(self, agent, *records):
        self.done.append("submitted")
        self.report(agent, *records)
        if not self.is_busy:
            with self.writer(agent) as writer:
                writer.fold()

    def prepare_start(self, agent):
        self.done.append("cleared")

    @contextmanager
    def writer(self, agent, **how):
        if self.is_busy:
            raise BusyError(agent, 0.0)
        with super().writer(agent, **how) as writer:
            yield writer

    def accept_settings(self, *_):
        assert self.read("a").projection.answers == {}, "a supervisor would see the answer first"
        self.done.append("accepted")
        return []


@pytest.fixture
def store(monkeypatch):
    store = Held()
    now = clock.read_clock()
    with store.writer("a") as writer:
        writer.append(events.DesiredSet(ts=now, desired="running"), events.RunStarted(ts=now))
        entered = events.SafeModeEntered(ts=now, why="settings", words="rekindle.yaml changed")
        asking = questions.QuestionTerms(now, 3600.0)
        writer.append(*questions.add_questions(writer.projection, [entered], asking))
    store.is_busy = True
    monkeypatch.setattr(answer_questions, "LOCK_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(trust_prompt, "ensure_trust", lambda *_, **__: store.done.append("trusted"))
    monkeypatch.setattr(trust_checks, "accept_settings", store.accept_settings)
    return store


def give(store, words, question="a-1"):
    known = store.read("a").projection
    meant = cli.SelectedQuestion(SimpleNamespace(), store, "a", known, known.questions[question])
    cli._submit_answer(meant, words, trust=False, as_json=False)


def test_settings_are_accepted_before_a_supervisor_can_see_the_answer(store, capsys):
    """Otherwise it would find the settings still unaccepted, and ask again."""
    store.is_busy = False
    give(store, "accept")
    assert store.done == ["trusted", "accepted", "cleared"]
    assert store.read("a").projection.answers["a-1"].choice == "accept"
    assert "✓ a: will be started again" in capsys.readouterr().out


def test_an_answer_that_is_not_recorded_yet_is_not_reported_as_done(store, capsys):
    give(store, "stop")
    out = capsys.readouterr().out
    assert "✓" not in out
    assert "has not recorded it yet" in out
    assert "rekindle questions a --all" in out
    assert store.done == ["submitted"]


def test_settings_are_not_accepted_while_the_answer_cannot_be_recorded(store):
    with pytest.raises(BusyError):
        give(store, "accept")
    assert store.done == ["trusted"]
    assert store.read("a").projection.answers == {}


def test_an_answer_that_a_command_of_the_operator_came_before_is_refused(store, capsys):
    """It is refused only when it is recorded: the question was open when it was given."""
    store.is_busy = False
    known = store.read("a").projection
    store.report("a", events.RestartRequested(ts=clock.read_clock() + timedelta(seconds=1)))
    meant = cli.SelectedQuestion(SimpleNamespace(), store, "a", known, known.questions["a-1"])
    with pytest.raises(ClosedQuestionError, match="another command made it unnecessary"):
        cli._submit_answer(meant, "accept", trust=False, as_json=False)
    assert "✓" not in capsys.readouterr().out
    assert store.done == ["trusted"]


def test_every_expired_question_stays_in_the_list_until_the_agent_is_started_again(store):
    now = clock.read_clock()
    known = store.read("a").projection
    refused = [RefusedCall(tool, "x", {"x": tool}) for tool in ("Bash", "Write")]
    asking = questions.QuestionTerms(now, 3600.0)
    asked = questions.ask_about_calls(known, refused, "l1", asking)
    store.is_busy = False
    with store.writer("a") as writer:
        writer.append(*asked)
        later = now + timedelta(hours=2)
        writer.append(*answers.apply_defaults(writer.projection, later))
    rows = questions_command.describe_questions(store.read("a").projection, later)
    shown = [(row["id"], row["state"]) for row in rows if row["is_shown"]]
    assert shown == [(f"a-{number}", "unanswered") for number in (1, 2, 3)]
    with store.writer("a") as writer:
        writer.append(events.DesiredSet(ts=later, desired="running"))
    rows = questions_command.describe_questions(store.read("a").projection, later)
    assert [row["id"] for row in rows if row["is_shown"]] == []


def test_accepting_a_disputed_end_accepts_no_settings(store, capsys):
    store.is_busy = False
    with store.writer("a") as writer:
        now = clock.read_clock()
        ended = events.RunEnded(ts=now, why="disputed")
        asking = questions.QuestionTerms(now, 3600.0)
        writer.append(*questions.add_questions(writer.projection, [ended], asking))
    give(store, "accept", "a-2")
    assert store.done == ["submitted"]
    assert capsys.readouterr().out == "✓ a: done, according to the agent\n"


@pytest.mark.parametrize("effect", ["restart", "continue", "note"])
def test_after_an_answer_the_command_that_starts_the_agent_is_named(store, capsys, effect):
    """This holds only if no supervisor is there to start it."""
    meant = cli.SelectedQuestion(SimpleNamespace(), store, "a", store.read("a").projection, None)
    store.is_supervised = lambda _: True
    cli._print_next(meant, effect)
    assert capsys.readouterr().out == ""
    store.is_supervised = lambda _: False
    cli._print_next(meant, effect)
    assert capsys.readouterr().out.startswith("Next: `rekindle run a`, or `rekindle up a` ")


def test_an_answer_without_a_supervisor_ends_with_the_next_command(store, capsys):
    store.is_busy, store.is_supervised = False, lambda _: False
    give(store, "accept")
    assert "Next: `rekindle run a`, or `rekindle up a` " in capsys.readouterr().out


@pytest.mark.parametrize("effect", ["stop", "finish"])
def test_after_an_answer_that_ends_the_work_no_command_is_named(store, capsys, effect):
    store.is_supervised = lambda _: False
    meant = cli.SelectedQuestion(SimpleNamespace(), store, "a", store.read("a").projection, None)
    cli._print_next(meant, effect)
    assert capsys.readouterr().out == ""


def test_without_a_question_the_hint_tells_how_to_send_a_message(monkeypatch):
    """No choices are listed: there is nothing to choose."""
    monkeypatch.setattr(cli, "_find_origin", lambda: "command")
    with pytest.raises(UsageError, match="a asks nothing") as refused:
        cli._prompt_answer(cli.SelectedQuestion(None, None, "a", None, None))
    assert '`rekindle answer a "TEXT"` sends a message' in refused.value.hint
