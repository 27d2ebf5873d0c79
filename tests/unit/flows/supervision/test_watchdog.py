"""The watchdog: what it starts, what it leaves alone, and when it tells a person."""

from datetime import UTC, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.errors import StoreError
from rekindle.flows.supervision.watchdog import (
    BriefStarter,
    Watchdog,
    WatchPorts,
    WatchReport,
)
from rekindle.policy.settings.runtime_settings import (
    ARCHIVE_EVERY_SECONDS,
    BRIEF_RETRY_SECONDS,
    BriefSettings,
)
from rekindle.policy.supervision import run_moves as policy
from rekindle.testing.memory_store import MemoryStore

EVERY = 15


class Watched:
    """An agent that is to run, and whose supervisor dies before it has done anything."""

    def __init__(self, clock):
        self.clock, self.store = clock, MemoryStore(clock=clock)
        self.starts, self.told = [], []
        self.store.submit(
            "a", policy.make_desired_event(self.store.read("a").projection.run, "running", clock())
        )

    def look(self, times=1):
        """Check this many times, each as another process, as under cron; return the last result."""
        for _ in range(times):
            around = WatchPorts(
                start=self._start,
                last_words=lambda agent: "no PROMPT.md",
                notify=self._notify,
                clock=self.clock,
            )
            (found,) = Watchdog(self.store, around).look(["a"])
            self.clock.forward(seconds=EVERY)
        return found

    def _start(self, agent):
        self.starts.append(self.clock())
        return ""

    def _notify(self, agent, words):
        self.told.append((agent, words))
        return ["address 1 was not notified: failed"]


@pytest.fixture
def watched(clock):
    return Watched(clock)


def test_one_that_does_not_come_up_is_said_to_be(watched):
    """At the second look, with its last words; a person is told once, and hears what failed."""
    assert watched.look() == WatchReport("a", started=True, words="its supervisor is gone")
    second = watched.look()
    assert (second.started, second.failed) == (True, True)
    assert (
        second.words
        == "its supervisor did not come up: no PROMPT.md; address 1 was not notified: failed"
    )
    third = watched.look()
    assert third == WatchReport(
        "a", started=False, words="its supervisor did not come up: no PROMPT.md", failed=True
    )
    watched.look(100)
    assert watched.told == [("a", "its supervisor did not come up: no PROMPT.md")]


def test_it_is_tried_more_and_more_seldom(watched):
    watched.look(100)
    pauses = [b - a for a, b in zip(watched.starts, watched.starts[1:], strict=False)]
    assert [one.total_seconds() for one in pauses][:7] == [15, 30, 45, 90, 165, 300, 300]


def test_a_reaction_in_the_log_counts_at_once(watched):
    """It may be an operator's order, or an action of the agent's supervisor."""
    watched.look(20)
    watched.store.submit("a", events.RestartRequested(ts=watched.clock()))
    assert watched.look() == WatchReport("a", started=True, words="its supervisor is gone")
    assert watched.look().failed
    assert len(watched.told) == 2


def test_one_that_lives_has_come_up(watched):
    """It may be silent, as in safe mode: a later kill is not a failed start."""
    watched.look(2)
    with watched.store.supervising("a"):
        assert watched.look() == WatchReport("a", started=False, words="running")
    assert watched.look() == WatchReport("a", started=True, words="its supervisor is gone")


def test_the_first_may_be_coming_up_just_now(watched):
    """Looked at by two, a moment apart: the second does not take it for dead."""
    watched.look()
    watched.clock.forward(seconds=-EVERY + 1)
    words = "its supervisor was started, but is not running yet"
    assert watched.look() == WatchReport("a", started=False, words=words)


def test_one_that_comes_up_while_it_is_looked_at_is_left_alone(watched, monkeypatch):
    """Its lock is taken after we looked for it, and before we read what it has written."""
    answers = iter([False, True])
    monkeypatch.setattr(watched.store, "is_supervised", lambda agent: next(answers))
    assert watched.look() == WatchReport("a", started=False, words="running")
    assert watched.starts == []


def test_a_note_that_cannot_be_read_is_none(watched):
    watched.store.folder("a").write_start_record(b"{")
    assert watched.look() == WatchReport("a", started=True, words="its supervisor is gone")


