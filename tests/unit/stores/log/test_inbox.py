"""The inbox: acknowledged once appended, folded exactly once."""

import fcntl
import os

import pytest

from rekindle.documents import events
from rekindle.errors import BusyError, DocumentError
from rekindle.policy.projection import open_loops
from rekindle.stores.log import inbox
from rekindle.system.files import durable_files


def heartbeat(clock, tool="Bash"):
    return events.Heartbeat(ts=clock(), tool=tool)


def fold(store):
    with store.writer("trades") as writer:
        writer.fold()


def logged(store, kind):
    return [one for one in store.events_since("trades", 0).events if one.kind == kind]


def put(store, *records):
    inbox.append_records(store.folder("trades").inbox, list(records), durable=True)


def only_segment(store):
    (segment,) = inbox.list_segments(store.folder("trades").inbox)
    return segment


def test_a_record_is_seen_before_it_is_folded(store, clock):
    """Readers lay the inbox over the log: what is acknowledged counts at once."""
    put(store, open_loops.propose_loop({}, "a", "text", clock()))
    view = store.read("trades")
    assert view.projection.loops["a"].is_open
    assert "a" not in view.committed.loops
    assert len(view.pending) == 1


def test_a_folded_segment_is_gone(store, clock):
    """The inbox holds raw output: nothing of it stays behind the fold."""
    put(store, heartbeat(clock))
    fold(store)
    assert inbox.list_segments(store.folder("trades").inbox) == []
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


def test_a_fold_that_was_killed_half_way_continues_where_it_was(store, clock):
    """Records after the log's cursor are folded, earlier ones are not."""
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


def test_a_torn_tail_is_given_up_once_its_writer_is_gone(store, clock):
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
    """A segment that a process still holds is folded, only not removed."""
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
    opened = durable_files.open_plain
    raced = []

    def open_then_retire(path, flags, root=None):
        fd = opened(path, flags, root)
        if flags & os.O_APPEND and not raced:
            raced.append(path)
            fold(store)
        return fd

    monkeypatch.setattr(durable_files, "open_plain", open_then_retire)
    put(store, heartbeat(clock, "two"))
    assert raced
    fold(store)
    assert [one.tool for one in logged(store, "heartbeat")] == ["one", "two"]


def test_a_busy_writer_leaves_the_record_acknowledged(store, clock):
    """If the agent's lock is held elsewhere, submit returns False and the record still counts."""
    with store.writer("trades"):
        record = open_loops.propose_loop({}, "a", "text", clock())
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
    assert "only Rekindle itself may write" in logged(store, "inbox.rejected")[0].reason


NEWER = {
    "kind": b'1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"loop.split"}',
    "event schema": b'1 event {"v":2,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat"}',
    "record schema": b'2 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat"}',
    "hook schema": b"2 hook claude-code",
}


@pytest.mark.parametrize("line", NEWER.values(), ids=NEWER)
def test_an_operator_s_record_of_a_newer_rekindle_is_left_for_it(store, clock, line):
    """A later Rekindle acknowledged it outside the workspace: it must not be dropped."""
    put(store, heartbeat(clock))
    path = store.folder("trades").private.inbox / "00000000000000000001-newer.seg"
    path.write_bytes(b"\n" + line + b"\n")
    with pytest.raises(DocumentError, match=r"loop\.split|has schema 2"):
        fold(store)
    assert path.exists()
    assert logged(store, "inbox.rejected") == []
    assert any("newer version of Rekindle" in found.what for found in store.inspect("trades"))


@pytest.mark.parametrize("line", NEWER.values(), ids=NEWER)
def test_a_record_that_looks_newer_in_the_workspace_stops_nothing(store, clock, line):
    """An agent can write one: it is set aside and reported once, and the rest is folded."""
    put(store, heartbeat(clock))
    path = plant(store, line)
    put(store, heartbeat(clock, "Read"))
    assert len(store.read("trades").pending) == 3
    fold(store)
    fold(store)
    assert not path.exists()
    assert [one.tool for one in logged(store, "heartbeat")] == ["Bash", "Read"]
    (rejected,) = logged(store, "inbox.rejected")
    assert rejected.reason.endswith("; moved to run/inbox.rejected")
    assert store.folder("trades").rejected_records.read_bytes() == line + b"\n"


def test_records_that_look_newer_do_not_fill_the_disk(store, monkeypatch):
    """An agent can write them without end."""
    monkeypatch.setattr("rekindle.stores.files.writer.ASIDE_BYTES", len(NEWER["kind"]) + 1)
    plant(store, NEWER["kind"])
    plant(store, NEWER["kind"])
    fold(store)
    assert store.folder("trades").rejected_records.read_bytes() == NEWER["kind"] + b"\n"
    reasons = [one.reason for one in logged(store, "inbox.rejected")]
    assert ["full" in reason for reason in reasons] == [False, True]


