"""Edits of state.json by hand, beside commands that write at the same time."""

import os

import msgspec
import pytest

from rekindle.documents import events, state
from rekindle.errors import DocumentError
from rekindle.policy.projection import open_loops
from rekindle.stores.log import inbox
from rekindle.stores.log.log_acceptance import seal_log


def edit(store, **changes):
    path = store.folder("trades").state
    raw = msgspec.json.decode(path.read_bytes()) | changes
    path.write_bytes(msgspec.json.encode(raw))
    moment = store._clock().timestamp()
    os.utime(path, (moment, moment))


def heal(store):
    with store.writer("trades") as writer:
        writer.fold()


def add(store, identity, text="text"):
    known = store.read("trades").projection.loops
    store.submit("trades", open_loops.propose_loop(known, identity, text, store._clock()))


def resolution(store, identity):
    known = store.read("trades").projection.loops
    return open_loops.resolve_loop(known, identity, "done", store._clock())


def is_open(store, identity):
    return store.read("trades").committed.loops[identity].is_open


def test_an_unrelated_edit_does_not_reopen_what_is_resolved_meanwhile(store, clock):
    """A loop that an older file merely still lists is not a request to reopen it."""
    add(store, "x")
    with store.writer("trades") as writer:
        edit(store, numbers={"aum": "7"})
        clock.forward(seconds=5)
        inbox.append_records(store.folder("trades").inbox, [resolution(store, "x")], durable=True)
        writer.fold()
    assert not is_open(store, "x")
    assert state.parse(store.folder("trades").state.read_bytes()).numbers == {"aum": "7"}


def test_a_stale_file_with_an_edit_reopens_nothing(store, clock):
    """After a crash between log and state.json the file lists what the log has closed."""
    add(store, "x")
    old = store.folder("trades").state.read_bytes()
    clock.forward(seconds=5)
    store.submit("trades", resolution(store, "x"))
    store.folder("trades").state.write_bytes(old)
    edit(store, numbers={"aum": "7"})
    heal(store)
    assert not is_open(store, "x")


def test_a_command_after_an_edit_has_the_last_word(store, clock):
    """Reworded by hand, then resolved by command: it is resolved."""
    add(store, "x", "old text")
    clock.forward(seconds=5)
    edit(store, open_loops=[{"id": "x", "text": "new text", "added": "2026-04-09"}])
    clock.forward(seconds=5)
    store.submit("trades", resolution(store, "x"))
    assert not is_open(store, "x")
    assert store.read("trades").committed.loops["x"].text == "new text"


def test_an_edit_after_a_command_has_the_last_word(store, clock):
    """Resolved by command, then listed as open again by hand: it is open."""
    add(store, "x")
    clock.forward(seconds=5)
    store.submit("trades", resolution(store, "x"))
    clock.forward(seconds=5)
    edit(store, open_loops=[{"id": "x", "text": "back again"}], resolved=[])
    heal(store)
    assert is_open(store, "x")


def test_a_reason_corrected_by_hand_is_adopted(store, clock):
    """Text below `resolved` counts too."""
    add(store, "x")
    clock.forward(seconds=5)
    store.submit("trades", resolution(store, "x"))
    clock.forward(seconds=5)
    item = {"id": "x", "reason": "better words", "resolved_date": "2026-04-09", "by": "me"}
    edit(store, resolved=[item])
    heal(store)
    (kept,) = state.parse(store.folder("trades").state.read_bytes()).resolved
    assert (kept.reason, kept.extra) == ("better words", {"by": "me"})


def test_resolutions_without_an_id_stay_apart(store, clock):
    """Two of them are two."""
    edit(store, resolved=[{"reason": "first"}, {"reason": "second"}])
    heal(store)
    assert len(state.parse(store.folder("trades").state.read_bytes()).resolved) == 2


def test_a_key_that_stands_twice_is_set_aside(store):
    """A reader would see only one of them: nothing is dropped in silence."""
    path = store.folder("trades").state
    text = path.read_text()
    path.write_text(text.replace('"open_loops"', '"open_loops": ["mine"], "open_loops"', 1))
    heal(store)
    assert "mine" in path.with_name("state.json.rejected").read_text()


def test_escapes_in_a_date_never_reach_a_terminal(store):
    """Every text of a state is made harmless, its dates too."""
    edit(store, open_loops=[{"id": "x", "text": "t", "added": "\x1b[2J\x1b[31m"}])
    heal(store)
    (loop,) = open_loops.list_open_loops(
        store.read("trades").committed.loops, store._clock(), store._settings.runtime.loops
    )
    assert "\x1b" not in loop.added


def test_a_log_that_lost_its_end_is_refused(store, clock):
    """Going on without the log would wipe what state.json still knows."""
    add(store, "x")
    store.folder("trades").log.unlink()
    seal_log(store.folder("trades"))
    before = store.folder("trades").state.read_bytes()
    with pytest.raises(DocumentError, match=r"ops\.jsonl") as refused:
        add(store, "y")
    assert "backup" in refused.value.hint
    assert store.folder("trades").state.read_bytes() == before
    assert any("ops.jsonl" in problem.what for problem in store.inspect("trades"))


def test_a_segment_that_is_shorter_than_its_cursor_is_read_from_its_beginning(store, clock):
    """A segment that came back from a copy, emptied, must not swallow what is appended to it."""
    inbox.append_records(
        store.folder("trades").inbox, [events.Heartbeat(ts=clock())] * 5, durable=True
    )
    (segment,) = inbox.list_segments(store.folder("trades").inbox)
    heal(store)
    segment.path.touch()
    clock.forward(seconds=1)
    add(store, "y")
    assert is_open(store, "y")


def test_a_snapshot_is_not_trusted_beyond_kinds_that_it_did_not_know(
    store, open_store, monkeypatch
):
    """After an upgrade, what an older Rekindle passed over is read again."""
    with store.writer("trades") as writer:
        writer.snapshot()
    assert store.read("trades").snapshot_end > 0
    monkeypatch.setattr("rekindle.stores.log.snapshot.KNOWN_KINDS", ("loop.parked", "heartbeat"))
    assert open_store().read("trades").snapshot_end == 0


def test_an_adopted_file_is_for_its_owner_alone(store):
    """An editor that saved a new file with its own mode does not open it to others."""
    path = store.folder("trades").document("relay")
    path.write_text("## Next Action\nGo\n")
    path.chmod(0o644)
    heal(store)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_number_that_we_never_gave_does_not_stop_resolved_jsonl(store, clock):
    """A line by hand that claims a number from the future is not believed."""
    store.folder("trades").resolved.write_bytes(b'{"id":"hand","seq":100000}\n')
    add(store, "x")
    store.submit("trades", resolution(store, "x"))
    assert b'"x"' in store.folder("trades").resolved.read_bytes()


def test_a_copied_agent_has_its_own_name(store, open_store):
    """A folder that was copied speaks of itself by its new name."""
    add(store, "x")
    with store.writer("trades") as writer:
        writer.snapshot()
    store.folder("trades").path.rename(store.folder("copy").path)
    assert store.accept_log("copy")
    with store.writer("copy") as writer:
        writer.fold()
    assert state.parse(store.folder("copy").state.read_bytes()).agent == "copy"
