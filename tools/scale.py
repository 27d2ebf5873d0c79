"""Generate the page on the cost of a fleet from measured figures.

scale.json contains the figures. `tests/bench/test_fleet.py`, `tests/fleet/test_many.py` and
`tests/fleet/test_cost.py` fail if they measure other values.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from scale_cluster import (
    COLUMN,
    DEVELOPMENT,
    ClusterFigures,
    format_amount,
    format_bytes,
    format_table,
    read_figures,
    render_engines,
    render_growth,
    render_idle,
    render_statements,
)

from rekindle.policy.fleet.brief_times import find_brief_window
from rekindle.policy.settings.runtime_settings import (
    FLEET_HISTORY_EVENTS,
    FLEET_HOST_BEAT_SHARE,
    FleetSettings,
)

HOUR = 3_600
DAY = 86_400
MONTH = 30 * DAY
SHARE_RUNNING = 0.2
CYCLE_SECONDS = 1_800
SLOTS = 50
RETENTION_DAYS = 3
SHARDS = 512
PUSH_LIMIT = 6
"""Pushes per minute that a common git server allows for one repository."""
RUN_EVENTS = FLEET_HISTORY_EVENTS
"""Number of events after which a workflow continues as a new one."""
DECISIONS = 1
"""Decisions per cycle in addition to its updates: the one after its activity."""
TEMPLATE = Path(__file__).parent / "scale.txt"


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Measured figures."""

    events_per_cycle: float
    updates_per_cycle: float
    history_bytes_per_cycle: float
    history_bytes_per_update: float
    server_ms_per_cycle: float
    worker_ms_per_cycle: float
    server_ms_per_beat: float
    database_bytes_per_cycle: float
    database_bytes_per_idle_agent: float
    server_kb_per_idle_agent: float
    worker_kb_per_idle_agent: float
    server_mb: float
    worker_mb: float
    mb_per_running_agent: float
    writes_per_agent_hour: float
    actions_per_agent_hour: float
    writes_per_brief: float
    actions_per_brief: float
    pushes_per_cycle: float

    @property
    def server_ms_per_update(self) -> float:
        """Average cost of a workflow decision; all decisions of a cycle cost about the same."""
        return self.server_ms_per_cycle / (self.updates_per_cycle + DECISIONS)

    @property
    def history_bytes_per_run(self) -> float:
        """Size of a history just before the workflow continues as a new one."""
        return RUN_EVENTS * self.history_bytes_per_cycle / self.events_per_cycle

    @property
    def database_times(self) -> float:
        """Bytes on disk for each byte of history."""
        return self.database_bytes_per_cycle / self.history_bytes_per_cycle


class Load(msgspec.Struct, frozen=True):
    """Load of a number of agents, some of which are running."""

    figures: Figures
    agents: int
    heartbeat: float = float(FleetSettings().heartbeat_timeout)
    fold: float = float(FleetSettings().fold_seconds)

    @property
    def running(self) -> float:
        return self.agents * SHARE_RUNNING

    @property
    def beats(self) -> float:
        return self.hosts / (self.heartbeat * FLEET_HOST_BEAT_SHARE)

    @property
    def cycles(self) -> float:
        return self.running / CYCLE_SECONDS

    @property
    def folds(self) -> float:
        return self.running / self.fold

    @property
    def updates(self) -> float:
        return self.cycles * self.figures.updates_per_cycle + self.folds

    @property
    def history(self) -> float:
        """Growth of the history in bytes per day."""
        figures = self.figures
        cycles = self.cycles * figures.history_bytes_per_cycle
        return DAY * (cycles + self.folds * figures.history_bytes_per_update)

    @property
    def database(self) -> float:
        """Size of the database in bytes, with half-full histories and retained ones."""
        figures = self.figures
        rows = self.agents * figures.database_bytes_per_idle_agent
        history = self.agents * figures.history_bytes_per_run / 2 + self.history * RETENTION_DAYS
        return rows + history * figures.database_times

    @property
    def cores(self) -> float:
        figures = self.figures
        beats = self.beats * figures.server_ms_per_beat
        cycles = self.cycles * figures.server_ms_per_cycle
        return (beats + cycles + self.folds * figures.server_ms_per_update) / 1_000

    @property
    def writes(self) -> float:
        """Write transactions per second, without briefs."""
        return self.running * self.figures.writes_per_agent_hour / HOUR

    def count_transactions(self, cluster: ClusterFigures) -> float:
        """Return the transactions of PostgreSQL per second: of cycles, folds and heartbeats."""
        costs = cluster.costs
        each = ((self.cycles, costs.cycle), (self.folds, costs.fold), (self.beats, costs.beat))
        return sum(rate * cost.transactions for rate, cost in each)

    @property
    def actions(self) -> float:
        """Actions per month, with a daily brief for each agent."""
        running = self.running * self.figures.actions_per_agent_hour * MONTH / HOUR
        return running + self.agents * self.figures.actions_per_brief * MONTH / DAY

    @property
    def briefs(self) -> float:
        """Briefs per second while they are written, if all agents have the same brief hour."""
        return self.agents / find_brief_window(self.agents).total_seconds()

    @property
    def brief_writes(self) -> float:
        return self.briefs * self.figures.writes_per_brief

    @property
    def pushes(self) -> float:
        """Pushes per minute."""
        return self.cycles * 60 * self.figures.pushes_per_cycle

    @property
    def hosts(self) -> int:
        return max(1, round(self.running / SLOTS))


