"""A launch stores only its own reports, and stops where the rest of the quota is for others."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.flows.launches.quota_watch import QuotaWatch
from rekindle.policy.quota.pacing import QuotaHold
from rekindle.policy.supervision.budget import RunSpending

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FULL = (QuotaWindow("5 hours", 100.0, NOW + timedelta(hours=1), 300),)
HOLD = QuotaHold(NOW + timedelta(days=3), "the rest is for other agents")


@pytest.fixture
def watch():
    """Return a function that makes the watch of a launch at log position 9."""

    def make(restarted=0, *, rechecks=True):
        run = SimpleNamespace(lifted=restarted)
        attempts = {"before": SimpleNamespace(seq=5), "this": SimpleNamespace(seq=9)}
        view = SimpleNamespace(projection=SimpleNamespace(run=run, attempts=attempts))
        made = SimpleNamespace(taken=[])
        ports = SimpleNamespace(
            clock=lambda: NOW,
            store=SimpleNamespace(read=lambda name: view),
            note_quota=lambda route, report: made.taken.append(report),
            note_spending=lambda *spending: None,
            route_stop=lambda route: HOLD,
            rechecks_quota=rechecks,
        )
        harness = SimpleNamespace(quota=lambda line: QuotaReport(FULL, times[line]))
        times = {b"old": NOW - timedelta(seconds=1), b"new": NOW, b"untimed": None}
        agent = SimpleNamespace(name="a", harness=harness, stays=False)
        origin = LaunchStarted(
            seq=9, ts=NOW, launch="this", cycle=1, session="s", resumes=True, harness="codex"
        )
        made.watch = QuotaWatch(origin, agent, ports)
        return made

    return make


@pytest.mark.parametrize(("line", "taken"), [(b"old", 0), (b"new", 1), (b"untimed", 1)])
def test_a_report_from_before_the_launch_is_not_its_own(watch, line, taken):
    """A session that was carried over begins with the reports of another account."""
    made = watch()
    made.watch.take_lines([b"old", line])
    assert len(made.taken) == taken


@pytest.mark.parametrize(("rechecks", "until"), [(True, NOW), (False, HOLD.until)])
def test_a_supervisor_that_asks_again_may_go_on_earlier(watch, rechecks, until):
    stopped = watch(rechecks=rechecks).watch
    meter = SimpleNamespace(spent=RunSpending)
    assert stopped.must_stop("run", meter)
    assert (stopped.exit.kind, stopped.exit.words) == ("limit", HOLD.words)
    assert stopped.exit.is_held
    assert stopped.exit.resets_at == int(until.timestamp()) + 1


@pytest.mark.parametrize(("restarted", "stops"), [(0, True), (4, True), (7, False)])
def test_a_launch_after_a_restart_may_use_the_quota(watch, restarted, stops):
    meter = SimpleNamespace(spent=RunSpending)
    assert watch(restarted).watch.must_stop("run", meter) is stops
