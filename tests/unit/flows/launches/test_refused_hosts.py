"""A refused host is recorded each time, and the operator gets one notification per run."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from rekindle.documents import events
from rekindle.flows.launches.refused_hosts import record_refused_host
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.thresholds.sandbox_limits import REFUSED_HOSTS


@pytest.fixture
def ports(tmp_path):
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    notified, reported = [], []
    return SimpleNamespace(
        store=store,
        clock=clock.read_clock,
        report_trouble=nullcontext,
        tell=reported.append,
        notify=lambda kind, text: notified.append((kind, text)),
        notified=notified,
        reported=reported,
    )


def start_run(ports):
    with ports.store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=clock.read_clock()))


def test_each_host_is_notified_once_in_a_run(ports):
    start_run(ports)
    for name in ("a.example:443", "b.example:8080", "a.example:443"):
        record_refused_host(ports, "trades", "l1", name)
    first = "a.example:443\n→ to allow it: `sandbox: {network: [a.example]}`"
    second = "b.example:8080\n→ to allow it: `sandbox: {network: ['b.example:8080']}`"
    assert ports.notified == [("host refused", first), ("host refused", second)]
    assert [report.host for report in ports.reported] == [
        *("a.example:443", "b.example:8080", "a.example:443")
    ]
    start_run(ports)
    record_refused_host(ports, "trades", "l2", "a.example:443")
    assert ports.notified[2:] == [("host refused", first)]


def test_an_agent_cannot_send_any_number_of_notifications(ports):
    start_run(ports)
    for number in range(REFUSED_HOSTS + 5):
        record_refused_host(ports, "trades", "l1", f"h{number}.example:443")
    assert len(ports.notified) == REFUSED_HOSTS
    assert len(ports.reported) == REFUSED_HOSTS + 5
