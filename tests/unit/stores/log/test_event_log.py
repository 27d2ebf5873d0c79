"""The log and its snapshot: read from the tail, never trusted blindly."""

import shutil

import msgspec
import pytest

from rekindle.documents import events, state
from rekindle.errors import (
    FencedError,
    ForeignOwnerError,
    NewerSchemaError,
    OwnershipError,
    StoreError,
)
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import SNAPSHOT_EVERY_BYTES
from rekindle.stores.log import (
    event_log,
    seal,
    snapshot,
)
from rekindle.stores.log.log_acceptance import seal_log
from rekindle.stores.log.seal import ChainPosition
from rekindle.system.files import durable_files

parse = events.parse


def add_loop(store, identity, clock):
    store.submit("trades", open_loops.propose_loop({}, identity, f"text of {identity}", clock()))


def open_ids(store):
    return {loop.id for loop in store.read("trades").projection.loops.values() if loop.is_open}


def test_numbers_run_on_without_a_gap(store, clock):
    """Every event has the number after the one before it."""
    for number in range(5):
        add_loop(store, f"l{number}", clock)
    numbers = [event.seq for event in store.events_since("trades", 0).events]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_torn_tail_does_not_swallow_the_next_event(store, clock):
    """After a power loss in mid-append the next event starts on a line of its own."""
    add_loop(store, "before", clock)
    folder, seen = store.folder("trades"), store.read("trades")
    seal.promise_append(
        folder.private.seal,
        ChainPosition(seen.end, seen.chain),
        ChainPosition(seen.end + 900, "0" * 64),
    )
    with folder.log.open("ab") as file:
        file.write(b'{"v":1,"seq":99,"ts"')
    assert open_ids(store) == {"before"}
    add_loop(store, "after", clock)
    assert open_ids(store) == {"before", "after"}
    assert store.read("trades").bad == ()


def test_garbage_in_the_log_is_skipped_and_said(store, clock):
    """Zeros and noise cost nothing but themselves."""
    add_loop(store, "before", clock)
    with store.folder("trades").log.open("ab") as file:
        file.write(b"\x00" * 100 + b"\n" + b"[" * 50_000 + b"\n" + b"\xff\xfe\n")
    seal_log(store.folder("trades"))
    add_loop(store, "after", clock)
    assert open_ids(store) == {"before", "after"}
    assert len(store.read("trades").bad) == 3


def test_a_snapshot_gives_what_the_whole_log_gives(store, clock):
    """Reading from a snapshot and reading from the beginning end in the same projection."""
    for number in range(20):
        add_loop(store, f"l{number}", clock)
    with store.writer("trades") as writer:
        writer.snapshot()
    add_loop(store, "after", clock)
    with_snapshot = store.read("trades")
    assert with_snapshot.snapshot_end > 0
    store.folder("trades").snapshot.unlink()
    without = store.read("trades")
    assert without.snapshot_end == 0
    assert without.committed.loops == with_snapshot.committed.loops
    assert without.committed.seq == with_snapshot.committed.seq


@pytest.mark.parametrize("damage", [b"", b"{", b'{"v":9}', b"\xff", b"[" * 100_000])
def test_a_damaged_snapshot_is_ignored(store, clock, damage):
    """The snapshot is a cache: a broken one only costs time."""
    add_loop(store, "a", clock)
    with store.writer("trades") as writer:
        writer.snapshot()
    store.folder("trades").snapshot.write_bytes(damage)
    assert open_ids(store) == {"a"}
    add_loop(store, "b", clock)
    assert open_ids(store) == {"a", "b"}


def test_a_cycle_s_end_in_a_snapshot_of_an_earlier_shape_is_read(store, clock):
    """It had every field, and no kind."""
    ended = events.CycleEnded(ts=clock(), cycle=1, verdict="stalled", seconds=2.0)
    with store.writer("trades") as writer:
        writer.append(ended)
        writer.snapshot()
    path = store.folder("trades").snapshot
    kept = msgspec.json.decode(path.read_bytes())
    (one,) = kept["projection"]["ended"].values()
    assert one.pop("kind") == "cycle.ended"
    one |= {"words": "", "is_equal": False, "redebated": ""}
    path.write_bytes(msgspec.json.encode(kept))
    seen = store.read("trades")
    assert seen.snapshot_end > 0
    assert seen.committed.ended[1].verdict == "stalled"


