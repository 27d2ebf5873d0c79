"""A folder whose log another host keeps: received, continued, and never written to alone."""

import pytest

from conftest import RELAY
from rekindle.documents import events, relay
from rekindle.errors import FencedError, ForeignOwnerError
from rekindle.policy.fleet import agent_registry
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import (
    FileStore,
    replica,
)
from rekindle.stores.log import snapshot


class Elsewhere:
    """Numbers the events of an agent, and says what others have said meanwhile."""

    def __init__(self, known):
        self.known, self.lines, self.documents = known, [], {}
        self.is_fenced = False

    def say(self, *new):
        return self.commit(self.known.seq, new, {})

    def commit(self, known, new, documents):
        if self.is_fenced:
            raise FencedError("trades", 1, 2)
        for one in new:
            seq = self.known.seq + 1
            line = events.render(type(one)(**_fields(one) | {"seq": seq, "gen": 7}))
            self.lines.append((seq, line))
            self.known = fold_events(self.known, [events.parse(line)])
        self.documents |= documents
        return [line for seq, line in self.lines if seq > known]


def _fields(event):
    return {name: getattr(event, name) for name in event.__struct_fields__}


@pytest.fixture
def there(store, clock):
    """An agent with a past, on another host."""
    with store.writer("trades") as writer:
        writer.commit_relay(relay.parse(RELAY), by="agent")
        writer.append(events.LoopAdded(ts=clock(), id="tests", text="Write the tests"))
    return store.read("trades").committed, {
        path: store.archived("trades", path)
        for path in [store.read("trades").committed.documents["relay"].path]
    }


@pytest.fixture
def here(tmp_path, clock, there):
    known, documents = there
    elsewhere = Elsewhere(known)
    store = FileStore(
        tmp_path / "here", host="fleet:b", settings=Settings(), clock=clock, register=elsewhere
    )
    store.root.project.mkdir()
    store.root.make()
    replica.receive_agent(store.folder("trades"), known, documents, clock())
    return store, elsewhere


def test_what_is_received_is_what_was_known(here, there):
    store, _ = here
    assert store.read("trades").committed == there[0]
    assert store.document("trades", "relay") == next(iter(there[1].values()))


def test_without_its_snapshot_nothing_is_forgotten(here, there):
    store, _ = here
    with store.writer("trades") as writer:
        writer.snapshot()
    assert snapshot.load_snapshot(store.folder("trades")).projection.seq == there[0].seq
    store.folder("trades").snapshot.unlink()
    assert store.read("trades").committed.loops == there[0].loops


def test_a_commit_counts_elsewhere_and_is_in_the_log_here(here, clock):
    store, elsewhere = here
    with store.writer("trades") as writer:
        writer.commit_relay(relay.parse(RELAY + "\n- one more\n"), by="agent")
    known = store.read("trades").committed
    assert known == elsewhere.known
    assert known.gen == 7
    assert elsewhere.documents[known.documents["relay"].path] == store.document("trades", "relay")


def test_what_was_said_elsewhere_comes_with_the_next_commit(here, clock):
    store, elsewhere = here
    elsewhere.say(events.DesiredSet(ts=clock(), desired="stopped"))
    assert store.read("trades").committed.run.desired == ""
    with store.writer("trades") as writer:
        writer.append(events.HangDetected(ts=clock(), launch="x", words="silent", ended=False))
    assert store.read("trades").committed == elsewhere.known
    assert elsewhere.known.run.desired == "stopped"


def test_what_was_said_elsewhere_can_be_asked_for(here, clock):
    store, elsewhere = here
    elsewhere.say(events.DesiredSet(ts=clock(), desired="stopped"))
    with store.writer("trades") as writer:
        writer.catch_up()
    assert store.read("trades").committed.run.desired == "stopped"


