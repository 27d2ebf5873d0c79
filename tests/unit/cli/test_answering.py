"""`answer` acts on what is recorded, and on nothing else."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from rekindle.cli import questions as cli
from rekindle.documents import event as events
from rekindle.errors import ClosedQuestionError
from rekindle.policy import questions
from rekindle.system import clock
from rekindle.testing.memory import MemoryStore


class Held(MemoryStore):
    """A store whose writer lock is held by a supervisor: answers stay in the inbox."""

    def __init__(self):
        super().__init__(clock=clock.now)
        self.is_busy, self.done = True, []

    def submit(self, agent, *records):
        self.done.append("submitted")
        self.report(agent, *records)
        if not self.is_busy:
            with self.writer(agent) as writer:
                writer.fold()

    def clear_the_way(self, agent):
        self.done.append("cleared")


@pytest.fixture
def store(monkeypatch):
    store = Held()
    now = clock.now()
    with store.writer("a") as writer:
        writer.append(events.DesiredSaid(ts=now, desired="running"), events.RunStarted(ts=now))
        entered = events.SafeModeEntered(ts=now, why="settings", words="rekindle.yaml changed")
        asking = questions.Asking(now, 3600.0)
        writer.append(*questions.with_questions(writer.projection, [entered], asking))
    monkeypatch.setattr(cli, "LOCK_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(cli, "ensure_trust", lambda *_, **__: store.done.append("trusted"))
    monkeypatch.setattr(cli, "accept_settings", lambda *_: store.done.append("accepted") or [])
    return store


def give(store, words):
    known = store.read("a").projection
    meant = cli.Meant(SimpleNamespace(), store, "a", known, known.questions["a-1"])
    cli._give(meant, words, trust=False, as_json=False)


def test_a_recorded_answer_has_its_effects_behind_it(store, capsys):
    store.is_busy = False
    give(store, "accept")
    assert store.done == ["trusted", "submitted", "accepted", "cleared"]
    assert "✓ a: will be started again" in capsys.readouterr().out


def test_an_answer_that_is_not_recorded_yet_is_not_reported_as_done(store, capsys):
    give(store, "accept")
    out = capsys.readouterr().out
    assert "✓" not in out
    assert "has not recorded it yet" in out
    assert "rekindle questions a --all" in out
    assert store.done == ["trusted", "submitted"]


def test_an_answer_that_a_command_of_the_operator_came_before_is_refused(store, capsys):
    """It is refused only when it is recorded: the question was open when it was given."""
    store.is_busy = False
    known = store.read("a").projection
    store.report("a", events.RestartAsked(ts=clock.now() + timedelta(seconds=1)))
    meant = cli.Meant(SimpleNamespace(), store, "a", known, known.questions["a-1"])
    with pytest.raises(ClosedQuestionError, match="another command has settled it"):
        cli._give(meant, "accept", trust=False, as_json=False)
    assert "✓" not in capsys.readouterr().out
    assert store.done == ["trusted", "submitted"]
