"""Clocks that jump, and two hosts on one folder with no lock between them."""

import fcntl
import os
import random
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import ManualClock
from rekindle import config
from rekindle.cli import main
from rekindle.documents import relay
from rekindle.errors import OwnershipError, RekindleError
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.wiring.open_store import open_store

pytestmark = pytest.mark.torture

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
HISTORIES = 200 if WHOLE else 5
STEPS = 25
DAY = 86_400
JUMPS = [0.001, 1, -1, 60, -60, 3_600, -3_600, DAY, -DAY, 400 * DAY, -400 * DAY, 7_000 * DAY]
"""In seconds; the last is a battery that was empty and is not."""
EARLIEST, LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2105, 1, 1, tzinfo=UTC)
RELAY = "## Next Action\nDo number {}\n"


class JumpingClock:
    """A wall clock that jumps each time it is read, also within a command."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._time = datetime(2026, 4, 9, tzinfo=UTC)
        self.back = 0

    def now(self) -> datetime:
        jump = timedelta(seconds=self._rng.choice(JUMPS))
        after = self._time + jump
        if not EARLIEST < after < LATEST:
            after = self._rng.choice([EARLIEST, datetime(2026, 4, 9, tzinfo=UTC)])
        self.back += after < self._time
        self._time = after
        return after

    def time_ns(self) -> int:
        return int(self.now().timestamp() * 1e9)


def test_a_clock_that_jumps_loses_and_revives_nothing(in_memory, monkeypatch, capsys):
    """It jumps by seconds to decades, both ways; the last acknowledged command counts."""
    jumps_back = 0
    for seed in range(HISTORIES):
        project = in_memory / str(seed)
        project.mkdir()
        (project / "rekindle.yaml").write_text(
            "version: 1\nagents:\n  a: {harness: command, command: 'true'}\n"
        )
        (project / "PROMPT.md").write_text("Ship it.\n")
        monkeypatch.chdir(project)
        jumping = JumpingClock(seed)
        monkeypatch.setattr(clock, "read_clock", jumping.now)
        monkeypatch.setattr(inbox.time, "time_ns", jumping.time_ns)
        live_through(project, seed)
        jumps_back += jumping.back
    capsys.readouterr()
    assert jumps_back > HISTORIES * STEPS, "the clock hardly jumped"


def live_through(project: Path, seed: int) -> None:
    """Random commands; after each, the store says what the last of them said."""
    rng = random.Random(seed)
    opened: dict[str, bool] = {}
    said = ""
    for step in range(STEPS):
        where = f"seed {seed}, step {step}"
        identity = f"l{rng.randrange(4)}"
        match rng.choice(["add", "add", "resolve", "relay", "fold", "look"]):
            case "add":
                command = ["loops", "add", identity, f"text {step}"]
                opened[identity] = True
            case "resolve" if identity in opened:
                command = ["resolve", identity, "done"]
                opened[identity] = False
            case "relay":
                said = RELAY.format(step)
                (project / "relay.md").write_text(said)
                command = ["relay", "set", "relay.md"]
            case "fold":
                command = ["doctor", "--fix"]
            case _:
                command = ["status"]
        assert main.run(command) == 0, f"{where}: {command}"
        store = open_store(config.load_project(project))
        if store.exists("a"):
            seen = store.read("a")
            found = {one: loop.is_open for one, loop in seen.projection.loops.items()}
            assert found == opened, f"{where}: {command}"
            assert (store.document("a", "relay") or b"").decode() == said, where
            assert seen.pending == (), where
            numbers = [event.seq for event in store.events_since("a", 0).events]
            assert numbers == list(range(1, len(numbers) + 1)), where


class Interrupted:
    """Run another host's work at the n-th disk access of ours."""

    OPERATIONS = (
        "append_durably",
        "path_exists",
        "make_folder",
        "read_bytes",
        "replace_file",
        "sync_descriptor",
    )

    def __init__(self, at: int, others: Callable[[], None]) -> None:
        self._at = at
        self._others = others
        self._count = 0
        self._is_watching = False

    @property
    def happened(self) -> bool:
        return self._count >= self._at

    @contextmanager
    def watching(self):
        with pytest.MonkeyPatch.context() as patch:
            for name in self.OPERATIONS:
                patch.setattr(durable_files, name, self._wrapped(getattr(durable_files, name)))
            self._is_watching = True
            yield
            self._is_watching = False

    def _wrapped(self, operation):
        def operate(*args, **options):
            if self._is_watching:
                self._count += 1
                if self._count == self._at:
                    self._is_watching = False
                    self._others()
                    self._is_watching = True
            return operation(*args, **options)

        return operate


