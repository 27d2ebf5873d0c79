"""A host's metrics: recorded from its agents' requests, and exported by a real worker."""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

import msgspec
import pytest

import prerequisites
from fleet.apart import Apart
from fleet.engine import free_port
from fleet.pace import AGENT, Project, begun, over
from fleet.scraped import parse_page, read_page
from rekindle.documents import events
from rekindle.documents.screens.metric_names import (
    HOST_METRICS,
    HOSTED_AGENT_METRICS,
)
from rekindle.errors import UsageError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.telemetry import make_runtime
from rekindle.fleet.hosts.host_metrics import HostMetrics
from rekindle.policy.fleet.agent_leases import OpenLease
from rekindle.policy.fleet.agent_registry import CommitResult, ReplicaState
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.metrics_settings import MetricsSettings

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
WORKFLOW = "default/trades"
OWN = {"project": "default", "agent": "trades"}


class Meter:
    """Holds the values that were recorded, by name and labels."""

    def __init__(self):
        self.values = {}

    def create_counter(self, name, _meaning):
        return self._make(name, lambda old, new: old + new, "add")

    def create_gauge_float(self, name, _meaning):
        return self._make(name, lambda _old, new: new, "set")

    def _make(self, name, change, verb):
        def record(_self, value, labels=None):
            key = (name, frozenset((labels or {}).items()))
            self.values[key] = change(self.values.get(key, 0), value)

        return type("Instrument", (), {verb: record})()

    def read(self, name, **labels):
        return self.values.get((f"rekindle_{name}", frozenset(labels.items())))


@pytest.fixture
def meter():
    return Meter()


@pytest.fixture
def metrics(meter, tmp_path):
    return HostMetrics(meter, tmp_path, "two")


def commit(*happened):
    lines = tuple(
        events.render(msgspec.structs.replace(event, seq=place)).decode()
        for place, event in enumerate(happened, 1)
    )
    return CommitResult(lines)


def launch_ended(exit_kind="clean", **more):
    return events.LaunchEnded(ts=NOW, launch="l", cycle=1, session="s", exit=exit_kind, **more)


def opened(*happened):
    numbered = [
        msgspec.structs.replace(event, seq=place) for place, event in enumerate(happened, 1)
    ]
    projection = fold_events(Projection(agent="trades"), numbered)
    return OpenLease(generation=1, kept=ReplicaState(projection, {}), definition=None)


MOVED = events.OwnerChanged(ts=NOW, host="two", previous="one")
STARTED = events.LaunchStarted(ts=NOW, launch="l", cycle=1, session="s", harness="command")


def test_committed_events_are_counted_by_agent(meter, metrics):
    ended = events.CycleEnded(ts=NOW, cycle=1, verdict="progress")
    metrics.observe(WORKFLOW, commit(launch_ended(), ended))
    metrics.observe(WORKFLOW, commit(launch_ended("crash")))
    assert meter.read("cycles_total", **OWN, verdict="progress") == 1
    assert meter.read("launches_total", **OWN, exit="clean") == 1
    assert meter.read("launches_total", **OWN, exit="crash") == 1
    assert meter.read("last_active_timestamp_seconds", **OWN) > 0
    assert meter.read("engine_answered_timestamp_seconds") > 0


def test_spending_counts_from_what_the_run_had_spent_before(meter, metrics):
    """A run's totals include the launches on other hosts, which these hosts count."""
    metrics.observe(WORKFLOW, opened(launch_ended(run_tokens=100, run_usd=1.0)))
    metrics.observe(WORKFLOW, commit(launch_ended(run_tokens=150, run_usd=1.5)))
    metrics.observe(WORKFLOW, commit(events.RunStarted(ts=NOW)))
    metrics.observe(WORKFLOW, commit(launch_ended(run_tokens=10, run_usd=0.25)))
    assert meter.read("tokens_total", **OWN) == 60
    assert meter.read("cost_usd_total", **OWN) == 0.75


def test_a_restarted_worker_does_not_count_a_runs_total_again(meter, metrics):
    metrics.observe(WORKFLOW, commit(launch_ended(run_tokens=100, run_usd=1.0)))
    metrics.observe(WORKFLOW, commit(launch_ended(run_tokens=130, run_usd=1.25)))
    assert meter.read("tokens_total", **OWN) == 30
    assert meter.read("cost_usd_total", **OWN) == 0.25


