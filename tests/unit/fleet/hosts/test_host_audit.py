"""The audit trail of an agent on a fleet continues on every host, and is on the remote."""

import pytest

from conftest import RELAY
from rekindle.documents import relay
from rekindle.fleet.hosts.host_audit import HostAuditTrail
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore, replica
from rekindle.system.git.remote_repository import RemoteRepository

TRAIL = "refs/heads/rekindle/trades/relay"


class AuditedHost:
    def __init__(self, fleet, clock, name, generation):
        fleet.at(name, generation).bring(None)
        self.clone = fleet.repository(name)
        self.reports = []
        trail = HostAuditTrail(
            self.clone.path, "trades", RemoteRepository(fleet.url, TRAIL), self.reports.append
        )
        self.store = FileStore(
            fleet.root / name / "project",
            host="the fleet",
            settings=Settings(),
            clock=clock,
            audit=trail,
        )
        self.store.root.project.mkdir(exist_ok=True)
        self.store.root.make()

    def receive(self, other, now):
        """Take over the agent, as the engine knows it."""
        self.store.open_private("trades")
        known = other.store.read("trades").committed
        path = known.documents["relay"].path
        documents = {path: other.store.archived("trades", path)}
        replica.receive_agent(self.store.folder("trades"), known, documents, now)

    def commit(self, words):
        with self.store.writer("trades") as writer:
            writer.commit_relay(relay.parse(RELAY.replace("parser", words)), by="agent")


@pytest.fixture
def host(fleet, clock):
    made = AuditedHost(fleet, clock, "here", 1)
    made.store.create("trades")
    return made


def list_trail(fleet):
    return fleet.remote.git("log", "--format=%H", TRAIL).splitlines()


def test_every_relay_is_on_the_remote(fleet, host):
    """As a chain of commits, which the agent's clone has too."""
    for words in ("lexer", "writer"):
        host.commit(words)
    trail = list_trail(fleet)
    assert len(trail) == 2
    assert "writer" in fleet.remote.git("show", f"{TRAIL}:consensus.md")
    assert host.clone.git("rev-parse", TRAIL) == trail[0]
    assert host.reports == []


def test_another_host_continues_the_trail(fleet, host, clock):
    """Its log starts with the agent's state, without the earlier relays."""
    host.commit("lexer")
    [first] = list_trail(fleet)
    other = AuditedHost(fleet, clock, "there", 2)
    other.receive(host, clock())
    other.commit("writer")
    trail = list_trail(fleet)
    assert trail[1:] == [first]
    # The first host gets the agent back.
    back = AuditedHost(fleet, clock, "here", 3)
    back.receive(other, clock())
    back.commit("reader")
    assert list_trail(fleet)[1:] == trail
    assert other.reports == back.reports == []


def test_a_remote_that_is_out_of_reach_does_not_fail_a_cycle(fleet, host):
    """The next push includes the relay."""
    host.commit("lexer")
    away = fleet.remote.path.rename(fleet.root / "away.git")
    host.commit("writer")
    assert len(host.reports) == 1
    assert "audit trail" in host.reports[0].words
    away.rename(fleet.remote.path)
    host.commit("reader")
    assert len(list_trail(fleet)) == 3