def page() -> str:
    figures = msgspec.json.decode(TEMPLATE.with_name("scale.json").read_bytes(), type=Figures)
    cluster = read_figures()
    text = TEMPLATE.read_text(encoding="utf-8")
    said = {
        "PER_CYCLE": _per_cycle(figures, cluster),
        "PER_AGENT": _per_agent(figures, cluster),
        "BEATS": _beats(figures),
        "LOADS": _loads([Load(figures, agents) for agents in (10, 10_000, 1_000_000)], cluster),
        "CHANGED": _changed(figures),
        "LOAD": _load(figures, cluster),
        "STATEMENTS": render_statements(cluster),
        "ENGINES": render_engines(cluster),
        "IDLE": render_idle(cluster),
        "GROWTH": render_growth(cluster),
        "TEMPORAL": cluster.temporal,
        "POSTGRESQL": cluster.cycles.postgresql,
        "SHARDS": cluster.shards,
        "BUSY": cluster.load_averages,
        "SHARED": f"{PUSH_LIMIT * CYCLE_SECONDS / 60 / figures.pushes_per_cycle:,.0f}",
        "PUSHES": f"{figures.pushes_per_cycle:g}",
        "WINDOW": f"{find_brief_window(10_000).total_seconds() / HOUR:g} hours",
        "SERVER": f"{figures.server_mb:.0f} MB",
        "SERVER_MS": f"{figures.server_ms_per_cycle:.0f} ms",
        "WORKER": f"{figures.worker_mb:.0f} MB",
    }
    for name, words in said.items():
        text = text.replace(f"@{name}@", words)
    return text


def _per_cycle(figures: Figures, cluster: ClusterFigures) -> str:
    cycle = cluster.costs.cycle
    decisions = figures.updates_per_cycle + DECISIONS
    updates = f"{figures.updates_per_cycle:.0f}"
    timers = "0 between consecutive cycles"
    events = f"{figures.events_per_cycle:.0f}"
    history = format_bytes(figures.history_bytes_per_cycle)
    more = format_bytes(figures.history_bytes_per_update)
    beside = cluster.cycles.engines[DEVELOPMENT].cycle
    return format_table(
        ("per cycle", "development server, SQLite", COLUMN),
        [
            ("activities", "1", "1"),
            ("updates", updates, updates),
            ("timers and search attribute changes", timers, timers),
            ("history events", events, events),
            ("history size, with a relay of 6 kB", history, history),
            (
                "database size",
                format_bytes(figures.database_bytes_per_cycle),
                format_bytes(cycle.bytes),
            ),
            (
                "write transactions",
                format_amount(beside.requests),
                f"{format_amount(cycle.transactions)} of PostgreSQL",
            ),
            (
                "server CPU time",
                f"{figures.server_ms_per_cycle:.0f} ms",
                _describe_cpu(cycle.server_ms, cycle.database_ms, beside.server_ms),
            ),
            (
                "worker CPU time",
                f"{figures.worker_ms_per_cycle:.0f} ms",
                f"{cycle.worker_ms:.0f} ms (likewise: {beside.worker_ms:.0f} ms)",
            ),
            ("history size for each additional update", more, more),
            (
                "server CPU time, divided by the updates and the decision",
                f"{figures.server_ms_per_update:.0f} ms",
                _describe_cpu(
                    cycle.server_ms / decisions,
                    cycle.database_ms / decisions,
                    beside.server_ms / decisions,
                ),
            ),
        ],
    )


def _describe_cpu(server: float, database: float, beside: float) -> str:
    """Return CPU time on the cluster, and that of the development server in the same run."""
    return (
        f"{server:.0f} ms, and {database:.0f} ms of PostgreSQL "
        f"(development server in the same run: {beside:.0f} ms)"
    )


