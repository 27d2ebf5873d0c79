"""Resolutions, heartbeats and briefs at once, in one process: none of the operations is lost.

CI makes two thousand operations, and `just torture` ten thousand.

The model behind the briefs is the most careless there is: it lists every loop that it was ever
shown as open, and calls all of them resolved, naming turns that say nothing of the kind.
"""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from days import NOTHING, Shop
from rekindle.documents import events
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.errors import BusyError
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.log import inbox
from rekindle.system import clock
from sampling import examples

pytestmark = pytest.mark.torture

BEATERS, BEATS = 8, examples(1_150)
LOOPS = examples(390)
"""Opened and resolved, one by one: two operations each."""
BRIEFS = examples(40)


class Clock:
    """The real one; a test's session moves it and nothing happens."""

    def __call__(self):
        return clock.read_clock()

    def forward(self, **_amount):
        pass


class Careless:
    def __init__(self):
        self.shown = {}

    def __call__(self, request):
        found = re.findall(r"^\| open: ([\w-]+): (.*) \(since", request.prompt, re.MULTILINE)
        self.shown |= dict(found)
        turns = [request.turns[-1].number]
        items = [{"id": one, "text": text, "turns": turns} for one, text in self.shown.items()]
        done = [{"id": one, "reason": "done", "turns": turns} for one in self.shown]
        return OneShotAnswer(
            json.dumps({**NOTHING, "open_loops": items[-40:], "resolved": done[-40:]})
        )


class Race:
    def __init__(self, folder):
        self.store = FileStore(folder, host="here", settings=Settings(), clock=clock.read_clock)
        self.store.create("trades")
        self.shop, self.model = Shop(self.store, Clock(), folder), Careless()
        self.session = self.shop.session()
        self.folder = self.store.folder("trades")
        self.over = threading.Event()

    def run(self):
        with ThreadPoolExecutor(BEATERS + 2) as pool:
            running = [pool.submit(self.beat, who) for who in range(BEATERS)]
            running += [pool.submit(self.resolve), pool.submit(self.write)]
            return sum(one.result() for one in running)

    def beat(self, who):
        for number in range(BEATS):
            one = events.Heartbeat(
                ts=clock.read_clock(), session=f"b{who}", call=f"c{number}", tool="t"
            )
            inbox.append_records(self.folder.inbox, [one], durable=False)
        return BEATS

    def resolve(self):
        for number in range(LOOPS):
            name = f"loop-{number}"
            self.hand_in(
                events.LoopAdded(ts=clock.read_clock(), id=name, text=f"item {number} of these")
            )
            # An acknowledged loop is there at once.
            known = self.store.read("trades").projection.loops
            assert known[name].is_open
            if number % 3:
                self.hand_in(
                    open_loops.resolve_loop(known, name, f"reason {number}", clock.read_clock())
                )
            else:
                self.hand_in(
                    events.Heartbeat(ts=clock.read_clock(), session="r", call=f"r{number}")
                )
        self.over.set()
        return LOOPS * 2

    def hand_in(self, event):
        """Submit a record as a command does; the next writer folds it."""
        inbox.append_records(self.folder.inbox, [event], durable=True)

    def write(self):
        made = 0
        while made < BRIEFS or not self.over.is_set():
            self.session.says(f"I looked around, for the {made}th time.")
            try:
                self.shop.writing(self.model).write()
            except BusyError:
                continue
            made += 1
        return made


def test_thousands_of_operations_lose_nothing(tmp_path):
    race = Race(tmp_path)
    operations = race.run()
    with race.store.writer("trades") as writer:
        writer.fold()
    log = race.shop.log()
    beats = [(one.session, one.call) for one in log if isinstance(one, events.Heartbeat)]
    assert len(beats) == len(set(beats)) == BEATERS * BEATS + LOOPS // 3
    final = race.store.read("trades").committed.loops
    is_open = {name: loop.is_open for name, loop in final.items()}
    assert is_open == {f"loop-{number}": number % 3 == 0 for number in range(LOOPS)}
    kept = [*race.folder.resolutions.iterdir(), *race.folder.path.glob("resolved.jsonl")]
    lines = [json.loads(line)["id"] for path in kept for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(name for name, opened in is_open.items() if not opened)
    assert race.store.inspect("trades") == []
    briefs = race.shop.log(events.BriefMade)
    print(f"\n{operations} operations, {len(briefs)} briefs among them: nothing lost")
    assert operations >= examples(10_000)
