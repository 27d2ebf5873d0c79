"""The faults of a cluster: how each one begins and ends, and how to see that it happened."""

import contextlib
import signal
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
    """Ends the fault, and does not wait for the cluster."""
    settle: Callable[[], None]
    """Returns when the cluster is whole again."""
    lasts: Callable[[], bool] = lambda: True
    """Returns whether the fault still lasts, before its end."""
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
    address = cluster.service_address(name)

    def begin() -> None:
        process = cluster.processes[name]
        assert cluster.can_reach("", address)
        cluster.kill(name)
        assert process.returncode == -9, process.returncode
        assert not cluster.can_reach("", address)

    def settle() -> None:
        _until(lambda: cluster.can_reach("", address), f"{name} starts")

    return ClusterFault(
        f"{service} killed", name, begin, lambda: cluster.start_process(name), settle
    )


def _freeze(cluster: Cluster, service: str, name: str) -> ClusterFault:
    def is_frozen() -> bool:
        return cluster.state(name) == "T"

    def begin() -> None:
        cluster.freeze(name)
        _until(is_frozen, f"{name} is frozen")

    def settle() -> None:
        _until(lambda: not is_frozen(), f"{name} is awake")

    return ClusterFault(
        f"{service} frozen", name, begin, lambda: cluster.wake(name), settle, is_frozen
    )


def _restart_database(cluster: Cluster) -> ClusterFault:
    database = cluster.database
    recoveries: list[int] = []

    def begin() -> None:
        recoveries.append(database.log.count(_RECOVERY))
        database.stop(signal.SIGQUIT)  # without a checkpoint, as a crash does
        assert not database.is_ready()

    def settle() -> None:
        database.wait()
        assert database.log.count(_RECOVERY) == recoveries[-1] + 1

    return ClusterFault(
        "PostgreSQL crashed and restarted",
        "",
        begin,
        database.start,
        settle,
        lasts=lambda: not database.is_running,
        seconds=0,
        is_outage=True,
    )


def _freeze_database(cluster: Cluster) -> ClusterFault:
    database = cluster.database

    def begin() -> None:
        assert database.freeze()
        assert not database.is_ready()

    return ClusterFault(
        "PostgreSQL frozen",
        "",
        begin,
        database.wake,
        database.wait,
        lasts=lambda: not database.is_ready(),
        seconds=DATABASE_SECONDS,
        is_outage=True,
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

    return ClusterFault(
        "PostgreSQL's disk full",
        "",
        begin,
        end,
        database.wait,
        seconds=DATABASE_SECONDS,
        is_outage=True,
    )


def _throttle(cluster: Cluster) -> ClusterFault:
    def begin() -> None:
        before = cluster.count_refused()
        cluster.throttle(THROTTLED_RPS)
        _until(lambda: cluster.count_refused() > before, "a request is refused")

    def settle() -> None:
        def is_over() -> bool:
            before = cluster.count_refused()
            time.sleep(2)
            return cluster.count_refused() == before

        _until(is_over, "no request is refused")

    return ClusterFault("namespace throttled", "", begin, cluster.configure, settle, is_outage=True)


def _part(cluster: Cluster, machine: str) -> ClusterFault:
    there = next(one.name for one in cluster.members.values() if one.machine != machine)
    other, base = cluster.service_address(there), cluster.database.address.address

    def begin() -> None:
        assert cluster.can_reach(machine, other)
        cluster.part(machine)
        assert not cluster.can_reach(machine, other)
        assert cluster.can_reach(machine, base)

    def settle() -> None:
        _until(lambda: cluster.can_reach(machine, other), "the machines reach each other")

    # Both halves reach the database, and take the shards from each other until they meet again.
    return ClusterFault(
        "network cut between the servers",
        machine,
        begin,
        lambda: cluster.join(machine),
        settle,
        lasts=lambda: not cluster.can_reach(machine, other),
        is_outage=True,
    )


def _cut(cluster: Cluster, machine: str) -> ClusterFault:
    base = cluster.database.address.address

    def begin() -> None:
        assert cluster.can_reach(machine, base)
        cluster.cut(machine)
        assert not cluster.can_reach(machine, base)

    def settle() -> None:
        _until(lambda: cluster.can_reach(machine, base), "the machine is connected")

    return ClusterFault(
        "a server cut off from everything",
        machine,
        begin,
        lambda: cluster.restore(machine),
        settle,
        lasts=lambda: not cluster.can_reach(machine, base),
    )


def _until(is_so: Callable[[], bool], words: str, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if is_so():
                return
        assert time.monotonic() < deadline, f"not within {seconds} s: {words}"
        time.sleep(0.2)
