"""The supervisor's two locks, and what it notices about its folder."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from rekindle.documents import events
from rekindle.errors import FolderLostError, OwnershipError, StoreError, SupervisedError
from rekindle.flows.operator.stop_agent import AgentStopper
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import (
    FileStore,
    supervisor_locks,
)
from rekindle.stores.folders.agent_folder import REKINDLE_FOLDER
from rekindle.stores.log import event_log
from rekindle.system.files import file_locks
from rekindle.system.processes import lock_holder
from rekindle.system.processes.stop_signals import STOP_SIGNAL


def say(store, desired, clock):
    clock.forward(seconds=1)
    return policy.make_desired_event(store.read("trades").projection.run, desired, clock())


def test_a_wiped_folder_has_no_second_supervisor(store, open_store, tmp_path):
    """The lock in the folder is gone with it; the one outside is not."""
    with store.supervising("trades"):
        shutil.rmtree(tmp_path / REKINDLE_FOLDER)
        other = open_store()
        other.create("trades")
        assert not file_locks.is_locked(other.folder("trades").supervisor)
        assert other.is_supervised("trades")
        assert other.has_lost_folder("trades")
        with pytest.raises(SupervisedError), other.supervising("trades"):
            pass
    assert not open_store().is_supervised("trades")
    with open_store().supervising("trades"):
        pass


def test_a_renamed_and_a_linked_project_have_the_same_lock(store, tmp_path, clock):
    """The device and inode of the folder decide, not its path."""
    moved, link = tmp_path.with_name("moved"), tmp_path.with_name("link")
    link.symlink_to(tmp_path)

    def of(path):
        return FileStore(path, host="here", settings=store._settings, clock=clock)

    try:
        with store.supervising("trades"):
            assert of(link).is_supervised("trades")
            with pytest.raises(SupervisedError), of(link).supervising("trades"):
                pass
            tmp_path.rename(moved)
            assert of(moved).is_supervised("trades")
            with pytest.raises(SupervisedError), of(moved).supervising("trades"):
                pass
            assert not of(moved).is_supervised("another")
    finally:
        moved.rename(tmp_path)
        link.unlink()


def wipe(folder):
    shutil.rmtree(folder.path.parents[1])


def remove_lock(folder):
    folder.supervisor.unlink()


def replace_log(folder):
    data = folder.log.read_bytes()
    folder.log.unlink()
    folder.log.write_bytes(data)


def shorten_log(folder):
    data = folder.log.read_bytes().splitlines(keepends=True)
    os.truncate(folder.log, len(b"".join(data[:-1])))


def rewrite_log(folder):
    data = folder.log.read_bytes()
    with folder.log.open("r+b") as log:
        log.write(data.replace(b"trades", b"trunks"))


def link_instead(folder):
    root = folder.path.parents[1]
    root.rename(root.with_name("elsewhere"))
    root.symlink_to("elsewhere")


def remove_outer_lock(folder):
    supervisor_locks.find_outer_lock(folder.path.parents[2], folder.name).path.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        wipe,
        remove_lock,
        remove_outer_lock,
        replace_log,
        shorten_log,
        rewrite_log,
        link_instead,
    ],
)
def test_a_supervisor_notices_that_its_folder_is_another(store, clock, damage):
    """It neither reads nor writes there any more, and makes nothing of it again."""
    folder = store.folder("trades")
    store.submit("trades", say(store, "running", clock))
    with store.supervising("trades"):
        store.read("trades")
        store.check_supervision("trades")
        damage(folder)
        before = sorted(folder.path.parents[2].rglob("*"))
        for use in (store.check_supervision, store.read, store.create):
            with pytest.raises(FolderLostError) as lost:
                use("trades")
            assert lost.value.exit_code == 12
            assert "rekindle up trades" in lost.value.hint
        assert sorted(folder.path.parents[2].rglob("*")) == before


def test_a_growing_log_is_the_same_log(store, open_store, clock):
    """Lines appended by commands and hooks are not damage."""
    with store.supervising("trades"):
        for _ in range(3):
            other = open_store()
            other.submit("trades", say(other, "running", clock))
            store.check_supervision("trades")
            assert store.read("trades").committed.run.desired == "running"


def test_another_thread_may_read_a_growing_log_during_a_check(
    store, open_store, clock, monkeypatch
):
    compute = event_log.compute_anchor

    def compute_slowly(path, end):
        monkeypatch.setattr(event_log, "compute_anchor", compute)
        anchor = compute(path, end)
        open_store().submit("trades", say(store, "running", clock))
        store.read("trades")
        return anchor

    with store.supervising("trades"):
        store.submit("trades", say(store, "running", clock))
        store.read("trades")
        monkeypatch.setattr(event_log, "compute_anchor", compute_slowly)
        store.check_supervision("trades")
        assert event_log.compute_anchor is compute, "nothing happened during the check"


def test_a_cycle_ends_once(store, clock):
    with store.writer("trades") as writer:
        writer.append(events.CycleStarted(ts=clock(), cycle=1))
        writer.append(events.CycleEnded(ts=clock(), cycle=1))
        size = store.folder("trades").log.stat().st_size
        with pytest.raises(OwnershipError, match="already has the end of cycle 1"):
            writer.append(events.CycleEnded(ts=clock(), cycle=1))
        assert store.folder("trades").log.stat().st_size == size
        writer.append(events.CycleStarted(ts=clock(), cycle=2))
        writer.append(events.CycleEnded(ts=clock(), cycle=2))


def test_a_cycle_ends_once_also_beside_an_older_snapshot(store, open_store, clock):
    """The log's own lines decide: a projection of something older misses them."""
    with store.writer("trades") as writer:
        writer.append(events.CycleStarted(ts=clock(), cycle=1))
        older = writer.projection
        writer.append(events.CycleEnded(ts=clock(), cycle=1))
        writer.projection = older
        with pytest.raises(OwnershipError, match="already has the end of cycle"):
            writer.append(events.CycleEnded(ts=clock(), cycle=1))


