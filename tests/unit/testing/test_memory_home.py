"""The Python API over a project in memory."""

import pytest

from rekindle import events
from rekindle.errors import CheckFailedError
from rekindle.system import clock
from rekindle.testing import MemoryHome

RELAY = "## Key Decisions Made\n- Use sqlite\n\n## Next Action\nShip the form.\n"


@pytest.fixture
def home():
    return MemoryHome("scout", "other")


def test_a_program_answers_a_question(home):
    assert [row.state for row in home.rows()] == ["stopped", "stopped"]
    scout = home.agent("scout")
    assert scout.start(cycles=3) == "started"
    assert scout.row().state == "running"
    home.ask("scout", "Ten or a hundred?")
    assert scout.row().state == "needs you"
    [question] = home.questions()
    assert question.text == "Ten or a hundred?"
    answer = scout.answer("ten")
    assert (answer.text, home.questions()) == ("ten", [])
    assert scout.row().state == "running"
    assert scout.stop()
    assert scout.wait({"stopped"}, timeout=0).state == "stopped"


def test_events_are_followed(home):
    scout = home.agent("scout")
    now = clock.read_clock()
    home.append("scout", events.CycleStarted(ts=now, cycle=1))
    follow = scout.events(follow=True)
    assert [next(follow).kind for _ in range(2)] == ["agent.created", "cycle.started"]
    home.append("scout", events.CycleEnded(ts=now, cycle=1))
    assert next(follow).kind == "cycle.ended"
    assert [event.seq for event in scout.events(after=2)] == [3]


def test_loops_and_relays_are_changed(home):
    scout = home.agent("scout")
    assert scout.loops.open("limit", "Ten?").outcome == "opened"
    assert scout.loops.resolve("limit", "ten").outcome == "resolved"
    assert scout.relay.set(RELAY)
    with scout.relay.edit() as draft:
        draft.next_action = "Test the form."
    assert scout.row().next_action == "Test the form."
    assert [entry.decision.text for entry in scout.decisions.list()] == ["Use sqlite"]
    assert "-Ship the form." in scout.relay.diff()
    with pytest.raises(CheckFailedError, match="another relay was committed"):
        scout.relay.set(RELAY, base="older")


def test_nothing_is_written(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home.agent("scout").start()
    home.agent("scout").restart(fresh=True)
    assert not home.path.exists()
    assert list(tmp_path.iterdir()) == []
