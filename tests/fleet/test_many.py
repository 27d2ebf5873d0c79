"""Many agents on a few hosts, each with real cycles: none is lost or counted twice."""

import asyncio
import os
import time
from collections import Counter
from typing import Final

import pytest

from fleet.figures import hold
from fleet.pace import AGENT, Project, begun, cpu_seconds, megabytes
from rekindle.documents import events
from rekindle.fleet.engine.agent_client import AgentClient

pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
AGENTS: Final = 200 if WHOLE else 24
"""CI runs a share of them, because all take too long. `just torture` runs all."""
CYCLES: Final = 3
HOSTS: Final = ("a", "b", "c")
SLOTS: Final = 8
ONCE: Final = ["cycle.started", "launch.started", "launch.ended", "relay.committed", "cycle.ended"]


def test_many_agents_go_through_their_cycles(own_engine, tmp_path):
    """Each log has every cycle once, in order, and the engine has its last relay."""
    project = Project(tmp_path / "project", own_engine.address, lines=20, cycles=CYCLES)
    workers = {host: project.worker(host, SLOTS) for host in HOSTS}
    names = [f"{AGENT}-{number}" for number in range(AGENTS)]

    async def all_of_them() -> list:
        agents = AgentClient(await project.connect())
        for name in names:
            await begun(agents, name, project.definition_of(name))
        waiting = set(names)
        while waiting:
            assert all(worker.poll() is None for worker in workers.values())
            waiting -= {one.agent async for one in agents.listed() if one.state == "over"}
            await asyncio.sleep(1)
        return [await agents.kept(name) for name in names]

    began, database = time.perf_counter(), own_engine.size
    try:
        found = asyncio.run(asyncio.wait_for(all_of_them(), 600))
        seconds = time.perf_counter() - began
        server, memory = cpu_seconds(own_engine.pid), megabytes(own_engine.pid)
        hosts = [(cpu_seconds(one.pid), megabytes(one.pid)) for one in workers.values()]
    finally:
        for worker in workers.values():
            worker.terminate()
        codes = [worker.wait(60) for worker in workers.values()]
    total = AGENTS * CYCLES
    said = "".join((tmp_path / f"{host}.said").read_text() for host in HOSTS)
    print(
        f"\n{AGENTS} agents x {CYCLES} cycles on {len(HOSTS)} hosts of {SLOTS} slots:"
        f" {seconds:.0f} s, {total / seconds:.1f} cycles/s; server {1e3 * server / total:.0f} ms a"
        f" cycle and {memory:.0f} MB; workers {1e3 * sum(cpu for cpu, _ in hosts) / total:.0f} ms a"
        f" cycle and {max(size for _, size in hosts):.0f} MB each;"
        f" {(own_engine.size - database) / total / 1024:.0f} kB of database a cycle"
    )
    hold(database_bytes_per_cycle=(own_engine.size - database) / total)
    assert codes == [0] * len(HOSTS), said
    for kept in found:
        known = kept.projection
        assert known.cycle_ended == CYCLES
        log = [events.parse(line.encode()) for line in kept.tail]
        assert [one.seq for one in log] == list(range(1, known.seq + 1))
        for kind in ONCE:
            assert [one for one in log if one.kind == kind], kind
        ended = [one for one in log if isinstance(one, events.CycleEnded)]
        assert [one.cycle for one in ended] == [1, 2, 3]
        assert all(one.how == "draft" for one in ended), "each wrote a relay of its own"
        counted = Counter(one.kind for one in log)
        assert [counted[kind] for kind in ONCE] == [CYCLES] * len(ONCE), counted
        assert f"Do step {CYCLES + 1} " in kept.documents[known.documents["relay"].path]