class Host:
    """One of two hosts, with a clock of its own, that share a folder and no lock."""

    def __init__(self, folder: Path, name: str, skew: timedelta) -> None:
        self.clock = ManualClock()
        self.clock.time += skew
        self.store = FileStore(folder, host=name, settings=Settings(), clock=self.clock)

    def add(self, identity: str, *, take_over: bool = False) -> None:
        self.clock.forward(seconds=1)
        known = self.store.read("a").projection.loops if self.store.exists("a") else {}
        record = open_loops.propose_loop(known, identity, "text", self.clock())
        assert record
        self.store.submit("a", record, take_over=take_over)

    def commit(self, text: str) -> None:
        with self.store.writer("a") as writer:
            writer.fold()
            writer.commit_relay(relay.parse(text), by="agent")
            writer.snapshot()


WORKS: dict[str, Callable[[Host], None]] = {
    "submit": lambda host: host.add("late"),
    "commit": lambda host: host.commit(RELAY.format("late")),
}


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("skew", [timedelta(0), timedelta(days=-2), timedelta(days=2)])
def test_a_take_over_at_any_moment_costs_the_new_owner_nothing(in_memory, monkeypatch, name, skew):
    """Wherever the old host is, what the new one acknowledges stays, and the old is refused."""
    monkeypatch.setattr(fcntl, "flock", lambda _fd, _how: None)
    at, refused = 0, 0
    while True:
        at += 1
        folder = in_memory / str(at)
        folder.mkdir()
        old, new = Host(folder, "old", timedelta(0)), Host(folder, "new", skew)
        old.add("first")
        interrupted = Interrupted(at, lambda new=new: new.add("taken", take_over=True))
        where = f"{name}, taken over at the {at}. operation"
        with interrupted.watching():
            try:
                WORKS[name](old)
            except RekindleError:
                refused += 1
        if not interrupted.happened:
            break
        still_the_owner_s(new, old, where)
    assert at > 20, "hardly any moment was tried"
    assert refused > 5, "the old host was hardly ever refused"
    print(f"\n{name}, clocks apart by {skew}: {at - 1} moments, {refused} refused, 0 lost")


def still_the_owner_s(new: Host, old: Host, where: str) -> None:
    """Check that the new owner continues undisturbed and the old owner is refused."""
    seen = new.store.read("a").projection.loops
    assert {"first", "taken"} <= set(seen), f"{where}: acknowledged, but lost"
    new.add("next")
    new.commit(RELAY.format("next"))
    with pytest.raises(OwnershipError):
        old.add("refused")
    after = new.store.read("a")
    assert {"first", "taken", "next"} <= set(after.committed.loops), f"{where}: lost later"
    assert "refused" not in after.projection.loops, f"{where}: the old host was heard"
    assert new.store.document("a", "relay") == RELAY.format("next").encode(), where
    problems = [one.what for one in new.store.inspect("a") if not one.is_note]
    assert problems == [], f"{where}: {problems}"


def test_two_hosts_that_take_the_agent_from_each_other(in_memory, monkeypatch):
    """In random turns, the owner loses nothing and the other host is refused."""
    monkeypatch.setattr(fcntl, "flock", lambda _fd, _how: None)
    for seed in range(HISTORIES):
        rng = random.Random(seed)
        folder = in_memory / str(seed)
        folder.mkdir()
        hosts = [Host(folder, "one", timedelta(0)), Host(folder, "two", timedelta(days=-3))]
        hosts[0].add("begun")
        owner, acknowledged = 0, {"begun"}
        for step in range(STEPS):
            turn, takes = rng.randrange(2), rng.random() < 0.3
            if turn == owner or takes:
                hosts[turn].add(f"s{step}", take_over=takes)
                owner = turn
                acknowledged.add(f"s{step}")
            else:
                with pytest.raises(OwnershipError):
                    hosts[turn].add(f"s{step}")
            found = set(hosts[turn].store.read("a").projection.loops)
            assert found == acknowledged, f"seed {seed}, step {step}"
