"""Every screen shows the same state and reason, for every state that the simulation reaches."""

from datetime import UTC
from types import SimpleNamespace

import msgspec
import pytest
from host import YEAR, Host
from oracle import NAME
from scenarios import drawn

from rekindle.cli import status
from rekindle.cli.rows import Shown
from rekindle.documents import event as events
from rekindle.documents import morning
from rekindle.flows.gather_morning import GatherMorning
from rekindle.policy import endings
from rekindle.policy.fold import fold
from rekindle.policy.row import Around, make_row
from rekindle.policy.settings import Runtime

SEEDS = range(10)
YEARS_EACH = 0.05


class Watched(Host):
    """A host whose agent's states are kept, one of each kind, and every notification."""

    def __init__(self, scenario, seed):
        self.states, self.notices = {}, []
        super().__init__(scenario, seed)

    def world(self):
        def notify(what, words):
            self.notices.append((what, words, self.known(), self.clock()))
            self.oracle.notified(what, words)

        return msgspec.structs.replace(super().world(), notify=notify)

    def known(self):
        return self.store.read(NAME).projection

    def heard(self, event):
        super().heard(event)
        known, now = self.known(), self.clock()
        for is_supervised in (True, False):
            row = make_row(known, Around(now=now, is_supervised=is_supervised))
            run, tried = known.run, [*known.attempts.values()][-1:]
            kind = (
                row.state,
                row.outcome,
                run.safe.why if run.is_safe else "",
                run.ended.why if run.is_over else "",
                tried[0].exit if tried else None,
                is_supervised,
            )
            self.states.setdefault(kind, (known, now))


class OneAgent:
    """The store of one agent, as far as the page looks into it."""

    def __init__(self, known):
        self._known = known

    def exists(self, agent):
        return True

    def read(self, agent):
        return SimpleNamespace(projection=self._known)

    def document(self, agent, name):
        return None

    def newest_events(self, agent):
        return iter(())


@pytest.fixture(scope="module")
def hosts():
    lived = []
    for seed in SEEDS:
        host = Watched(drawn(seed), seed)
        host.live(YEARS_EACH * YEAR)
        lived.append(host)
    return lived


def test_every_screen_shows_the_same_state_and_reason(hosts, capsys, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    states = {kind: found for host in hosts for kind, found in host.states.items()}
    known, now = hosts[0].known(), hosts[0].clock()
    done = events.RunEnded(ts=now, seq=known.seq + 1, outcome="done")
    states["done", "done", "", "done", "clean", False] = fold(known, [done]), now
    for kind, (known, now) in states.items():
        row = make_row(known, Around(now=now, zone=UTC, is_supervised=kind[-1]))
        shown = Shown(row).as_json()
        assert (shown["state"], shown["reason"]) == (kind[0], row.reason)
        status._print(Shown(row), now)
        reason = f": {row.reason}" if row.reason else ""
        assert f"  state:  {row.label}{reason}\n" in capsys.readouterr().out
        rows = SimpleNamespace(row=lambda _agent, row=row: row)
        page = GatherMorning(OneAgent(known), now, UTC, Runtime(), rows).page("p", [NAME])
        (entry,) = page.entries
        assert (entry.state, entry.label, entry.why) == (row.state, row.label, row.reason)
        why = f" ({row.reason})" if row.reason else ""
        assert f"{NAME}: {row.label}{why}\n" in morning.render(page)
    reached = {kind[0] for kind in states}
    print(f"\n{len(states)} kinds of states: {sorted(reached)}")
    assert {"running", "waiting", "needs you", "stopped", "done"} <= reached
    assert len(states) > 20


def test_notifications_name_the_state_that_status_shows(hosts):
    """What is told of an ending is what every screen shows from then on."""
    compared = set()
    for host in hosts:
        for what, words, known, now in host.notices:
            title, _ = endings.notice(what)
            if what not in endings.ENDINGS:
                continue  # news of a launch that runs on, not a state
            if what == "limit" and not known.run.is_over:
                # It is notified before it is recorded: a killed supervisor must not leave it out.
                assert (title, words.split(": ")[-1]) == ("waiting", endings.explain("limit"))
            else:
                row = make_row(known, Around(now=now))
                assert (title, words.splitlines()[0]) == (row.label, row.reason), what
                if row.command and "→" in words:
                    assert words.splitlines()[-1] == f"→ {row.command}"
            compared.add(what)
    print(f"\nnotified of: {sorted(compared)}")
    assert len(compared) >= 4
