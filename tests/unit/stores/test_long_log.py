"""A log without a snapshot is read in batches: any length, little memory, the same result."""

import json
import subprocess
import sys

import msgspec
import pytest

from rekindle.documents import events
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files import store_reader as stores
from rekindle.stores.log import (
    event_log,
    view,
)
from rekindle.stores.log.log_acceptance import seal_log
from rekindle.system import clock as real_clock
from rekindle.system import host

MANIFEST = "version: 1\nagents: {trades: {harness: command, command: ['true']}}\n"


def add_loop(store, identity, clock):
    clock.forward(seconds=1)
    store.submit("trades", open_loops.propose_loop({}, identity, f"text of {identity}", clock()))


def resolve(store, identity, clock):
    clock.forward(seconds=1)
    known = store.read("trades").projection.loops
    store.submit("trades", open_loops.resolve_loop(known, identity, "done", clock()))


@pytest.fixture
def long(store, open_store, clock, monkeypatch):
    """A store that reads three events at a time, and the log of a store that read all at once."""
    for number in range(20):
        add_loop(store, f"l{number}", clock)
    resolve(store, "l3", clock)
    add_loop(store, "last", clock)
    store.folder("trades").snapshot.unlink(missing_ok=True)
    whole = open_store().read("trades")
    monkeypatch.setattr(event_log, "BATCH_EVENTS", 3)
    monkeypatch.setattr(view, "BATCH_EVENTS", 3)
    return store, whole


def test_batches_add_up_to_the_same(long, open_store):
    _, whole = long
    seen = open_store().read("trades")
    # The cursors of segments that are gone may be left out.
    assert seen.committed.cursors.items() <= whole.committed.cursors.items()
    cursors = seen.committed.cursors
    assert seen.committed == msgspec.structs.replace(whole.committed, cursors=cursors)
    assert (seen.end, seen.gen, seen.anchor) == (whole.end, whole.gen, whole.anchor)
    assert 3 <= len(seen.tail) <= 6 < len(whole.tail)
    assert seen.start.seq + len(seen.tail) == seen.committed.seq


def test_losses_are_found_in_every_batch(long, open_store):
    store, _ = long
    path = store.folder("trades").log
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:9] + lines[10:]))
    seal_log(store.folder("trades"))
    found = open_store().read("trades").committed.loss
    assert (found.after, found.before) == (9, 11)


def test_a_resolution_of_a_dropped_batch_still_reaches_its_file(long, open_store):
    """The writer was killed before it could append to resolved.jsonl."""
    store, _ = long
    with store.writer("trades") as writer:
        writer.append(*[events.Heartbeat(ts=store._clock())] * 9)
    folder = store.folder("trades")
    folder.resolved.unlink()
    folder.snapshot.unlink(missing_ok=True)
    with open_store().writer("trades") as writer:
        writer.fold()
    (line,) = folder.resolved.read_text().splitlines()
    assert json.loads(line)["id"] == "l3"


def test_an_edit_of_the_state_is_still_compared_with_its_own_time(long, open_store, clock):
    """A loop that was resolved after the file was saved is not opened again by it."""
    store, _ = long
    folder = store.folder("trades")
    edited = json.loads(folder.state.read_bytes())
    edited["open_loops"].append({"id": "by-hand", "text": "more", "added": "2026-04-09"})
    inbox = [
        open_loops.resolve_loop(store.read("trades").projection.loops, "last", "done", clock())
    ]
    stores.inbox.append_records(folder.inbox, inbox, durable=True)
    folder.state.write_text(json.dumps(edited))
    folder.snapshot.unlink(missing_ok=True)
    with open_store().writer("trades") as writer:
        writer.fold()
    known = open_store().read("trades").committed.loops
    assert known["by-hand"].is_open
    assert not known["last"].is_open


def test_a_reader_of_a_long_log_keeps_a_snapshot(long, open_store, monkeypatch):
    """Without the writer's lock, or for another host, it keeps none."""
    store, whole = long
    folder = store.folder("trades")
    monkeypatch.setattr(stores, "COLD_LOG_BYTES", 1)
    open_store("elsewhere").read("trades")
    with stores.file_locks.hold_lock(folder.lock, 0.0):
        open_store().read("trades")
    assert not folder.snapshot.exists()
    open_store().read("trades")
    again = open_store().read("trades")
    assert again.snapshot_end == whole.end
    assert again.committed.loops == whole.committed.loops
    assert again.committed.seq == whole.committed.seq


def make_project(folder, size):
    """Create a project whose only agent has a log of this many heartbeats, and no snapshot."""
    folder.mkdir()
    (folder / "rekindle.yaml").write_text(MANIFEST)
    store = FileStore(
        folder, host=host.identify_host(), settings=Settings(), clock=real_clock.read_clock
    )
    store.create("trades")
    beat = events.Heartbeat(
        ts=real_clock.read_clock(), gen=1, seq=2, session="s", call="call-2", at="2:9"
    )
    before, after = events.render(beat).split(b'"seq":2')
    with store.folder("trades").log.open("ab", buffering=1 << 20) as file:
        for number in range(2, size + 2):
            name = b"%08d" % number
            line = after.replace(b"call-2", b"call-" + name).replace(b'"2:9"', b'"%s:9"' % name)
            file.write(b'%s"seq":%d%s\n' % (before, number, line))
    seal_log(store.folder("trades"))
    return folder


STATUS = """
import sys
from rekindle.cli.main import run
code = run(["status", "--json"])
with open("/proc/self/status") as file:
    print(next(line for line in file if line.startswith("VmHWM")).split()[1], file=sys.stderr)
sys.exit(code)
"""


def peak_of_status(folder, size):
    """Return the largest memory of `rekindle status`, in KiB; rusage would count our own."""
    command = [sys.executable, "-P", "-c", STATUS]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=60)
    assert msgspec.json.decode(done.stdout)["agents"][0]["at"] == size + 1
    return int(done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's own peak")
def test_the_memory_of_a_cold_status_does_not_grow_with_the_log(tmp_path):
    """Ten times the events take a fifth more memory at most; all of them at once took 3 times."""
    small = peak_of_status(make_project(tmp_path / "small", 10_000), 10_000)
    large = peak_of_status(make_project(tmp_path / "large", 100_000), 100_000)
    print(f"10,000 events {small:,} KiB, 100,000 events {large:,} KiB: {large / small:.2f} times")
    assert large / small < 1.2
