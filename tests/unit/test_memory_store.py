"""The store in memory adds up to what the files add up to."""

import msgspec
import pytest

from rekindle.documents import events
from rekindle.errors import BusyError, SupervisedError
from rekindle.policy.supervision import run_moves as policy
from rekindle.testing.memory_store import MemoryStore

pytestmark = pytest.mark.pure


@pytest.fixture
def memory(clock):
    made = MemoryStore(clock=clock)
    made.create("trades")
    return made


def happens(store, clock):
    """A little of everything that a supervisor and its operator do."""
    beat = events.Heartbeat(ts=clock(), session="one", tool="Bash", call="c1")
    store.submit(
        "trades", policy.make_desired_event(store.read("trades").projection.run, "running", clock())
    )
    store.submit("trades", beat, beat)  # hooks that are installed twice
    store.submit("trades", beat)
    clock.forward(seconds=5)
    with store.writer("trades") as writer:
        writer.fold()
        writer.append(
            events.RunStarted(ts=clock()),
            events.CycleStarted(ts=clock(), cycle=1),
            events.LaunchStarted(
                ts=clock(),
                launch="l1",
                cycle=1,
                session="one",
                harness="fake",
                boot="b",
                uptime=1.0,
            ),
        )
        writer.project()
    store.submit("trades", events.RestartRequested(ts=clock(), fresh=True))
    clock.forward(seconds=5)
    with store.writer("trades") as writer:
        writer.append(
            events.LaunchEnded(
                ts=clock(), launch="l1", cycle=1, session="one", exit="crash", run_tokens=7
            )
        )
    return store.read("trades")


def test_both_stores_know_the_same(store, memory, clock):
    """Only the inbox positions differ, which memory does not have."""
    began = clock.time
    filed = happens(store, clock)
    clock.time = began
    kept = happens(memory, clock)
    for seen in (kept.committed, kept.projection):
        assert msgspec.structs.replace(seen, cursors={}) == msgspec.structs.replace(
            filed.committed, cursors={}
        )
    assert kept.pending == ()


def test_readers_see_what_is_not_folded_yet(memory, clock):
    memory.report("trades", events.LoopAdded(ts=clock(), id="rate", text="How many?"))
    seen = memory.read("trades")
    assert "rate" in seen.projection.loops
    assert "rate" not in seen.committed.loops
    assert len(seen.pending) == 1
    with memory.writer("trades") as writer:
        writer.fold()
    assert "rate" in memory.read("trades").committed.loops
    assert memory.read("trades").pending == ()


def test_one_writer_and_one_supervisor(memory, clock):
    word = events.DesiredSet(ts=clock(), desired="running")
    with memory.writer("trades"):
        assert memory.submit("trades", word) is False  # kept, for the next writer
        with pytest.raises(BusyError), memory.writer("trades"):
            pass
    with memory.supervising("trades"):
        assert memory.is_supervised("trades")
        with pytest.raises(SupervisedError), memory.supervising("trades"):
            pass
    assert not memory.is_supervised("trades")


def test_the_markers_and_the_log(memory, clock):
    folder = memory.folder("trades")
    folder.request_fresh_session()
    assert folder.fresh.exists()
    folder.fresh.unlink()
    with pytest.raises(FileNotFoundError):
        folder.fresh.unlink()
    folder.write_clean_exit(3, "done")
    assert folder.clean_exit.text == "3 done\n"
    assert memory.document("trades", "relay") is None
    memory.submit("trades", events.RestartRequested(ts=clock()))
    assert [one.kind for one in memory.events_since("trades", 1)] == ["restart.requested"]


def test_old_sessions_are_forgotten(clock):
    """A snapshot does the same; otherwise thousands of years would not fit."""
    memory = MemoryStore(clock=clock, keep=10)
    for number in range(300):
        with memory.writer("trades") as writer:
            writer.append(
                events.LaunchEnded(
                    ts=clock(), launch=f"l{number}", cycle=1, session="one", exit="crash"
                )
            )
    assert len(memory.read("trades").committed.attempts) < 150
    assert len(memory.log["trades"]) == 10


def test_a_watchdog_sees_the_same_in_both(store, memory, clock):
    """It sees the agent, new events, and the marker."""
    for one in (store, memory):
        assert one.exists("trades")
        assert not one.exists("docs")
        folder = one.folder("trades")
        before = folder.stamp()
        assert folder.stamp() == before
        one.submit("trades", events.Heartbeat(ts=clock(), session="one"))
        assert folder.stamp() != before
        assert folder.read_clean_exit() is None
        folder.write_clean_exit(7, "done")
        assert folder.read_clean_exit() == "7 done\n"