def _per_agent(figures: Figures, cluster: ClusterFigures) -> str:
    rows = format_bytes(figures.database_bytes_per_idle_agent)
    history = f"at most {format_bytes(figures.history_bytes_per_run)}"
    cached = f"{figures.worker_kb_per_idle_agent:.0f} kB"
    kept = f"{figures.server_kb_per_idle_agent:.0f} kB"
    beat = cluster.costs.beat
    rows_there = format_bytes(cluster.idle.start.bytes) if cluster.idle else "not measured"
    beside = cluster.cycles.engines[DEVELOPMENT].beat
    on_cluster = _describe_cpu(beat.server_ms, beat.database_ms, beside.server_ms)
    return format_table(
        ("per agent", "running", "waiting, stopped or finished", COLUMN),
        [
            ("heartbeats", "see below", "0", "the same"),
            (
                "server CPU time",
                f"{figures.server_ms_per_beat:.1f} ms per heartbeat",
                "0",
                on_cluster,
            ),
            (
                "memory on its host",
                f"{figures.mb_per_running_agent:.0f} MB, plus its CLI's memory",
                "0",
                "the same",
            ),
            ("worker memory, for up to 1,000 cached agents", cached, cached, "the same"),
            ("server memory, as a cache", kept, kept, "not measured"),
            ("database rows", rows, rows, rows_there),
            ("history", history, history, "the same"),
        ],
    )


def _load(figures: Figures, cluster: ClusterFigures) -> str:
    cycle, fold = cluster.costs.cycle, cluster.costs.fold
    in_an_hour = HOUR / CYCLE_SECONDS * cycle.transactions
    in_an_hour += HOUR / FleetSettings().fold_seconds * fold.transactions
    brief = "not measured"
    if cluster.load:
        brief = format_amount(cluster.load.engines[cluster.shards].brief.transactions)
    return format_table(
        ("", "write transactions", f"transactions, {COLUMN}", "actions"),
        [
            (
                "one running agent, per hour, with 16 on each host",
                format_amount(figures.writes_per_agent_hour),
                f"{format_amount(in_an_hour)}, without heartbeats",
                format_amount(figures.actions_per_agent_hour),
            ),
            (
                "one brief",
                format_amount(figures.writes_per_brief),
                brief,
                format_amount(figures.actions_per_brief),
            ),
            ("one waiting agent", "0", "0", "0"),
        ],
    )


def _beats(figures: Figures) -> str:
    rows = []
    for timeout in (10, 30, 75, 300):
        load = Load(figures, 10_000, heartbeat=timeout)
        cores = load.beats * figures.server_ms_per_beat / 1_000
        every = f"{timeout * FLEET_HOST_BEAT_SHARE:g} s"
        rows.append((f"{timeout} s", every, format_amount(load.beats), format_amount(cores)))
    head = (
        "`heartbeat_timeout`",
        "interval",
        "heartbeats/s for 2,000 running agents on 40 hosts",
        "server cores",
    )
    return format_table(head, rows)


def _loads(loads: Sequence[Load], cluster: ClusterFigures) -> str:
    return format_table(
        ("agents", *(f"{one.agents:,}" for one in loads)),
        [
            ("running at once", *(f"{one.running:,.0f}" for one in loads)),
            ("heartbeats/s", *(format_amount(one.beats) for one in loads)),
            ("cycles/s", *(format_amount(one.cycles) for one in loads)),
            ("updates/s, maximum", *(format_amount(one.updates) for one in loads)),
            ("write transactions/s", *(format_amount(one.writes) for one in loads)),
            (
                f"write transactions/s, {COLUMN}",
                *(format_amount(one.count_transactions(cluster)) for one in loads),
            ),
            ("write transactions/s of briefs", *(format_amount(one.brief_writes) for one in loads)),
            (
                f"write transactions/s per shard, of {SHARDS:,}",
                *(format_amount((one.writes + one.brief_writes) / SHARDS) for one in loads),
            ),
            ("actions per month", *(_count(one.actions) for one in loads)),
            ("pushes per minute", *(format_amount(one.pushes) for one in loads)),
            ("history per day", *(format_bytes(one.history) for one in loads)),
            (
                f"database, {RETENTION_DAYS} days of retention",
                *(format_bytes(one.database) for one in loads),
            ),
            ("server cores", *(format_amount(one.cores) for one in loads)),
            ("hosts", *(f"{one.hosts:,}" for one in loads)),
        ],
    )


def _changed(figures: Figures) -> str:
    usual = Load(figures, 1_000_000)
    slower = msgspec.structs.replace(usual, heartbeat=300.0, fold=900.0)
    return format_table(
        ("1,000,000 agents", "default", "5 and 15 minutes"),
        [
            ("heartbeats/s", format_amount(usual.beats), format_amount(slower.beats)),
            ("updates/s, maximum", format_amount(usual.updates), format_amount(slower.updates)),
            ("history per day", format_bytes(usual.history), format_bytes(slower.history)),
            ("server cores", format_amount(usual.cores), format_amount(slower.cores)),
        ],
    )


def _count(value: float) -> str:
    millions = value / 1_000_000
    return f"{format_amount(millions)} million" if millions >= 1 else f"{value:,.0f}"
