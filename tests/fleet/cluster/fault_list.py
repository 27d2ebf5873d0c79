"""The faults of a cluster: how each one begins and ends, and how to see that it happened."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from fleet.cluster.cluster import Cluster
from fleet.cluster.server_config import place_apart

SECONDS = 8.0
"""Seconds that a process stays down or frozen."""
DATABASE_SECONDS = 6.0
THROTTLED_RPS = 2
"""Requests per second that a frontend accepts for the namespace while it is throttled."""
MEMBERS = place_apart()
_NO_SPACE = "No space left on device"
_RECOVERY = "was not properly shut down; automatic recovery in progress"


@dataclass(frozen=True)
class ClusterFault:
    what: str
    target: str
    begin: Callable[[], None]
    """Causes the fault, and raises AssertionError if it did not happen."""
    end: Callable[[], None]
    """Ends the fault; returns when the cluster is whole again."""
    seconds: float = SECONDS
    is_outage: bool = False
    """Whether nothing works until it ends; otherwise, other processes take over meanwhile."""


def list_faults(cluster: Cluster) -> list[ClusterFault]:
    """Return all faults of the cluster, in order; the first word names its part."""
    faults = []
    for name, member in cluster.members.items():
        service = member.services[0]
        faults.append(_kill(cluster, service, name))
        if service != "worker":
            faults.append(_freeze(cluster, service, name))
    machines = list(dict.fromkeys(one.machine for one in cluster.members.values()))
    return [
        *faults,
        _restart_database(cluster),
        _freeze_database(cluster),
        _fill_disk(cluster),
        _throttle(cluster),
        _part(cluster, machines[0]),
        _cut(cluster, machines[1]),
    ]


def _kill(cluster: Cluster, service: str, name: str) -> ClusterFault:
    def begin() -> None:
        process, address = cluster.processes[name], cluster.service_address(name)
        assert cluster.can_reach("", address)
        cluster.kill(name)
        assert process.returncode == -9, process.returncode
        assert not cluster.can_reach("", address)

    def end() -> None:
        cluster.start_process(name)
        _until(lambda: cluster.can_reach("", cluster.service_address(name)), f"{name} starts")

    return ClusterFault(f"{service} kill -9", name, begin, end)


def _freeze(cluster: Cluster, service: str, name: str) -> ClusterFault:
    def begin() -> None:
        cluster.freeze(name)
        _until(lambda: cluster.state(name) == "T", f"{name} is frozen")

    def end() -> None:
        assert cluster.state(name) == "T", cluster.state(name)
        cluster.wake(name)
        _until(lambda: cluster.state(name) != "T", f"{name} is awake")

    return ClusterFault(f"{service} frozen", name, begin, end)


def _restart_database(cluster: Cluster) -> ClusterFault:
    database = cluster.database

    def begin() -> None:
        before, recoveries = database.pid, database.log.count(_RECOVERY)
        database.restart()
        assert database.pid != before
        assert database.log.count(_RECOVERY) == recoveries + 1

    return ClusterFault(
        "PostgreSQL crash and restart", "", begin, database.wait, seconds=0, is_outage=True
    )


def _freeze_database(cluster: Cluster) -> ClusterFault:
    database = cluster.database

    def begin() -> None:
        assert database.freeze()
        assert not database.is_ready()

    def end() -> None:
        assert not database.is_ready()
        database.wake()
        database.wait()

    return ClusterFault(
        "PostgreSQL frozen", "", begin, end, seconds=DATABASE_SECONDS, is_outage=True
    )


def _fill_disk(cluster: Cluster) -> ClusterFault:
    database = cluster.database

    def begin() -> None:
        before = database.log.count(_NO_SPACE)
        assert database.fill() > 0
        assert database.bytes_free == 0, database.bytes_free
        _until(lambda: database.log.count(_NO_SPACE) > before, "a write fails")

    def end() -> None:
        database.free()
        assert database.bytes_free > 0
        if not database.is_running:
            # It ends if it cannot write its own log; a service manager starts it again.
            database.start()
        database.wait()

    return ClusterFault(
        "PostgreSQL disk full", "", begin, end, seconds=DATABASE_SECONDS, is_outage=True
    )


def _throttle(cluster: Cluster) -> ClusterFault:
    def begin() -> None:
        before = cluster.count_refused()
        cluster.throttle(THROTTLED_RPS)
        _until(lambda: cluster.count_refused() > before, "a request is refused")

    def end() -> None:
        cluster.configure()

        def is_over() -> bool:
            before = cluster.count_refused()
            time.sleep(2)
            return cluster.count_refused() == before

        _until(is_over, "no request is refused")

    return ClusterFault("namespace throttled", "", begin, end, is_outage=True)


def _part(cluster: Cluster, machine: str) -> ClusterFault:
    there = next(one.name for one in cluster.members.values() if one.machine != machine)
    other, base = cluster.service_address(there), cluster.database.address.address

    def begin() -> None:
        assert cluster.can_reach(machine, other)
        cluster.part(machine)
        assert not cluster.can_reach(machine, other)
        assert cluster.can_reach(machine, base)

    def end() -> None:
        assert not cluster.can_reach(machine, other)
        cluster.join(machine)
        _until(lambda: cluster.can_reach(machine, other), "the machines reach each other")

    # Both halves reach the database, and take the shards from each other until they meet again.
    return ClusterFault("network cut between the servers", machine, begin, end, is_outage=True)


def _cut(cluster: Cluster, machine: str) -> ClusterFault:
    base = cluster.database.address.address

    def begin() -> None:
        assert cluster.can_reach(machine, base)
        cluster.cut(machine)
        assert not cluster.can_reach(machine, base)

    def end() -> None:
        cluster.restore(machine)
        _until(lambda: cluster.can_reach(machine, base), "the machine is connected")

    return ClusterFault("a server cut off from everything", machine, begin, end)


def _until(is_so: Callable[[], bool], words: str, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if is_so():
                return
        assert time.monotonic() < deadline, f"not within {seconds} s: {words}"
        time.sleep(0.2)
