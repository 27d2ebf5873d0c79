"""The inbox: acknowledged once appended, folded exactly once."""

import fcntl
import os

import pytest

from rekindle.documents import event as events
from rekindle.errors import BusyError, DocumentError
from rekindle.policy import loops
from rekindle.stores.files import inbox
from rekindle.system import disk


def heartbeat(clock, tool="Bash"):
    return events.Heartbeat(ts=clock(), tool=tool)


def fold(store):
    with store.writer("trades") as writer:
        writer.fold()


def logged(store, kind):
    return [one for one in store.events_since("trades", 0).events if one.kind == kind]


def put(store, *records):
    inbox.append(store.folder("trades").inbox, list(records), durable=True)


def only_segment(store):
    (segment,) = inbox.segments(store.folder("trades").inbox)
    return segment


def test_a_record_is_seen_before_it_is_folded(store, clock):
    """Readers lay the inbox over the log: what is acknowledged counts at once."""
    put(store, loops.add({}, "a", "text", clock()))
    view = store.read("trades")
    assert view.projection.loops["a"].is_open
    assert "a" not in view.committed.loops
    assert len(view.pending) == 1


def test_a_folded_segment_is_gone(store, clock):
    """The inbox holds raw output: nothing of it stays behind the fold."""
    put(store, heartbeat(clock))
    fold(store)
    assert inbox.segments(store.folder("trades").inbox) == []
    assert len(logged(store, "heartbeat")) == 1


def test_a_fold_that_was_killed_before_the_segment_went_folds_nothing_twice(store, clock):
    """The log tells how far a segment is folded, so folding it again adds nothing."""
    put(store, heartbeat(clock), heartbeat(clock))
    segment = only_segment(store)
    kept = segment.path.read_bytes()
    fold(store)
    segment.path.write_bytes(kept)
    fold(store)
    assert len(logged(store, "heartbeat")) == 2


def test_a_fold_that_was_killed_half_way_goes_on_where_it_was(store, clock):
    """Records behind the log's cursor are folded, those before it are not."""
    put(store, heartbeat(clock, "one"))
    segment = only_segment(store)
    kept = segment.path.read_bytes()
    fold(store)
    segment.path.write_bytes(kept)
    put(store, heartbeat(clock, "two"))
    fold(store)
    assert [one.tool for one in logged(store, "heartbeat")] == ["one", "two"]


def test_a_torn_record_spoils_only_itself(store, clock):
    """A record cut by a full disk is skipped and said; the one after it is folded."""
    put(store, heartbeat(clock, "one"))
    with only_segment(store).path.open("ab") as file:
        file.write(b'\n1 event {"v":1,"ts":"2026')
    put(store, heartbeat(clock, "two"))
    fold(store)
    assert [one.tool for one in logged(store, "heartbeat")] == ["one", "two"]
    (rejected,) = logged(store, "inbox.rejected")
    assert rejected.bytes == len(b'1 event {"v":1,"ts":"2026')


def test_a_torn_tail_is_given_up_when_nobody_is_writing_it(store, clock):
    """A tail without its newline is left while it may grow, and rejected once it cannot."""
    put(store, heartbeat(clock))
    segment = only_segment(store)
    with segment.path.open("ab") as file:
        file.write(b"\n1 event {")
    writing = os.open(segment.path, os.O_RDONLY)
    fcntl.flock(writing, fcntl.LOCK_SH)
    fold(store)
    assert segment.path.exists()
    assert logged(store, "inbox.rejected") == []
    os.close(writing)
    fold(store)
    assert not segment.path.exists()
    assert len(logged(store, "inbox.rejected")) == 1


def test_a_stopped_writer_does_not_stop_the_fold(store, clock):
    """A segment that somebody still holds is folded, only not removed."""
    put(store, heartbeat(clock))
    segment = only_segment(store)
    holding = os.open(segment.path, os.O_RDONLY)
    fcntl.flock(holding, fcntl.LOCK_SH)
    fold(store)
    assert len(logged(store, "heartbeat")) == 1
    assert segment.path.exists()
    os.close(holding)


def test_a_writer_that_opened_a_segment_before_it_went_writes_to_the_next(
    store, clock, monkeypatch
):
    """Between open and lock a segment may be retired: the record must not land in a gone file."""
    put(store, heartbeat(clock, "one"))
    opened = disk.open_plain
    raced = []

    def open_then_retire(path, flags):
        fd = opened(path, flags)
        if flags & os.O_APPEND and not raced:
            raced.append(path)
            fold(store)
        return fd

    monkeypatch.setattr(disk, "open_plain", open_then_retire)
    put(store, heartbeat(clock, "two"))
    assert raced
    fold(store)
    assert [one.tool for one in logged(store, "heartbeat")] == ["one", "two"]


def test_a_busy_writer_leaves_the_record_acknowledged(store, clock):
    """With the agent's lock held elsewhere, submit says False and the record still counts."""
    with store.writer("trades"):
        record = loops.add({}, "a", "text", clock())
        assert store.submit("trades", record) is False
    assert store.read("trades").projection.loops["a"].is_open
    fold(store)
    assert store.read("trades").committed.loops["a"].is_open


def test_a_second_writer_is_refused(store):
    """One writer at a time; the error says how long it waited."""
    with (
        store.writer("trades"),
        pytest.raises(BusyError, match=r"0\.02 s"),
        store.writer("trades", wait=0.02),
    ):
        pass


def test_what_only_the_writer_establishes_cannot_come_from_outside(store, clock):
    """A forged commit in the inbox is rejected, and said."""
    put(
        store,
        events.RelayCommitted(ts=clock(), sha256="0" * 64, path="../../../etc/passwd", by="agent"),
    )
    fold(store)
    assert "relay" not in store.read("trades").committed.documents
    assert "cannot come from outside" in logged(store, "inbox.rejected")[0].reason


def test_a_record_of_a_newer_rekindle_is_left_for_it(store, clock):
    """An unknown kind was acknowledged by somebody who knows it: it must not be dropped."""
    put(store, heartbeat(clock))
    segment = only_segment(store)
    with segment.path.open("ab") as file:
        file.write(b'\n1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"loop.split"}\n')
    with pytest.raises(DocumentError, match=r"loop\.split"):
        fold(store)
    assert segment.path.exists()


def test_a_proposed_relay_that_cannot_be_used_is_kept_and_said(store, clock):
    """A proposal without a directive leaves the old relay and stands in the archive."""
    put(store, events.RelayProposed(ts=clock(), text="no directive", by="agent"))
    fold(store)
    (rejected,) = logged(store, "document.rejected")
    assert store.archived("trades", rejected.path) == b"no directive"
