"""kill -9 before every system call of a brief: the old one with the old state, or both new.

A brief resolves a loop, opens one, sets a number and notes how far it has read, in one write. After
the kill readers see all of that or none of it; the next brief ends in the state of one that was
never killed; and a resolution that another tool has appended is never lost.
"""

import json
import os
import random
import shutil
import sys

import pytest

from conftest import ManualClock
from copies import copy_project
from days import Shop, turn_of
from prerequisites import needs
from rekindle.documents import events
from rekindle.policy.briefs.claim_check import GitWork
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from torture.tracing import count, kill_before, obstacle

pytestmark = [
    pytest.mark.torture,
    needs(obstacle()),
]

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SAMPLE = 150
SAID = "empty-files is resolved"


def shop_at(folder):
    clock = ManualClock()
    clock.forward(hours=2)
    store = FileStore(folder, host="here", settings=Settings(), clock=clock)
    return Shop(store, clock, folder, work=GitWork(changed=("parser.py",)))


def answer(request):
    said = [turn_of(request.prompt, SAID)]
    return {
        "Changed": [{"text": "`parser.py` accepts empty files", "turns": said}],
        "open_loops": [{"id": "changelog", "text": "Its tests are not announced", "turns": said}],
        "resolved": [{"id": "empty-files", "reason": "the parser takes them", "turns": said}],
        "numbers": [{"name": "tests", "value": "3", "turns": said}],
    }


def prepared(folder):
    project = folder / "prepared"
    project.mkdir()
    clock = ManualClock()
    store = FileStore(project, host="here", settings=Settings(), clock=clock)
    store.create("trades")
    shop = Shop(store, clock, project)
    for identity, text in (("empty-files", "They are refused"), ("rate-limit", "How many?")):
        store.submit("trades", open_loops.propose_loop(shop.state.loops, identity, text, clock()))
    session = shop.session()
    session.says("I began with it.")
    shop.brief({"Changed": [{"text": "the work was begun", "turns": [1]}]})
    clock.forward(minutes=1)
    session.says(f"parser.py takes them now. {SAID}. It has 3 tests.")
    line = {"id": "rate-limit", "reason": "60", "ts": clock().isoformat()}
    with store.folder("trades").resolved.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return project


def seen(shop):
    """Return what readers see: the log, and brief.md as the next command repairs it."""
    state = shop.store.read("trades").committed
    return {
        "open": tuple(sorted(one.id for one in state.loops.values() if one.is_open)),
        "numbers": tuple(state.numbers),
        "told": state.briefed.seq,
        "brief": "accepts empty files" in shop.store.document("trades", "brief").decode(),
    }


def on_disk(project):
    """Return the two files as a plain reader sees them: brief.md is never behind state.json."""
    folder = shop_at(project).store.folder("trades")
    state = json.loads(folder.state.read_bytes())
    is_told = "accepts empty files" in folder.document("brief").read_text()
    return is_told, tuple(sorted(one["id"] for one in state["open_loops"]))


def writing(project):
    def work(say):
        shop_at(project).brief(answer, answer)
        say(b"done")

    return work


def test_a_kill_anywhere_leaves_the_old_or_the_new(tmp_path):
    first = prepared(tmp_path)
    old = seen(shop_at(first))
    copy = tmp_path / "copy"
    copy_project(first, copy)
    # A path of the same length: the archive notes where a transcript is.
    calls = count(writing(copy))
    new = seen(shop_at(copy))
    before, after = on_disk(first), on_disk(copy)
    assert old["open"] == ("empty-files", "rate-limit")
    assert new["open"] == ("changelog",)
    assert (old["brief"], new["brief"]) == (False, True)
    assert "tests" in new["numbers"]
    shutil.rmtree(copy)
    every = range(1, calls + 1)
    points = every if WHOLE else sorted(random.Random(7).sample(every, min(calls, SAMPLE)))
    killed, outcomes = 0, {"old": 0, "new": 0}
    for point in points:
        copy_project(first, copy)
        outcome = kill_before(writing(copy), point)
        killed += outcome.killed_at is not None
        raw = on_disk(copy)
        found = seen(shop_at(copy))
        assert found in (old, new), f"mixed at {point}: {found}"
        assert raw in (before, after, (after[0], before[1])), f"at {point}: {raw}"
        outcomes["old" if found == old else "new"] += 1
        require_healed(copy, new)
        shutil.rmtree(copy)
    print(f"\n{killed} kills at {calls} system calls of a brief: {outcomes}", file=sys.stderr)
    assert killed >= len(points) * 0.9
    assert min(outcomes.values()) > 0


def require_healed(project, new):
    """Check that the next brief ends like one that was never killed, without duplicates."""
    shop = shop_at(project)
    if seen(shop) == new:
        shop.brief()
    else:
        shop.brief(answer)
    found = seen(shop)
    assert {**found, "told": 0} == {**new, "told": 0}
    assert len(shop.log(events.LoopAdded)) == 3
    resolved = [one.id for one in shop.log(events.LoopResolved)]
    assert sorted(resolved) == ["empty-files", "rate-limit"]
    folder = shop.store.folder("trades")
    kept = [*folder.resolutions.iterdir(), *folder.path.glob(folder.resolved.name)]
    lines = [line for path in kept for line in path.read_text().splitlines()]
    assert sum('"seq"' in line for line in lines) == 2
    assert shop.store.inspect("trades") == []
