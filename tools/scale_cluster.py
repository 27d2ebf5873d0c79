"""Render the measured costs of a cluster over PostgreSQL for the page on the cost of a fleet.

scale_cluster.json contains the figures: `just cluster costs --write` measures and writes them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

FIGURES: Final = Path(__file__).with_name("scale_cluster.json")
DEVELOPMENT: Final = "development"
COLUMN: Final = "cluster, PostgreSQL"
IDLE_WORDS: Final = """\
A waiting agent costs nothing here either: the servers made no write request for a workflow in
either minute. The statements of both columns are Temporal's own, such as membership of the servers
and the list of namespaces. The first column was measured sooner after the start of the cluster, and
most of what it has more are statements on task queues."""
GROWTH_WORDS: Final = """\
For the next table, running agents were added step by step. Each of them ran a half-hour cycle with
constant tool calls {times} times as fast, so that one of them loads the engine like {times} real
ones, without heartbeats. Growth counts as linear while each agent makes at least 80 % of the
updates of the first step, and while the 95th percentile of the latency of an update is less than
twice as long."""


class EngineCost(msgspec.Struct, frozen=True):
    """The cost of one thing; counters of PostgreSQL are 0 for the development server."""

    requests: float = 0.0
    """Writes of the engine to its database, as its own metrics count them."""
    actions: float = 0.0
    transactions: float = 0.0
    """Transactions of PostgreSQL that write."""
    commits: float = 0.0
    writes: float = 0.0
    locks: float = 0.0
    reads: float = 0.0
    statements: float = 0.0
    bytes: float = 0.0
    wal_bytes: float = 0.0
    syncs: float = 0.0
    server_ms: float = 0.0
    database_ms: float = 0.0
    worker_ms: float = 0.0


class MessageCosts(msgspec.Struct, frozen=True):
    second: EngineCost
    """A second without any work."""
    cycle: EngineCost
    fold: EngineCost
    beat: EngineCost
    load_average: float


class CycleFigures(msgspec.Struct, frozen=True):
    postgresql: str
    engines: dict[str, MessageCosts]
    """By number of shards, and `development`."""


class LoadCosts(msgspec.Struct, frozen=True):
    agent_hour: EngineCost
    brief: EngineCost


class LoadFigures(msgspec.Struct, frozen=True):
    engines: dict[str, LoadCosts]
    load_average: float


class IdleFigures(msgspec.Struct, frozen=True):
    """An engine without agents and with many that wait, per minute; and the start of one."""

    agents: int
    start: EngineCost
    none: EngineCost
    idle: EngineCost
    load_average: float


class StepFigures(msgspec.Struct, frozen=True):
    """Running agents in compressed time; amounts per second, processors in cores."""

    agents: int
    failed: float
    updates: float
    p50_ms: float
    p95_ms: float
    transactions: float
    syncs: float
    sync_share: float
    lock_ms: float
    servers: float
    database: float
    worker: float
    others: float
    idle: float
    waits: dict[str, float]

    @property
    def cpu_ms_per_update(self) -> float:
        return 1e3 * (self.servers + self.database + self.worker) / self.updates


class GrowthCosts(msgspec.Struct, frozen=True):
    steps: list[StepFigures]
    limit: int | None
    cause: str | None


class GrowthFigures(msgspec.Struct, frozen=True):
    times: int
    """How much faster than real ones the agents were."""
    clusters: dict[str, GrowthCosts]
    load_average: float


class ClusterFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    temporal: str
    cycles: CycleFigures
    idle: IdleFigures | None = None
    growth: GrowthFigures | None = None
    """None as long as `just cluster costs growth --write` has not run; likewise for `load`."""
    load: LoadFigures | None = None

    @property
    def shards(self) -> str:
        """Number of shards of the cluster of the column."""
        return min((one for one in self.cycles.engines if one != DEVELOPMENT), key=int)

    @property
    def load_averages(self) -> str:
        """Lowest and highest load average of the machine at the end of an engine's measurement."""
        found = [one.load_average for one in self.cycles.engines.values()]
        return f"{min(found):.0f} to {max(found):.0f}"

    @property
    def costs(self) -> MessageCosts:
        return self.cycles.engines[self.shards]

    def describe_limit(self) -> str:
        """Return a sentence with the first step that grew less than in proportion."""
        if self.growth is None:
            return (
                "The number of running agents at which growth stops being linear is not known yet. "
                "`just cluster costs growth`\nmeasures it, but needs a machine without other load."
            )
        found = []
        for shards, growth in sorted(self.growth.clusters.items(), key=lambda one: int(one[0])):
            if growth.limit is None:
                last = growth.steps[-1].agents
                found.append(f"with {shards} shards, growth was linear up to {last} agents")
                continue
            (step,) = [one for one in growth.steps if one.agents == growth.limit]
            found.append(
                f"with {shards} shards, growth stopped being linear at {step.agents} agents and "
                f"{format_amount(step.updates)} updates/s, and the limit was the {growth.cause}"
            )
        words = "; ".join(found)
        return f"{words[0].upper()}{words[1:]}."


