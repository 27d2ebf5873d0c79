"""Random histories: commands, edits by hand, crashes, copies and a clock that jumps.

After every step the store is compared with the simplest possible model: for each loop, whether the
last acknowledged command opened or closed it. Each failure names the seed that repeats it.
"""

import os
import random
import shutil

import msgspec
import pytest

from conftest import ManualClock
from rekindle.documents import events
from rekindle.errors import BusyError
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files.writer import Writer
from rekindle.stores.log import inbox

pytestmark = pytest.mark.torture

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
HISTORIES = 600 if WHOLE else 15
STEPS = 40


class World:
    """A store, and what it has been told."""

    def __init__(self, folder, seed):
        self.rng = random.Random(seed)
        self.clock = ManualClock()
        self.store = FileStore(folder, host="here", settings=Settings(), clock=self.clock)
        self.store.create("a")
        self.opened: dict[str, bool] = {}
        self.numbers: dict[str, str] = {}
        self.count = 0

    @property
    def folder(self):
        return self.store.folder("a")

    def name(self):
        return f"l{self.rng.randrange(6)}"

    def known(self):
        return self.store.read("a").projection.loops

    def add(self, hand_in):
        identity, self.count = self.name(), self.count + 1
        self.store.adopt_edits("a")
        event = open_loops.propose_loop(self.known(), identity, f"text {self.count}", self.clock())
        hand_in(event)
        self.opened[identity] = True

    def resolve(self, hand_in):
        self.store.adopt_edits("a")
        found = [identity for identity, is_open in self.opened.items() if is_open]
        if found:
            identity = self.rng.choice(found)
            hand_in(open_loops.resolve_loop(self.known(), identity, "done", self.clock()))
            self.opened[identity] = False

    def at_once(self, event):
        assert self.store.submit("a", event)

    def while_busy(self, event):
        self.folder.make()
        with self.store.writer("a"):
            inbox.append_records(self.folder.inbox, [event], durable=True)

    def into_a_crash(self, event):
        """Killed between the log and the files that are made from it."""

        def killed(_writer):
            raise KeyboardInterrupt

        self.folder.make()
        with pytest.MonkeyPatch.context() as dying:
            inbox.append_records(self.folder.inbox, [event], durable=True)
            dying.setattr(Writer, "project", killed)
            with pytest.raises(KeyboardInterrupt), self.store.writer("a"):
                pass

    def command(self):
        hand_in = self.rng.choice([self.at_once, self.while_busy, self.into_a_crash])
        self.rng.choice([self.add, self.resolve])(hand_in)

    def edit(self):
        """Save state.json by hand: a number, a new loop, another wording."""
        if not self.folder.state.exists():
            return
        raw = msgspec.json.decode(self.folder.state.read_bytes())
        kind = self.rng.randrange(3)
        if kind == 0:
            self.count += 1
            raw["numbers"]["n"] = self.numbers["n"] = str(self.count)
        elif kind == 1:
            self.count += 1
            raw["open_loops"].append({"id": f"hand-{self.count}", "text": "by hand"})
            self.opened[f"hand-{self.count}"] = True
        elif raw["open_loops"]:
            self.count += 1
            raw["open_loops"][0]["text"] = f"reworded {self.count}"
        self.folder.state.write_bytes(msgspec.json.encode(raw))
        moment = self.clock().timestamp()
        os.utime(self.folder.state, (moment, moment))

    def fold(self):
        with self.store.writer("a") as writer:
            writer.fold()
            if self.rng.random() < 0.3:
                writer.snapshot()

    def lose_run(self):
        if not self.store.read("a").pending:
            shutil.rmtree(self.folder.run, ignore_errors=True)

    def jump(self):
        self.clock.forward(seconds=self.rng.choice([1, 1, 5, 3_600, -30, -7_200]))

    def beat(self):
        self.folder.make()
        inbox.append_records(self.folder.inbox, [events.Heartbeat(ts=self.clock())], durable=False)

    def step(self):
        commands = [self.command] * 3
        others = [self.edit, self.fold, self.lose_run, self.jump, self.jump, self.beat]
        self.rng.choice(commands + others)()

    def check(self, where):
        seen = self.store.read("a").projection.loops
        if not self.store.has_edited_state("a"):
            found = {identity: loop.is_open for identity, loop in seen.items()}
            assert found == self.opened, where
        assert self.store.events_since("a", 0).bad == [], where


@pytest.mark.parametrize("part", range(5))
def test_no_history_loses_or_revives_anything(tmp_path, part):
    """In any order, the last acknowledged command on each loop counts."""
    for number in range(HISTORIES):
        seed = part * 10_000 + number
        (tmp_path / str(seed)).mkdir()
        world = World(tmp_path / str(seed), seed)
        for step in range(STEPS):
            world.step()
            world.clock.forward(milliseconds=1)
            world.check(f"seed {seed}, step {step}")
        world.fold()
        world.check(f"seed {seed}, at the end")
        numbers = world.store.read("a").committed.numbers
        assert {key: said.value for key, said in numbers.items()} == world.numbers, f"seed {seed}"
        shutil.rmtree(tmp_path / str(seed))


def test_a_busy_agent_is_told_apart_from_a_broken_one(tmp_path):
    """The histories above rest on it: a writer that is refused is refused by name."""
    world = World(tmp_path, 0)
    with world.store.writer("a"), pytest.raises(BusyError), world.store.writer("a", wait=0.01):
        pass
