"""Read the counters of the development server, or of a cluster and its PostgreSQL."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Protocol

from fleet.cluster.cluster import NAMESPACE, Cluster
from fleet.cluster.counters import REQUEST, STATEMENT, Counted, name_statement
from fleet.load import PUBLISHED_SECONDS, Cost, Counts, MeasuredEngine, count_page
from fleet.pace import TICKS, cpu_seconds
from fleet.scraped import parse_page, read_page

_SQL = """
SELECT 'query', regexp_replace(query, '\\s+', ' ', 'g'), calls FROM pg_stat_statements
UNION ALL SELECT 'transactions', '', pg_snapshot_xmax(pg_current_snapshot())::text::bigint
UNION ALL SELECT 'commits', '', sum(xact_commit) FROM pg_stat_database
UNION ALL SELECT 'rollbacks', '', sum(xact_rollback) FROM pg_stat_database
UNION ALL SELECT 'bytes', '', sum(pg_database_size(datname)) FROM pg_database
UNION ALL SELECT 'wal bytes', '', wal_bytes FROM pg_stat_wal
UNION ALL SELECT 'syncs', '', wal_sync FROM pg_stat_wal
UNION ALL SELECT 'sync seconds', '', wal_sync_time / 1000 FROM pg_stat_wal
"""
"""PostgreSQL gives an id only to a transaction that writes or locks: their number is exact."""
_WAITS = """
SELECT coalesce(wait_event_type || ' ' || wait_event, 'CPU'), count(*) FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() GROUP BY 1
"""
_SHARD_LOCKS = ("lock_latency_sum", "semaphore_latency_sum")


class Meter(Protocol):
    """An engine with counters."""

    @property
    def address(self) -> str: ...

    def read(self) -> Counted: ...


class ServerMeter:
    """The counters of the development server."""

    def __init__(self, engine: MeasuredEngine) -> None:
        self._engine = engine

    @property
    def address(self) -> str:
        return self._engine.address

    def read(self) -> Counted:
        writes, _ = self._engine.count(NAMESPACE)
        return _name_requests(writes) | {
            **_read_machine(),
            "cpu servers": cpu_seconds(self._engine.pid),
            "bytes": float(self._engine.size),
        }


class ClusterMeter:
    """The counters of all processes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.costs: list[Counted] = []
        """The counters at each call of `cost`."""
        cluster.database.query("ALTER SYSTEM SET track_wal_io_timing = on")
        cluster.database.query("SELECT pg_reload_conf()")

    @property
    def address(self) -> str:
        """Return the address of a frontend: the load balancer would be part of the costs."""
        return self._cluster.frontends[0]

    def read(self) -> Counted:
        counted = Counter[str]()
        for kind, query, value in self._cluster.database.query(_SQL):
            if kind != "query":
                counted[kind] += float(value)
            elif name := name_statement(query):
                counted[STATEMENT + name] += float(value)
        servers = self._cluster.processes.values()
        return dict(counted) | {
            **_name_requests(self.count(NAMESPACE)[0]),
            **_read_machine(),
            "cpu servers": sum(cpu_seconds(one.pid) for one in servers),
            "cpu database": _read_family(self._cluster.database.pid),
            "shard lock seconds": self._read_locks(),
        }

    def read_waits(self) -> Counted:
        """Return what the sessions of PostgreSQL that are in a statement wait for, now."""
        return {name: float(value) for name, value in self._cluster.database.query(_WAITS)}

    def count(self, namespace: str) -> Counts:
        writes, actions = Counter[str](), Counter[str]()
        for name in self._cluster.processes:
            page = count_page(read_page(self._cluster.metrics(name)), namespace)
            writes += page[0]
            actions += page[1]
        return writes, actions

    async def cost(self, namespace: str) -> Cost:
        await asyncio.sleep(PUBLISHED_SECONDS)
        self.costs.append(self.read())
        writes, actions = self.count(namespace)
        return Cost(sum(writes.values()), sum(actions.values()))

    def _read_locks(self) -> float:
        """Return the seconds that requests have waited for a shard, in all processes."""
        pages = [parse_page(read_page(self._cluster.metrics(one))) for one in self._cluster.members]
        return sum(
            value for page in pages for (name, _), value in page.items() if name in _SHARD_LOCKS
        )


def _name_requests(writes: Counter[str]) -> Counted:
    return {REQUEST + name: value for name, value in writes.items()}


def _read_machine() -> Counted:
    """Return the time, and the processor time of this process and of the whole machine."""
    fields = [
        int(one) / TICKS for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    ]
    return {
        "seconds": time.monotonic(),
        "cpu worker": time.process_time(),
        "cpu idle": sum(fields[3:5]),
        "cpu all": sum(fields[:8]),
    }


def _read_family(pid: int) -> float:
    """Return the processor time of a process, of those it started and of those that ended."""
    ended = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu_seconds(pid) + ended / TICKS + sum(map(_read_if_there, children))


def _read_if_there(pid: str) -> float:
    try:
        return cpu_seconds(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