def read_figures() -> ClusterFigures:
    return msgspec.json.decode(FIGURES.read_bytes(), type=ClusterFigures)


def render_statements(figures: ClusterFigures) -> str:
    """Return the table of what each message costs PostgreSQL."""
    costs = figures.costs
    things = {
        "one cycle": costs.cycle,
        "one fold": costs.fold,
        "one heartbeat of a host": costs.beat,
    }
    if figures.idle:
        things["the start of an agent"] = figures.idle.start
    if figures.load:
        things["one brief"] = figures.load.engines[figures.shards].brief
    rows = [
        (
            name,
            format_amount(one.requests),
            format_amount(one.transactions),
            " + ".join(map(format_amount, (one.writes, one.locks, one.reads))),
            format_bytes(one.bytes),
            format_bytes(one.wal_bytes),
        )
        for name, one in things.items()
    ]
    head = (
        "",
        "write requests of the servers",
        "transactions that write",
        "statements: writes + row locks + reads",
        "database growth",
        "log (WAL)",
    )
    return format_table(head, rows)


def render_engines(figures: ClusterFigures) -> str:
    """Return the table that compares the engines of the same run."""
    engines = figures.cycles.engines
    names = [DEVELOPMENT, *sorted((one for one in engines if one != DEVELOPMENT), key=int)]
    columns = [engines[one] for one in names]
    words = ["development server", *(f"cluster, {one} shards" for one in names[1:])]

    def row(name: str, values: Sequence[float], unit: str = "") -> tuple[str, ...]:
        return (name, *(f"{format_amount(value)}{unit}" if value else "–" for value in values))

    return format_table(
        ("in the same run", *words),
        [
            row("write requests per cycle", [one.cycle.requests for one in columns]),
            row("PostgreSQL transactions per cycle", [one.cycle.transactions for one in columns]),
            row("server CPU time per cycle", [one.cycle.server_ms for one in columns], " ms"),
            row("PostgreSQL CPU time per cycle", [one.cycle.database_ms for one in columns], " ms"),
            row("write requests per heartbeat", [one.beat.requests for one in columns]),
            row(
                "server and PostgreSQL CPU time per heartbeat",
                [one.beat.server_ms + one.beat.database_ms for one in columns],
                " ms",
            ),
            row(
                "PostgreSQL transactions per minute without work",
                [60 * one.second.transactions for one in columns],
            ),
            row(
                "CPU time per minute without work",
                [60 * (one.second.server_ms + one.second.database_ms) for one in columns],
                " ms",
            ),
        ],
    )


def render_idle(figures: ClusterFigures) -> str:
    idle = figures.idle
    if idle is None:
        return "Waiting agents have not been measured yet; `just cluster costs idle` does that."
    rows: Mapping[str, tuple[float, float]] = {
        "transactions that write, per minute": (idle.none.transactions, idle.idle.transactions),
        "statements per minute": (idle.none.statements, idle.idle.statements),
        "server CPU time per minute": (idle.none.server_ms, idle.idle.server_ms),
        "PostgreSQL CPU time per minute": (idle.none.database_ms, idle.idle.database_ms),
    }
    table = format_table(
        ("", "no agent", f"{idle.agents:,} waiting agents"),
        [
            (name, *(f"{format_amount(one)}{' ms' if 'CPU' in name else ''}" for one in values))
            for name, values in rows.items()
        ],
    )
    return f"{table}\n\n{IDLE_WORDS}"


def render_growth(figures: ClusterFigures) -> str:
    """Return the table of the steps, with the share of the first step's updates per agent."""
    if figures.growth is None:
        return figures.describe_limit()
    clusters = sorted(figures.growth.clusters.items(), key=lambda one: int(one[0]))
    rows = []
    for shards, growth in clusters:
        first = growth.steps[0]
        for step in growth.steps:
            share = step.updates / step.agents / (first.updates / first.agents)
            rows.append(
                (
                    shards,
                    f"{step.agents}{' (limit)' if step.agents == growth.limit else ''}",
                    format_amount(step.updates),
                    f"{share:.0%}",
                    f"{step.p50_ms:.0f} and {step.p95_ms:.0f} ms",
                    f"{step.lock_ms:.2g} ms",
                    format_amount(step.transactions),
                    f"{step.sync_share:.0%}",
                    " + ".join(f"{one:.2f}" for one in (step.servers, step.database, step.worker)),
                    f"{step.cpu_ms_per_update:.0f} ms",
                    f"{step.others:.2f}",
                    f"{step.idle:.2f}",
                )
            )
    head = (
        "shards",
        "running agents",
        "updates/s",
        "per agent, of the first step",
        "latency p50 and p95",
        "wait for shards per update",
        "transactions/s",
        "time in fsync",
        "cores: servers + PostgreSQL + worker",
        "CPU time per update",
        "other programs",
        "idle",
    )
    words = GROWTH_WORDS.format(times=figures.growth.times)
    return "\n\n".join((words, format_table(head, rows), figures.describe_limit()))


def format_amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"  # noqa: PLR2004 - two digits do


def format_bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1_000:  # noqa: PLR2004 - that is what a unit is
            return f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:.3g} TB"


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