def test_a_host_that_lost_the_agent_writes_nothing(here, clock):
    store, elsewhere = here
    before = store.folder("trades").log.read_bytes()
    elsewhere.is_fenced = True
    with pytest.raises(FencedError), store.writer("trades") as writer:
        writer.append(events.HangDetected(ts=clock(), launch="x", words="silent", ended=False))
    assert store.folder("trades").log.read_bytes() == before


def test_opening_it_without_the_register_is_refused(here, tmp_path, clock):
    store, _ = here
    with store.writer("trades"):
        pass
    alone = FileStore(tmp_path / "here", host="this one", settings=Settings(), clock=clock)
    with pytest.raises(ForeignOwnerError), alone.writer("trades"):
        pass


def test_a_take_over_from_a_fleet_is_refused(here, tmp_path, clock):
    """The fleet would continue it there, and two supervisors would run the agent."""
    store, _ = here
    with store.writer("trades"):
        pass
    alone = FileStore(tmp_path / "here", host="this one", settings=Settings(), clock=clock)
    with pytest.raises(ForeignOwnerError), alone.writer("trades", take_over=True):
        pass
    with pytest.raises(ForeignOwnerError):
        alone.submit("trades", events.HandoffRequested(ts=clock()), take_over=True)


def test_a_renamed_host_continues(here, tmp_path, clock):
    store, elsewhere = here
    with store.writer("trades"):
        pass
    renamed = FileStore(
        tmp_path / "here", host="fleet:c", settings=Settings(), clock=clock, register=elsewhere
    )
    before = elsewhere.known.seq
    with renamed.writer("trades"):
        pass
    assert elsewhere.known.seq == before


def test_received_again_it_is_the_new_state_and_the_old_lines_are_kept(here, clock):
    store, elsewhere = here
    with store.writer("trades") as writer:
        writer.append(events.LoopAdded(ts=clock(), id="docs", text="Write the docs"))
    old = store.folder("trades").log.read_bytes()
    elsewhere.say(events.LoopResolved(ts=clock(), id="docs", reason="done"))
    replica.receive_agent(store.folder("trades"), elsewhere.known, elsewhere.documents, clock())
    assert store.read("trades").committed == elsewhere.known
    kept = list(store.folder("trades").archive.glob("ops-before-*.jsonl"))
    assert [one.read_bytes() for one in kept] == [old]


def test_what_hooks_have_reported_meanwhile_is_folded_behind_it(here, clock):
    store, elsewhere = here
    store.submit("trades", events.LoopAdded(ts=clock(), id="late", text="Late"))
    assert "late" in store.read("trades").committed.loops
    assert store.read("trades").committed == elsewhere.known


def cycle_open(elsewhere, clock, number=3):
    elsewhere.say(events.CycleStarted(ts=clock(), cycle=number))
    return agent_registry.make_draft_name(number)


def test_a_relay_that_was_written_elsewhere_is_there_for_the_end_of_its_cycle(here, clock):
    """Its host died behind the session, and before the relay was committed."""
    store, elsewhere = here
    path = cycle_open(elsewhere, clock)
    replica.receive_agent(store.folder("trades"), elsewhere.known, {path: b"## Next\n"}, clock())
    assert store.folder("trades").draft.read_bytes() == b"## Next\n"


@pytest.mark.parametrize("is_same", [True, False])
def test_a_relay_that_was_written_here_counts_for_its_own_cycle(here, clock, is_same):
    store, elsewhere = here
    cycle_open(elsewhere, clock)
    folder = store.folder("trades")
    replica.receive_agent(folder, elsewhere.known, {}, clock())
    folder.draft.write_bytes(b"## Mine\n")
    if not is_same:
        elsewhere.say(events.CycleEnded(ts=clock(), cycle=3))
        cycle_open(elsewhere, clock, 4)
    else:
        elsewhere.say(events.HandoffRequested(ts=clock()))
    replica.receive_agent(folder, elsewhere.known, {}, clock())
    assert folder.draft.exists() == is_same