def test_a_snapshot_of_another_log_is_ignored(store, clock):
    """A log that was replaced by a backup does not fit the snapshot any more."""
    folder = store.folder("trades")
    add_loop(store, "kept", clock)
    backup = folder.log.read_bytes()
    add_loop(store, "later", clock)
    with store.writer("trades") as writer:
        writer.snapshot()
    folder.log.write_bytes(backup)
    seal_log(folder)
    folder.state.unlink()
    assert open_ids(store) == {"kept"}


def test_a_snapshot_is_made_when_enough_has_been_written(store, clock, monkeypatch):
    """A start never has to read more than about one interval of the log again."""
    big = "x" * 1_900
    for number in range(SNAPSHOT_EVERY_BYTES // 1_000):
        store.submit(
            "trades", open_loops.propose_loop({}, f"l{number % 7}", f"{big} {number}", clock())
        )
    view = store.read("trades")
    assert view.snapshot_end > 0
    assert view.end - view.snapshot_end < SNAPSHOT_EVERY_BYTES
    assert snapshot.load_snapshot(store.folder("trades")).projection.cursors == {}


def test_a_second_read_gets_only_new_events(store, open_store, clock, monkeypatch):
    """It gives the same result as reading all of it."""
    for number in range(20):
        add_loop(store, f"l{number}", clock)
    store.read("trades")
    parsed = []
    monkeypatch.setattr(event_log.events, "parse", lambda line: parsed.append(line) or parse(line))
    assert store.read("trades").committed.seq == 21
    assert parsed == []
    with store.folder("trades").log.open("ab") as file:
        file.write(b"garbage\n")
    seal_log(store.folder("trades"))
    add_loop(open_store(), "after", clock)
    parsed.clear()
    seen = store.read("trades")
    assert len(parsed) == 2
    assert seen == open_store().read("trades")
    assert len(seen.bad) == 1


@pytest.mark.parametrize("grown", [0, 3], ids=["shorter", "longer"])
def test_another_log_in_its_place_is_read_from_its_beginning(store, open_store, clock, grown):
    """A backup that was put back, and went on from there."""
    add_loop(store, "first", clock)
    backup = store.folder("trades").log.read_bytes()
    for number in range(2):
        add_loop(store, f"l{number}", clock)
    store.read("trades")
    folder = store.folder("trades")
    folder.log.write_bytes(backup)
    seal_log(folder)
    folder.state.unlink()
    other = open_store()
    for number in range(grown):
        add_loop(other, f"other{number}", clock)
    assert open_ids(store) == {"first"} | {f"other{number}" for number in range(grown)}
    assert store.read("trades") == open_store().read("trades")


def test_reading_backwards_gives_the_newest_first(store, clock):
    """The newest events come first, each once, whatever the block size."""
    for number in range(30):
        add_loop(store, f"l{number}", clock)
    forwards = [event.seq for event in event_log.read_log(store.folder("trades").log).events]
    assert [event.seq for event in store.newest_events("trades")] == forwards[::-1]


def test_a_log_of_a_newer_schema_is_refused_by_name(store):
    """The events of a later Rekindle are not half understood."""
    with store.folder("trades").log.open("ab") as file:
        file.write(b'{"v":2,"seq":2,"gen":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat"}\n')
    seal_log(store.folder("trades"))
    with pytest.raises(NewerSchemaError, match="schema 2"):
        store.read("trades")


def test_a_state_of_a_newer_schema_is_set_aside_and_made_again(store, clock):
    """The log has all of it, and an agent can write the file to end its supervisor."""
    add_loop(store, "a", clock)
    path, newer = store.folder("trades").state, b'{"v": 7, "agent": "trades"}'
    path.write_bytes(newer)
    with store.writer("trades"):
        pass
    assert [loop.id for loop in state.parse(path.read_bytes()).open_loops] == ["a"]
    assert path.with_name("state.json.rejected").read_bytes() == newer
    rejected = next(iter(store.newest_events("trades")))
    assert "state.json: has schema 7" in rejected.reason


def test_a_state_that_claims_to_be_ahead_of_a_sealed_log_is_made_again(store, clock):
    """The seal confirms the log; an agent can write any number into state.json."""
    add_loop(store, "a", clock)
    path = store.folder("trades").state
    ahead = msgspec.structs.replace(state.parse(path.read_bytes()), seq=10**6)
    path.write_bytes(state.render(ahead))
    assert [found.what for found in store.inspect("trades") if "ends at event" in found.what] == []
    add_loop(store, "b", clock)
    made = state.parse(path.read_bytes())
    assert ([loop.id for loop in made.open_loops], made.seq) == (["a", "b"], 3)


def test_an_agent_of_another_host_is_refused(store, open_store, clock):
    """A folder that names another owner is not written to, and nothing is acknowledged."""
    elsewhere = open_store(host="elsewhere")
    before = store.folder("trades").log.read_bytes()
    with pytest.raises(ForeignOwnerError, match="belongs to host here") as refused:
        add_loop(elsewhere, "a", clock)
    assert "--take-over" in refused.value.hint
    assert store.folder("trades").log.read_bytes() == before
    assert elsewhere.read("trades").pending == ()


def test_a_take_over_raises_the_generation_and_says_so(store, open_store, clock):
    """The new owner's events have a higher generation, and the log names the previous owner."""
    elsewhere = open_store(host="elsewhere")
    record = open_loops.propose_loop({}, "a", "text", clock())
    elsewhere.submit("trades", record, take_over=True)
    found = elsewhere.events_since("trades", 0).events
    changed = next(event for event in found if event.kind == "owner.changed")
    assert (changed.host, changed.previous, changed.gen) == ("elsewhere", "here", 2)
    assert elsewhere.read("trades").committed.gen == 2


def test_a_writer_that_was_taken_over_commits_nothing(store, open_store, clock):
    """A host that slept through a take-over is refused at its next commit."""
    with store.writer("trades") as zombie:
        folder = store.folder("trades")
        folder.lock.unlink()  # two hosts do not share a lock
        with open_store(host="elsewhere").writer("trades", take_over=True):
            pass
        before = folder.log.read_bytes()
        with pytest.raises(FencedError) as refused:
            zombie.append(events.Heartbeat(ts=clock()))
        assert (refused.value.ours, refused.value.current) == (1, 2)
        assert folder.log.read_bytes() == before


def test_a_late_event_of_an_older_generation_is_ignored(store, open_store, clock):
    """If a zombie's line reaches the log, readers fence it off."""
    with open_store(host="elsewhere").writer("trades", take_over=True):
        pass
    late = open_loops.propose_loop({}, "zombie", "text", clock())
    with store.folder("trades").log.open("ab") as file:
        file.write(events.render(late) + b"\n")
    seal_log(store.folder("trades"))
    view = store.read("trades")
    assert "zombie" not in view.projection.loops
    assert "replaced by" in view.bad[0].reason


def test_a_lost_owner_record_does_not_bring_an_old_generation_back(store, open_store):
    """The log's generation is a floor."""
    elsewhere = open_store(host="elsewhere")
    with elsewhere.writer("trades", take_over=True):
        pass
    store.folder("trades").owner.unlink()
    with store.writer("trades") as writer:
        writer.append(events.Heartbeat(ts=writer.now()))
    assert next(iter(store.newest_events("trades"))).gen == 2


def test_a_failed_sync_takes_the_lines_back(store, clock, monkeypatch):
    """Unconfirmed lines are not acknowledged, not visible, and written again later."""
    before = store.folder("trades").log.read_bytes()
    fsync = durable_files.os.fsync

    def failing(fd):
        if "ops.jsonl" in durable_files.os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(5, "Input/output error")
        fsync(fd)

    with monkeypatch.context() as broken:
        broken.setattr(durable_files.os, "fsync", failing)
        with pytest.raises(StoreError, match="did not confirm") as refused:
            add_loop(store, "a", clock)
    assert refused.value.errno == 5
    assert store.folder("trades").log.read_bytes() == before
    with store.writer("trades") as writer:
        writer.fold()
    assert store.read("trades").committed.loops["a"].is_open


def test_the_state_on_disk_is_what_the_log_adds_up_to(store, clock):
    """state.json and the projection agree after every command."""
    add_loop(store, "a", clock)
    clock.forward(days=20)
    add_loop(store, "b", clock)
    found = state.parse(store.folder("trades").state.read_bytes())
    assert [(loop.id, loop.stale) for loop in found.open_loops] == [("a", True), ("b", False)]


def test_a_line_that_lost_only_its_newline_does_not_come_back(store, clock):
    """A line that readers did not count must not count after the next append."""
    whole = events.render(
        events.LoopAdded(ts=clock(), seq=2, gen=1, id="ghost", text="never acknowledged")
    )
    folder, seen = store.folder("trades"), store.read("trades")
    place = ChainPosition(seen.end, seen.chain)
    seal.promise_append(folder.private.seal, place, ChainPosition(seen.end + 900, "0" * 64))
    with folder.log.open("ab") as file:
        file.write(whole)
    assert "ghost" not in store.read("trades").projection.loops
    add_loop(store, "after", clock)
    assert open_ids(store) == {"after"}
    seqs = [event.seq for event in store.events_since("trades", 0).events]
    assert seqs == [1, 2]
    assert [event.seq for event in store.newest_events("trades")] == [2, 1]


def test_a_reader_stops_at_a_line_that_is_still_being_written(tmp_path, monkeypatch):
    """A line that grows while it is read is left for the next time, never read in two halves."""
    path = tmp_path / "ops.jsonl"
    line = b'{"v":1,"seq":1,"gen":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat"}\n'
    path.write_bytes(line + line[:20])
    opened = event_log.os.fdopen

    def growing(fd, *arguments, **more):
        file = opened(fd, *arguments, **more)

        class Growing:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                file.close()

            def seek(self, offset):
                return file.seek(offset)

            def __iter__(self):
                for found in file:
                    if not found.endswith(b"\n"):
                        with path.open("ab") as writing:
                            writing.write(line[20:])
                    yield found

        return Growing()

    with monkeypatch.context() as racing:
        racing.setattr(event_log.os, "fdopen", growing)
        tail = event_log.read_log(path)
    assert (len(tail.events), tail.bad, tail.end) == (1, [], len(line))
    assert len(event_log.read_log(path, tail.end).events) == 1


def test_a_removed_lock_does_not_make_two_writers(store, clock):
    """A writer whose lock was deleted writes nothing more."""
    with store.writer("trades") as first:
        store.folder("trades").lock.unlink()
        with store.writer("trades") as second:
            second.append(events.Heartbeat(ts=clock()))
            with pytest.raises(OwnershipError):
                first.append(events.Heartbeat(ts=clock()))
    seqs = [event.seq for event in store.events_since("trades", 0).events]
    assert seqs == [1, 2]


@pytest.mark.parametrize("place", ["run", "memories", "archive", "inbox"])
def test_a_missing_run_folder_is_created_again(store, clock, place):
    """`rm -rf run` costs nothing that was folded, and readers still see it."""
    add_loop(store, "kept", clock)
    shutil.rmtree(getattr(store.folder("trades"), place))
    assert store.exists("trades")
    assert open_ids(store) == {"kept"}
    add_loop(store, "after", clock)
    assert open_ids(store) == {"kept", "after"}


def test_a_copy_without_its_run_folder_is_taken_over_at_once(store, open_store, clock):
    """A folder that was copied to another host needs --take-over once, not twice."""
    shutil.rmtree(store.folder("trades").run)
    elsewhere = open_store(host="elsewhere")
    record = open_loops.propose_loop({}, "a", "text", clock())
    with pytest.raises(ForeignOwnerError):
        elsewhere.submit("trades", record)
    assert elsewhere.submit("trades", record, take_over=True)


def test_a_fold_that_fails_says_that_the_record_is_kept(store, clock, monkeypatch):
    """Once the inbox has it, an error of the fold must not tell the user to repeat it in doubt."""

    def broken(*_arguments):
        raise StoreError("ops.jsonl", "Input/output error", errno=5, hint="check the disk")

    monkeypatch.setattr(event_log, "append_lines", broken)
    with pytest.raises(StoreError) as refused:
        add_loop(store, "a", clock)
    assert "is saved" in refused.value.hint
    assert open_ids(store) == {"a"}
