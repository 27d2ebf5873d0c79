"""Rows are made again only when something changed, and one broken agent hides no other."""

import pytest

from rekindle.documents import events
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.operator import questions
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import RuntimeSettings


@pytest.fixture
def rows(store, clock, monkeypatch):
    """The rows of the store's agents, and how often an agent was read for them."""
    found = RowReader(store, {}, RuntimeSettings(), clock)
    found.reads = []
    read = store.read
    monkeypatch.setattr(store, "read", lambda agent: (found.reads.append(agent), read(agent))[1])
    return found


def test_an_agent_that_did_not_change_is_not_read_again(rows, store, clock):
    first = rows.row("trades")
    assert rows.row("trades") is first
    assert rows.reads == ["trades"]
    store.submit("trades", open_loops.propose_loop({}, "real", "something to be done", clock()))
    after = rows.row("trades")
    assert (first.open_loops, after.open_loops) == (0, 1)
    assert after.at > first.at
    assert rows.row("trades") is after


def test_a_supervisor_that_comes_or_goes_changes_the_row(rows, store, clock):
    with store.writer("trades") as writer:
        writer.append(
            events.DesiredSet(ts=clock(), desired="running"),
            events.RunStarted(ts=clock()),
            events.CycleStarted(ts=clock(), cycle=1),
        )
    with store.supervising("trades"):
        assert rows.row("trades").state == "running"
        seen = len(rows.reads)
        assert rows.row("trades").state == "running"
        assert len(rows.reads) == seen
    assert rows.row("trades").state == "stopped"


def test_a_session_begun_by_hand_is_looked_at_each_time(store, clock):
    """That it was killed is written nowhere."""
    alive = {"1:2:3"}
    rows = RowReader(store, {}, RuntimeSettings(), clock, is_alive=alive.__contains__)
    with store.writer("trades") as writer:
        writer.append(
            events.SessionStarted(ts=clock(), session="s", harness="claude-code", process="1:2:3")
        )
    assert rows.row("trades").state == "running"
    alive.clear()
    assert rows.row("trades").reason == "your last session was killed before it reported its end"


def test_loops_grow_stale_with_the_day(rows, store, clock):
    store.submit("trades", open_loops.propose_loop({}, "real", "something to be done", clock()))
    assert rows.row("trades").stale_loops == 0
    clock.forward(days=60)
    assert rows.row("trades").stale_loops == 1


def test_an_agent_that_cannot_be_read_is_broken_and_hides_no_other(rows, store):
    store.create("other")
    store.folder("trades").log.write_bytes(b"")
    store.folder("trades").log.unlink()
    store.folder("trades").log.mkdir()
    assert rows.row("trades").state == "broken"
    assert rows.row("other").state == "stopped"
    assert rows.row("never").reason == "not started yet"


def test_a_question_whose_deadline_passes_changes_the_row(rows, store, clock):
    """Nothing is written at that moment if no supervisor lives."""
    with store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock()), events.CycleStarted(ts=clock(), cycle=1))
        entered = events.SafeModeEntered(ts=clock(), why="auth", words="log in")
        asking = questions.QuestionTerms(clock(), 60.0)
        writer.append(*questions.add_questions(writer.projection, [entered], asking))
    assert rows.row("trades").command == "rekindle answer trades-1 retry"
    clock.forward(seconds=61)
    assert rows.row("trades").command == "rekindle restart trades && rekindle run trades"