@pytest.mark.parametrize(
    ("before", "cause"),
    [([STARTED], "lost"), ([STARTED, launch_ended()], "moved"), ([], "moved")],
)
def test_a_takeover_from_a_lost_host_is_told_from_a_planned_one(meter, metrics, before, cause):
    counted = {"lost": 0, "moved": 0} | {cause: 1}
    metrics.observe(WORKFLOW, opened(*before, MOVED))
    metrics.observe(WORKFLOW, opened(*before, MOVED, launch_ended("lost")))
    found = {word: meter.read("takeovers_total", cause=word) for word in counted}
    assert found == counted


def test_an_agent_counts_as_unpushed_until_its_next_push(meter, metrics):
    failed = events.WorkspacePushFailed(ts=NOW, words="no space")
    assert meter.read("push_failures_total") == 0
    metrics.observe(WORKFLOW, commit(failed))
    metrics.observe(WORKFLOW, commit(failed))
    assert (meter.read("push_failures_total"), meter.read("unpushed_agents")) == (2, 1)
    metrics.observe(WORKFLOW, commit(events.WorkspacePushed(ts=NOW, revision="r")))
    assert (meter.read("push_failures_total"), meter.read("unpushed_agents")) == (2, 0)


def test_an_agent_runs_only_where_its_cycle_does(meter, metrics):
    metrics.show_running([WORKFLOW])
    assert meter.read("agent_state", **OWN, state="running") == 1
    assert meter.read("host_sessions") == 1
    metrics.show_running([])
    assert meter.read("agent_state", **OWN, state="running") == 0
    assert meter.read("host_sessions") == 0


def test_an_answer_that_cannot_be_read_does_not_stop_the_agent(meter, metrics):
    metrics.observe(WORKFLOW, CommitResult(("not an event",)))
    assert meter.read("cycles_total", **OWN, verdict="progress") is None


def test_two_workers_cannot_share_an_address():
    settings = MetricsSettings(prometheus=f":{free_port()}")
    held = make_runtime(settings, {})
    assert held is not None
    with pytest.raises(UsageError, match="Address already in use") as refused:
        make_runtime(settings, {})
    assert "two workers" in refused.value.hint


def test_a_worker_exports_the_engines_and_its_own_metrics(engine, tmp_path):
    """All names are in one module, each with its host, pool and the type that it has there."""
    address = f"127.0.0.1:{free_port()}"
    project = Project(tmp_path / "shop", engine.address, cycles=1, metrics={"prometheus": address})
    worker = project.worker("measured", 3)

    async def run_agent():
        agents = AgentClient(await project.connect())
        await begun(agents, AGENT, project.definition)
        await over(agents, AGENT, 120)

    try:
        asyncio.run(run_agent())
        deadline = time.monotonic() + 120
        while 'rekindle_fleet_agents{state="safe"' not in (text := read_page(address)):
            assert time.monotonic() < deadline, text
            time.sleep(0.2)
    finally:
        worker.close()
    types = dict(re.findall(r"^# TYPE (rekindle_\w+) (\w+)", text, re.MULTILINE))
    known = {metric.name: metric for metric in (*HOST_METRICS, *HOSTED_AGENT_METRICS)}
    assert set(types) <= set(known)
    assert {metric.name for metric in HOST_METRICS} <= set(types)
    values, host = parse_page(text), {"host": "measured", "pool": "default"}
    own = host | {"project": "shop", "agent": AGENT}
    for name, labels, value in (
        ("rekindle_host_slots", host, 3),
        ("rekindle_fleet_agents", host | {"state": "safe"}, 0),
        ("rekindle_cycles_total", own | {"verdict": "none"}, 1),
        ("rekindle_launches_total", own | {"exit": "clean"}, 1),
        ("temporal_request", host | {"operation": "GetSystemInfo"}, 1),
    ):
        assert values[name, frozenset(labels.items())] == value, name
    program = shutil.which("promtool")
    if program is None:
        prerequisites.refuse("promtool is not installed: `.ci/run` shows how")
    done = subprocess.run([program, "check", "metrics"], input=text, text=True, check=False)
    assert done.returncode in {0, 3}  # 3: the names of the SDK's counters have no suffix


def test_a_decider_exports_the_sdks_metrics(engine, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    project = Project(tmp_path / "shop", engine.address)
    argv = [sys.executable, "-m", "rekindle", "fleet", "decider", "--trust", "--metrics", address]
    decider = Apart(argv, cwd=project.path)
    try:
        text, deadline = "", time.monotonic() + 120
        while "temporal_request{" not in text:
            assert time.monotonic() < deadline, text
            assert decider.poll() is None
            with contextlib.suppress(OSError):
                text = read_page(address)
            time.sleep(0.1)
    finally:
        decider.close()
    assert f'host="{os.uname().nodename}"' in text
