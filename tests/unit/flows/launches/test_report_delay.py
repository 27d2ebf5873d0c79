"""Records and edits that do not wait on a host, with the real store in a folder."""

from types import SimpleNamespace

import pytest

from rekindle import config
from rekindle.documents import events
from rekindle.flows.launches.report_delay import ReportDelay
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.log import inbox
from rekindle.system import clock
from rekindle.wiring.open_store import open_store

WAIT = 300.0


class Agent:
    def __init__(self, path):
        (path / "PROMPT.md").write_text("work")
        (path / "rekindle.yaml").write_text(
            "version: 1\nagents: {a: {harness: command, command: ['true']}}\n"
        )
        self.store = open_store(config.load_project(path))
        self.seconds = 0.0
        with self.store.writer("a") as writer:
            writer.fold()
        spec = SimpleNamespace(name="a", budget=None)
        ports = SimpleNamespace(store=self.store, elapsed=lambda: self.seconds, reports_wait=WAIT)
        self.delay = ReportDelay(spec, ports)

    def report(self, *new):
        inbox.append_records(self.store.folder("a").inbox, new, durable=False)

    @property
    def waits(self):
        return self.delay.read_waiting(RunSpending()) is not None


@pytest.fixture
def agent(tmp_path):
    made = Agent(tmp_path)
    made.report(events.Heartbeat(ts=clock.read_clock(), session="s", call="c"))
    assert made.waits
    return made


def test_the_activity_is_seen_while_it_waits(agent):
    waiting = agent.delay.read_waiting(RunSpending())
    assert waiting.heard.at > 0
    assert agent.store.read("a").committed.heard.at == 0


def test_the_wait_ends_and_begins_again_after_a_fold(agent):
    agent.seconds = WAIT
    assert not agent.waits
    agent.delay.note_fold()
    assert agent.waits


def test_a_proposed_relay_does_not_wait(agent):
    text = "## Next Action\n\nGo on.\n"
    agent.report(events.RelayProposed(ts=clock.read_clock(), text=text, by="agent"))
    assert not agent.waits


def test_an_unreadable_record_does_not_wait(agent):
    (segment,) = inbox.list_segments(agent.store.folder("a").inbox)
    with segment.path.open("ab") as file:
        file.write(b"\n1 event {}\n")
    assert not agent.waits


def test_an_edit_of_state_json_does_not_wait(agent):
    path = agent.store.folder("a").state
    path.write_bytes(path.read_bytes() + b" ")
    assert not agent.waits
    agent.delay.note_fold()
    assert agent.waits


def test_many_reports_do_not_wait(agent, monkeypatch):
    """The host reads all of them at each look."""
    monkeypatch.setattr("rekindle.flows.launches.report_delay.FLEET_REPORTS_HELD", 3)
    for number in range(3):
        agent.report(events.Heartbeat(ts=clock.read_clock(), session="s", call=str(number)))
    assert not agent.waits
