"""People's messages, in the prompts of launches whose program and supervisor die."""

import pytest

from rekindle.documents import events
from rekindle.documents.person_message import render_sign
from unit.flows.supervision.test_supervisor import Killed, Life


class Reading(Life):
    """A CLI that writes its prompt to a transcript if it lives long enough."""

    def __init__(self, clock, path):
        super().__init__(clock)
        self.path, self.prompts, self.reads = path, [], True

    def start(self, argv, *, prompt, **how):
        self.prompts.append(prompt)
        session = self.starts[-1].session
        started = events.SessionStarted(
            ts=self.clock(),
            session=session,
            harness="fake",
            source="startup",
            transcript=str(self.path / f"{session}.jsonl"),
        )
        self.store.submit("a", started)
        if self.reads:
            with (self.path / f"{session}.jsonl").open("a") as file:
                file.write(prompt.replace("\n", " ") + "\n")
        return super().start(argv, **how)

    def asides(self, transcript, session):
        return None

    def has_prompt(self, transcript, prompt):
        return True

    def read_transcript(self, line):
        return ()

    def turn(self, line):
        return None

    def tells(self, name):
        self.store.submit("a", events.MessageSent(ts=self.clock(), message=name, text="Blue."))

    def shown(self, name):
        return [render_sign(name) in prompt for prompt in self.prompts]

    @property
    def received(self):
        return [(one.message, one.how) for one in self.logged(events.MessageDelivered)]


@pytest.fixture
def life(clock, tmp_path):
    return Reading(clock, tmp_path)


def test_the_next_prompt_has_the_message_and_no_later_one(life):
    """A session that runs without hooks for messages is not interrupted."""
    life.plays = [("crash", 10, lambda: life.tells("m1"), 30), ("crash", 10), ("clean", 10)]
    life.run()
    assert life.shown("m1") == [False, True, False]
    assert life.received == [("m1", "prompt")]
    assert life.logged(events.LaunchStarted)[1].messages == ("m1",)


def test_a_prompt_that_the_cli_lost_is_repeated(life):
    life.tells("m1")

    def recover():
        life.reads = True

    life.reads = False
    life.plays = [("crash", recover), ("crash", 10), ("clean", 10)]
    life.run()
    assert life.shown("m1") == [True, True, False]
    assert life.received == [("m1", "prompt")]


@pytest.mark.parametrize("reads", [True, False])
def test_another_supervisor_asks_the_transcript(life, reads):
    """A supervisor that died has recorded nothing: what the session knows decides."""
    life.tells("m1")
    life.reads, life.plays = reads, [("crash", life.is_killed)]
    with pytest.raises(Killed):
        life.run()
    assert life.received == []
    life.reads, life.plays = True, [("crash", 10), ("clean", 10)]
    life.run()
    assert life.shown("m1") == [True, not reads, False]
    assert life.received == [("m1", "prompt")]


def test_without_a_transcript_the_answer_to_a_prompt_decides(life, monkeypatch):
    monkeypatch.setattr(life.store, "submit", lambda *_, **__: True)
    sent = events.MessageSent(ts=life.clock(), message="m1", text="Blue.")
    with life.store.writer("a") as writer:
        writer.append(sent)
    life.plays = [("crash", 10), ("clean", 10)]
    life.run()
    assert life.shown("m1") == [True, True]
    assert life.received == [("m1", "prompt")]