def test_what_a_persons_sessions_told_is_kept_now_and_every_few_hours(clock):
    store, kept = MemoryStore(clock=clock), []

    def archive(agent):
        kept.append(clock())
        if len(kept) == 2:
            raise StoreError("a", "the disk is full")

    around = WatchPorts(
        start=lambda agent: "",
        last_words=lambda agent: "",
        notify=lambda agent, words: [],
        clock=clock,
        archive=archive,
    )
    watching = Watchdog(store, around)
    told = events.SessionStarted(ts=clock(), session="s", harness="claude-code", transcript="/t")
    store.submit("a", policy.make_desired_event(store.read("a").projection.run, "stopped", clock()))
    watching.look(["a"])
    assert kept == [], "no session has told where its transcript is"
    watching = Watchdog(store, around)
    store.submit("a", told)
    watching.look(["a"])
    clock.forward(seconds=EVERY)
    watching.look(["a"])
    assert len(kept) == 1
    clock.forward(seconds=ARCHIVE_EVERY_SECONDS)
    (looked,) = watching.look(["a"])
    assert "its transcripts could not be archived: a: the disk is full" in looked.words
    clock.forward(seconds=ARCHIVE_EVERY_SECONDS)
    (looked,) = watching.look(["a"])
    assert "not kept" not in looked.words
    assert len(kept) == 3


class Briefed:
    """Two agents that have worked, and a watchdog that has their briefs written."""

    def __init__(self, clock, limits):
        self.clock, self.store, self.begun = clock, MemoryStore(clock=clock), []
        for agent in ("a", "b"):
            self.store.submit(
                agent,
                policy.make_desired_event(
                    self.store.read(agent).projection.run, "stopped", clock()
                ),
            )
            self.work(agent)
        around = WatchPorts(
            start=lambda agent: "",
            last_words=lambda agent: "",
            notify=lambda agent, words: [],
            clock=clock,
            briefs=BriefStarter(lambda: self.begun.append(clock()), UTC, limits),
        )
        self.watching = Watchdog(self.store, around)

    def work(self, agent):
        started = events.SessionStarted(ts=self.clock(), session="s", harness="claude-code")
        self.store.submit(agent, started)

    def write(self, agent, **more):
        with self.store.writer(agent) as writer:
            now = self.clock()
            writer.append(events.BriefMade(ts=now, morning=now.date().isoformat(), **more))

    def look(self, **later):
        self.clock.forward(**later)
        return [one.words for one in self.watching.look(["a", "b", "gone"])]


def test_briefs_that_are_due_are_begun_together_and_once(clock):
    world = Briefed(clock, BriefSettings(at="06:30"))
    assert not any("brief" in words for words in world.look())
    words = world.look(hours=19)
    assert [one.endswith("; a process is writing its brief") for one in words] == [
        True,
        True,
        False,
    ]
    assert len(world.begun) == 1
    world.look(seconds=EVERY)
    assert len(world.begun) == 1, "it is being written"
    world.write("a", closes=True)
    world.look(seconds=BRIEF_RETRY_SECONDS)
    assert len(world.begun) == 2, "nothing came of that of b"
    world.write("b", closes=True)
    world.look(hours=5)
    assert len(world.begun) == 2


def test_one_is_begun_at_the_end_of_each_session_where_that_is_wanted(clock):
    world = Briefed(clock, BriefSettings(at="never", on_session_end=True))
    for count in (1, 2):
        clock.forward(minutes=1)
        world.work("a")
        world.store.submit("a", events.SessionEnded(ts=clock() + timedelta(seconds=1), session="s"))
        world.look(seconds=EVERY)
        assert len(world.begun) == count
        world.write("a")
        world.look(seconds=EVERY)
        assert len(world.begun) == count


def test_a_watchdog_that_cannot_have_them_written_says_so_and_continues(clock):
    world = Briefed(clock, BriefSettings(at="06:30"))

    def fails():
        raise StoreError("briefs.log", "the disk is full")

    around = msgspec.structs.replace(world.watching._ports, briefs=BriefStarter(fails, UTC))
    world.watching = Watchdog(world.store, around)
    assert (
        "no process could be started to write its brief: briefs.log: the disk is full"
        in world.look(hours=19)[0]
    )
