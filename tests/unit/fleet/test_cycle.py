"""What a host does with a lease, from its first step on."""

import stat
import sys

import pytest

from rekindle import config
from rekindle.documents import event as events
from rekindle.fleet import cycle
from rekindle.fleet.orders import Order
from rekindle.fleet.place import Place
from rekindle.flows.world import Trouble
from rekindle.policy import register
from rekindle.policy.fold import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.register import Definition, Kept, Opening
from rekindle.policy.restart import Wait
from rekindle.policy.settings import FLEET_DOCUMENT_BYTES
from rekindle.stores.files.layout import Root
from rekindle.system import clock
from rekindle.system.processes import Interruption
from rekindle.wiring import run as wiring
from rekindle.wiring.store import open_store


@pytest.fixture
def steps(tmp_path):
    """Of an agent that has crashed twice, a moment ago."""
    (tmp_path / "PROMPT.md").write_text("work")
    program = [sys.executable, "-c", "pass"]
    (tmp_path / "rekindle.yaml").write_text(
        f"version: 1\nagents:\n  trades:\n    harness: command\n    command: {program}\n"
    )
    project = config.load(tmp_path)
    store = open_store(project)
    now = clock.now()
    happened = [
        events.DesiredSaid(ts=now, desired="running"),
        events.RunStarted(ts=now),
        events.CycleStarted(ts=now, cycle=1),
    ]
    for launch in ("l1", "l2"):
        own = {"ts": now, "launch": launch, "cycle": 1, "session": launch}
        happened += [
            events.LaunchStarted(**own, harness="command", boot="b", uptime=1),
            events.LaunchEnded(**own, exit="crash", words="it fell"),
        ]
    with store.writer("trades") as writer:
        writer.append(*happened)
    with Interruption() as interruption, store.supervising("trades"):
        yield wiring.steps(project, store, "trades", lambda _: None, interruption, fold_every=1)


def test_who_was_given_the_lease_has_waited(steps):
    """The engine's clock counts, not that of a host which is behind."""
    known = steps.cycle.known()
    assert isinstance(steps.decide(known), Wait)
    assert not cycle._step(steps, is_first=False)
    assert len(steps.cycle.known().attempts) == 2
    assert cycle._step(steps, is_first=True)
    assert len(steps.cycle.known().attempts) == 3


def test_what_a_cycle_says_is_for_nobody_else(tmp_path):
    """Whatever the umask of the worker."""
    folder = Root(tmp_path).agent("trades")
    folder.run.mkdir(parents=True)
    cycle._telling(Place(tmp_path, "trades", "a"), "trades")(Trouble("no"))
    assert "no" in folder.output.read_text()
    assert stat.S_IMODE(folder.output.stat().st_mode) == 0o600


class Engine:
    """The worker's end of a line, with what the engine has kept of an agent."""

    def __init__(self, kept):
        self.kept, self.asked = kept, []

    def send(self, asked):
        self.asked.append(asked)

    def recv(self):
        asked = self.asked[-1]
        if isinstance(asked, Opening):
            self.kept, opened = register.opened(self.kept, asked, clock.now())
            return opened
        self.kept, committed = register.commit(self.kept, asked)
        return committed


@pytest.fixture
def engine():
    manifest = "version: 1\nagents: {trades: {harness: command, command: ['true']}}\n"
    definition = Definition(
        manifest=manifest, files={"PROMPT.md": "work"}, pool="p", heartbeat_seconds=5
    )
    kept = Kept(agent="trades", definition=definition, projection=Projection(agent="trades"))
    created = events.AgentCreated(ts=clock.now(), agent="trades")
    return Engine(register.lease(register.append(kept, created)))


def test_who_writes_beside_a_cycle_leaves_its_replica_alone(tmp_path, engine):
    """It catches up; whoever is alone has it brought anew."""
    order, place = Order("ns/trades", "trades", 1), Place(tmp_path / "p", "trades", "a")
    with place.supervising(0) as is_alone:
        assert is_alone
        cycle.OnHost(order, place, engine)
        with place.supervising(0) as is_second:
            assert not is_second
        said = events.LoopAdded(ts=clock.now(), id="more", text="More")
        engine.kept = register.append(engine.kept, said)
        engine.asked.clear()
        beside = cycle.OnHost(order, place, engine, beside=True)
    assert not any(isinstance(one, Opening) for one in engine.asked)
    store = beside.plain_store()
    archive = store.folder("trades").archive
    assert store.read("trades").committed.seq == engine.kept.projection.seq
    assert not list(archive.glob("ops-before-*"))

    engine.kept = register.append(engine.kept, said)
    cycle.OnHost(order, place, engine)
    assert store.read("trades").committed.seq == engine.kept.projection.seq
    assert list(archive.glob("ops-before-*"))


@pytest.mark.parametrize(("size", "is_sent"), [(100, True), (FLEET_DOCUMENT_BYTES // 2, False)])
def test_a_relay_that_was_written_goes_along_if_the_engine_takes_it(tmp_path, size, is_sent):
    """It counts bytes, and one character may have three: refused, the launch would never end."""
    root = Root(tmp_path)
    root.make()
    folder = root.agent("trades")
    folder.make()
    folder.draft.write_text("字" * size)
    sent = []

    class Engine:
        def commit(self, known, new, documents):
            sent.append(dict(documents))
            return []

    own = cycle.HostRegister(Engine(), folder, Redaction(), lambda _: None)
    ended = events.LaunchEnded(ts=clock.now(), launch="l", cycle=3, session="s", exit="clean")
    own.commit(1, [ended], {})
    assert bool(sent[0]) == is_sent
    assert all(len(data) <= FLEET_DOCUMENT_BYTES for data in sent[0].values())
