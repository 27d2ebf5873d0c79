"""A host's own metrics, recorded from the requests that its agents send to the engine."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from pathlib import Path

import msgspec
from temporalio.client import Client
from temporalio.common import MetricCounter, MetricGaugeFloat, MetricMeter
from temporalio.service import RPCError

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.screens import metric_names as names
from rekindle.documents.screens.metric_names import Metric
from rekindle.documents.screens.metrics_text import AgentCounts
from rekindle.errors import RekindleError
from rekindle.fleet.engine.agent_list import ALL_AGENTS
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import EngineAnswer
from rekindle.policy.fleet.agent_leases import OpenLease
from rekindle.policy.fleet.agent_registry import AgentDefinition, CommitResult
from rekindle.policy.operator.count_events import NOTHING_COUNTED, count_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS
from rekindle.policy.supervision.next_move import select_open_launches
from rekindle.thresholds.fleet_limits import FLEET_COUNT_SECONDS, FLEET_GAUGE_SECONDS

_COUNTED_STATES = ("queued", "running", "waiting", "safe")
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
LOST, MOVED = "lost", "moved"
"""Why a host took over an agent: the previous host was lost, or gave the agent back."""


class _HostedAgent(msgspec.Struct):
    labels: dict[str, str]
    spent: AgentCounts | None = None
    """The run's spending so far, from which the next report is counted; None if unknown."""
    usd: float = 0.0
    """Amount spent on this host since the worker started, in dollars."""
    is_unpushed: bool = False