def test_a_proposed_relay_that_cannot_be_used_is_kept_and_said(store, clock):
    """A proposal without a directive leaves the old relay and is kept in the archive."""
    put(store, events.RelayProposed(ts=clock(), text="no directive", by="agent"))
    fold(store)
    (rejected,) = logged(store, "document.rejected")
    assert store.archived("trades", rejected.path) == b"no directive"


def test_a_proposed_relay_of_a_newer_schema_is_kept_and_said(store, clock):
    """An agent can write one into the inbox: it must not end the supervisor."""
    newer = "<!-- rekindle: relay 2 -->\n## Next Action\nX\n"
    put(store, events.RelayProposed(ts=clock(), text=newer, by="agent"))
    put(store, heartbeat(clock))
    fold(store)
    (rejected,) = logged(store, "document.rejected")
    assert "relay: has schema 2" in rejected.reason
    assert store.archived("trades", rejected.path).decode() == newer
    assert len(logged(store, "heartbeat")) == 1


def plant(store, line):
    """A line in the inbox that none of our own code wrote."""
    path = store.folder("trades").inbox / "00000000000000000001-planted.seg"
    with path.open("ab") as file:
        file.write(b"\n" + line + b"\n")
    return path


def test_unknown_fields_of_a_record_survive_the_fold(store):
    """Additions of a later Rekindle to a record are in the log afterwards."""
    plant(store, b'1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat","prio":{"a":[3]}}')
    fold(store)
    assert b'"prio":{"a":[3]}' in store.folder("trades").log.read_bytes()


@pytest.mark.parametrize("field", ['"at":"x"', '"at":"x:y"', '"seq":99', '"gen":99'])
def test_a_record_cannot_claim_a_place_in_the_log(store, field):
    """seq, gen and at are the log's to give: a record that brings its own changes nothing."""
    plant(
        store, b'1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat",%s}' % field.encode()
    )
    view = store.read("trades")
    assert (view.projection.seq, view.projection.gen) == (1, 1)
    fold(store)
    (beat,) = logged(store, "heartbeat")
    assert (beat.seq, beat.gen) == (2, 1)
    assert store.read("trades").pending == ()


@pytest.mark.parametrize("ts", ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_at_the_end_of_time_is_refused(store, clock, ts):
    """A mark that nothing could follow would keep its loop open for ever."""
    plant(store, b'1 event {"v":1,"ts":"%s","kind":"loop.added","id":"a","text":"x"}' % ts.encode())
    assert store.read("trades").unreadable == 1
    fold(store)
    assert len(logged(store, "inbox.rejected")) == 1


def test_text_from_outside_is_made_harmless(store):
    """Escape sequences that a record brings never reach a terminal."""
    plant(
        store,
        b'1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"loop.added",'
        b'"id":"a\\u001b[2J","text":"b\\u001b]0;c\\nd"}',
    )
    (loop,) = store.read("trades").projection.loops.values()
    assert "\x1b" not in loop.id + loop.text
    fold(store)
    assert b"u001b" not in store.folder("trades").log.read_bytes()


def test_a_segment_that_is_folded_but_not_removed_is_not_pending(store, clock):
    """Readers know from the log how far a segment counts already."""
    put(store, heartbeat(clock))
    holding = os.open(only_segment(store).path, os.O_RDONLY)
    fcntl.flock(holding, fcntl.LOCK_SH)
    fold(store)
    assert store.read("trades").pending == ()
    os.close(holding)


def test_a_snapshot_keeps_the_cursor_of_a_segment_that_is_still_there(store, clock):
    """A segment that outlives a snapshot is not folded again after it."""
    put(store, heartbeat(clock))
    holding = os.open(only_segment(store).path, os.O_RDONLY)
    fcntl.flock(holding, fcntl.LOCK_SH)
    with store.writer("trades") as writer:
        writer.fold()
        writer.snapshot()
    os.close(holding)
    fold(store)
    assert len(logged(store, "heartbeat")) == 1


def test_a_fold_between_look_and_write_cannot_take_the_segment_away(store, clock, monkeypatch):
    """The shared lock holds the segment in place until the record is in it."""
    put(store, heartbeat(clock, "one"))
    look = inbox.os.fstat
    raced = []

    def look_then_fold(fd):
        found = look(fd)
        if not raced:
            raced.append(fd)
            fold(store)
        return found

    with monkeypatch.context() as racing:
        racing.setattr(inbox.os, "fstat", look_then_fold)
        put(store, heartbeat(clock, "two"))
    assert raced
    fold(store)
    assert [one.tool for one in logged(store, "heartbeat")] == ["one", "two"]


def test_a_segment_that_a_power_loss_emptied_does_not_swallow_what_comes_next(store, clock):
    """Cursors are logged only for bytes that the disk has confirmed: see the order of calls."""
    inbox.append_records(store.folder("trades").inbox, [heartbeat(clock)], durable=False)
    synced = []
    sync = durable_files.sync_descriptor

    def noting(fd, path):
        synced.append(path.name)
        sync(fd, path)

    with pytest.MonkeyPatch.context() as watching:
        watching.setattr(durable_files, "sync_descriptor", noting)
        name = only_segment(store).name
        fold(store)
    assert name in synced
