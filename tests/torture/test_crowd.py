"""Many writers at once: nothing that was acknowledged is lost."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
import pytest

from rekindle.documents import events, state
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.log import inbox
from rekindle.system import clock
from sampling import WHOLE

WRITERS = 64
EACH = 200
TURNS = 5 if WHOLE else 2
"""The number of loops of each shell; each loop is two commands."""


@pytest.fixture
def shared(tmp_path) -> FileStore:
    """A store on the real clock, for writers that run at once."""
    made = FileStore(tmp_path, host="here", settings=Settings(), clock=clock.read_clock)
    made.create("trades")
    return made


def test_sixty_four_writers_lose_nothing(shared):
    """64 writers, 200 heartbeats and resolutions each, folded meanwhile: every one arrives once."""
    folder = shared.folder("trades").inbox
    start = clock.read_clock()
    opened = [
        events.LoopAdded(ts=start, id=f"w{writer}-{number}", text="to be resolved")
        for writer in range(WRITERS)
        for number in range(0, EACH, 2)
    ]
    inbox.append_records(folder, opened, durable=True)
    with shared.writer("trades") as writer:
        writer.fold()  # earlier records must not take up the time of the race
    done, has_folded = threading.Event(), threading.Event()
    ready = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        ready.wait()
        for number in range(EACH):
            if number == EACH - 1:
                # A busy machine may let all of them write before the one that folds has its turn.
                assert has_folded.wait(120)
            ts = clock.read_clock() + timedelta(microseconds=1)
            if number % 2:
                beat = events.Heartbeat(ts=ts, session=f"w{writer}", tool=f"t{number}")
                inbox.append_records(folder, [beat], durable=False)
            else:
                resolved = events.LoopResolved(ts=ts, id=f"w{writer}-{number}", reason="done")
                inbox.append_records(folder, [resolved], durable=True)

    def keep_folding() -> int:
        folds = 0
        while not done.is_set():
            with shared.writer("trades", wait=10) as writer:
                writer.fold()
            folds += 1
            if folds > 1:
                has_folded.set()
        return folds

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        folding = pool.submit(keep_folding)
        for result in [pool.submit(write, number) for number in range(WRITERS)]:
            result.result()
        done.set()
        folds = folding.result()
    with shared.writer("trades") as writer:
        writer.fold()
    log = shared.events_since("trades", 0).events
    beats = [(one.session, one.tool) for one in log if isinstance(one, events.Heartbeat)]
    assert len(beats) == len(set(beats)) == WRITERS * EACH // 2
    final = shared.read("trades").committed
    assert all(not loop.is_open for loop in final.loops.values())
    assert len(final.loops) == WRITERS * EACH // 2
    lines = shared.folder("trades").resolved.read_bytes().splitlines()
    assert len({msgspec.json.decode(line)["id"] for line in lines}) == len(lines) == len(opened)
    assert final.last_active == max(one.ts for one in log if isinstance(one, events.Heartbeat))
    assert folds > 1, "nothing was folded while they wrote: the race was not there"
    print(f"\n{WRITERS} writers x {EACH}: {len(beats) + len(opened)} kept, 0 lost, {folds} folds")


def test_sixteen_commands_at_a_time_lose_nothing(tmp_path):
    """16 shells, all at once: every loop is opened and resolved."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def rekindle(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rekindle", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )

    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    rekindle("init", "--yes", "--agent", "trades", "--harness", "command")
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(f"{manifest.read_text()}    command: 'true'\n")

    def shell(number: int) -> None:
        for turn in range(TURNS):
            rekindle("loops", "add", f"s{number}-{turn}", "text")
            rekindle("resolve", f"s{number}-{turn}", "done")

    with ThreadPoolExecutor(16) as pool:
        for result in [pool.submit(shell, number) for number in range(16)]:
            result.result()
    rekindle("doctor", "--fix")
    found = msgspec.json.decode(rekindle("loops", "--json").stdout)
    assert found["open"] == []
    assert {one["id"] for one in found["resolved"]} == {
        f"s{number}-{turn}" for number in range(16) for turn in range(TURNS)
    }
    kept = state.parse((tmp_path / ".rekindle/agents/trades/state.json").read_bytes())
    assert len(kept.resolved) == 16 * TURNS


def test_readers_never_see_less_than_was_acknowledged(shared):
    """While a fold moves records from inbox to log, every read holds all that came before it."""
    folder = shared.folder("trades").inbox
    acknowledged: list[str] = []
    done = threading.Event()
    missing: list[str] = []

    def read() -> int:
        reads = 0
        while not done.is_set():
            before = list(acknowledged)
            seen = shared.read("trades").projection.loops
            missing.extend(identity for identity in before if identity not in seen)
            reads += 1
        return reads

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        for number in range(150):
            record = open_loops.propose_loop({}, f"l{number}", "text", clock.read_clock())
            assert record
            inbox.append_records(folder, [record], durable=True)
            acknowledged.append(record.id)
            if number % 3 == 0:
                with shared.writer("trades") as writer:
                    writer.fold()
        done.set()
        reads = reading.result()
    assert missing == []
    assert reads > 10, "hardly anything was read while it was written"