class HostMetrics:
    """Records what one worker does. Without an exporter, the SDK drops the values."""

    def __init__(self, meter: MetricMeter, root: Path, host: str) -> None:
        self._meter, self._root, self._host = meter, root, host
        self._counters: dict[str, MetricCounter] = {}
        self._gauges: dict[str, MetricGaugeFloat] = {}
        self._agents: dict[str, _HostedAgent] = {}
        """Agents that this worker has run, by workflow id."""
        self._running: set[str] = set()
        # Prometheus's `increase()` notices the first event only if its counter was 0 before.
        for metric in (names.CUT_OFFS, names.PUSH_FAILURES):
            self._add(metric, 0)
        for cause in (LOST, MOVED):
            self._add(names.TAKEOVERS, 0, {"cause": cause})
        self._set(names.UNPUSHED_AGENTS, 0)

    def observe(self, workflow: str, answer: EngineAnswer) -> None:
        """Record the engine's answer to an agent's request."""
        self.hear_engine()
        with contextlib.suppress(RekindleError):  # metrics must not stop an agent
            if isinstance(answer, OpenLease):
                agent = self._find_agent(workflow, answer.definition)
                if answer.kept is not None:
                    self._take_up(agent, answer.kept.projection)
            elif isinstance(answer, CommitResult):
                self._count(workflow, [events.parse(line.encode()) for line in answer.lines])

    def hear_engine(self) -> None:
        self._set(names.ENGINE_ANSWERED, time.time())

    def count_cut_off(self) -> None:
        self._add(names.CUT_OFFS, 1)

    async def keep_current(
        self, client: Client, slots: int, running: Callable[[], Collection[str]]
    ) -> None:
        """Update the gauges until cancelled. `running` returns the agents' workflow ids."""
        if self._meter is MetricMeter.noop:
            return  # nothing is exported, so do not ask the engine
        self._set(names.HOST_SLOTS, slots)
        self.hear_engine()  # the worker has just connected
        counted = -FLEET_COUNT_SECONDS
        while True:
            self.show_running(running())
            is_due = time.monotonic() - counted >= FLEET_COUNT_SECONDS
            with contextlib.suppress(RPCError):
                if is_due:
                    await self._count_fleet(client)
                    counted = time.monotonic()
                else:
                    await client.service_client.check_health(timeout=_MOST)
                self.hear_engine()
            await asyncio.sleep(FLEET_GAUGE_SECONDS)

    def show_running(self, running: Collection[str]) -> None:
        self._set(names.HOST_SESSIONS, len(running))
        for workflow in self._running ^ set(running):
            labels = self._find_agent(workflow).labels | {"state": "running"}
            self._set(names.AGENT_STATE, int(workflow in running), labels)
        self._running = set(running)

    async def _count_fleet(self, client: Client) -> None:
        for state in _COUNTED_STATES:
            query = f'{ALL_AGENTS} AND RekindleState="{state}"'
            found = await client.count_workflows(query, rpc_timeout=_MOST)
            self._set(names.FLEET_AGENTS, found.count, {"state": state})

    def _take_up(self, agent: _HostedAgent, projection: Projection) -> None:
        spent = projection.run.spent
        agent.spent = AgentCounts(run_tokens=spent.tokens, run_usd=spent.usd)
        self._mark_unpushed(agent, is_unpushed=False)
        moved = projection.moved
        if moved.previous and moved.seq == projection.seq:
            is_lost = any(not launch.exit for launch in select_open_launches(projection))
            self._add(names.TAKEOVERS, 1, {"cause": LOST if is_lost else MOVED})

    def _count(self, workflow: str, new: Collection[AnyEvent | UnknownEvent]) -> None:
        agent = self._find_agent(workflow)
        for event in new:
            if isinstance(event, events.WorkspacePushFailed):
                self._add(names.PUSH_FAILURES, 1)
                self._mark_unpushed(agent, is_unpushed=True)
            elif isinstance(event, events.WorkspacePushed):
                self._mark_unpushed(agent, is_unpushed=False)
        # A worker that has just started does not know what the run spent before its first report.
        before = agent.spent or _keep_spending(count_events(AgentCounts(), new))
        after = count_events(before, new)
        agent.spent = _keep_spending(after)
        agent.usd += after.usd - before.usd
        for metric, numbers in (
            (names.CYCLES, after.cycles),
            (names.LAUNCHES, after.launches),
            (names.HANDOFFS, after.handoffs),
        ):
            for word, number in numbers.items():
                self._add(metric, number, agent.labels | {metric.labels[0]: word})
        self._add(names.TOKENS, after.tokens - before.tokens, agent.labels)
        self._set(names.COST, agent.usd, agent.labels)
        self._set(names.LAST_ACTIVE, time.time(), agent.labels)

    def _mark_unpushed(self, agent: _HostedAgent, *, is_unpushed: bool) -> None:
        agent.is_unpushed = is_unpushed
        count = sum(one.is_unpushed for one in self._agents.values())
        self._set(names.UNPUSHED_AGENTS, count)

    def _find_agent(self, workflow: str, definition: AgentDefinition | None = None) -> _HostedAgent:
        """Return an agent's record. `definition` is the one that the engine has just sent."""
        if (agent := self._agents.get(workflow)) is None:
            namespace, _, name = workflow.rpartition("/")
            place = HostFolder(self._root / workflow.replace("/", "~"), name, self._host)
            definition = definition or place.definition()
            project = (definition.project if definition else "") or namespace
            agent = _HostedAgent({"project": project, "agent": name})
            self._agents[workflow] = agent
            for word in NOTHING_COUNTED.launches:
                self._add(names.LAUNCHES, 0, agent.labels | {"exit": word})
        return agent

    def _add(self, metric: Metric, number: int, labels: Mapping[str, str] | None = None) -> None:
        if (counter := self._counters.get(metric.name)) is None:
            counter = self._meter.create_counter(metric.name, metric.meaning)
            self._counters[metric.name] = counter
        counter.add(number, labels)

    def _set(self, metric: Metric, value: float, labels: Mapping[str, str] | None = None) -> None:
        if (gauge := self._gauges.get(metric.name)) is None:
            gauge = self._meter.create_gauge_float(metric.name, metric.meaning)
            self._gauges[metric.name] = gauge
        gauge.set(value, labels)


def _keep_spending(counts: AgentCounts) -> AgentCounts:
    """Return only what the last run has spent."""
    return AgentCounts(run_tokens=counts.run_tokens, run_usd=counts.run_usd)