def test_a_stop_that_no_folder_could_take_counts_and_is_recorded_later(store, open_store, clock):
    """Readers lay it over the log; the next writer records it; a later command outranks it."""
    store.submit("trades", say(store, "running", clock))
    before = store.stamp("trades")
    store.note_stop("trades", say(store, "stopped", clock))
    assert store.stamp("trades") != before
    seen = open_store().read("trades")
    assert (seen.committed.run.desired, seen.projection.run.desired) == ("running", "stopped")
    with open_store().writer("trades") as writer:
        writer.fold()
    assert open_store().read("trades").committed.run.desired == "stopped"
    lines = store.folder("trades").log.read_bytes().count(b'"desired.set"')
    with open_store().writer("trades") as writer:
        writer.fold()
    assert store.folder("trades").log.read_bytes().count(b'"desired.set"') == lines
    other = open_store()
    other.submit("trades", say(other, "running", clock))
    assert other.read("trades").projection.run.desired == "running"


HOLDER = """
import signal, sys, time
from pathlib import Path
from rekindle.stores.files import supervisor_locks
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
with supervisor_locks.find_outer_lock(Path(sys.argv[1]), "trades").hold(1.0):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_holder_is_signalled_and_no_other_process(tmp_path):
    """Its number, start and boot, and that it has the lock's file open, must all fit."""
    lock = supervisor_locks.find_outer_lock(tmp_path, "trades")
    assert not lock.signal_holder()
    held = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert held.stdout.readline() == "held\n"
        process = lock.path.read_bytes()[:256].strip().decode()
        pid, start, *rest = process.split(".")
        assert int(pid) == held.pid
        older = ".".join([pid, str(int(start) - 1), *rest])
        assert not lock_holder.signal_holder(older, lock.path, STOP_SIGNAL)
        assert not lock_holder.signal_holder(process, tmp_path, STOP_SIGNAL)
        assert not lock_holder.signal_holder("", lock.path, STOP_SIGNAL)
        assert held.poll() is None
        assert lock.signal_holder()
        assert held.wait(30) == 7
    finally:
        held.kill()
        held.wait()
        held.stdout.close()
    deadline = time.monotonic() + 10
    while lock.is_held() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lock.signal_holder()
    assert signal.SIGUSR1 == STOP_SIGNAL


def test_two_hosts_that_share_a_home_have_two_locks(tmp_path, monkeypatch):
    """Devices and inodes are numbered by each host: folders of two hosts may have the same."""
    here = supervisor_locks.find_outer_lock(tmp_path, "trades")
    with here.hold(1.0):
        assert set(supervisor_locks.list_held_locks(tmp_path)) == {"trades"}
        supervisor_locks._identify_host.cache_clear()
        monkeypatch.setattr(supervisor_locks.host, "identify_host", lambda: "other")
        there = supervisor_locks.find_outer_lock(tmp_path, "trades")
        assert there.path.parent == here.path.parent
        assert not there.is_held()
        assert supervisor_locks.list_held_locks(tmp_path) == {}
    supervisor_locks._identify_host.cache_clear()


def test_a_stop_ends_though_the_disk_of_the_folder_fails_meanwhile(store, clock, monkeypatch):
    """The lock outside is on another disk: it tells whether the supervisor has ended."""
    stopping, signalled = AgentStopper(store, "trades", clock), []
    monkeypatch.setattr(store, "signal_supervisor", lambda name: not signalled.append(name))
    is_locked = file_locks.is_locked

    def fail(path):
        if path == store.folder("trades").supervisor:
            raise StoreError(str(path), "Input/output error", errno=errno.EIO)
        return is_locked(path)

    with store.supervising("trades"):
        monkeypatch.setattr(file_locks, "is_locked", fail)
        assert not stopping.has_ended()
        assert signalled == ["trades"]
    assert stopping.has_ended()
