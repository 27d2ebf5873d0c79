"""Define, run, list, watch and stop many agents through the Python API, and time each phase.

A run here means that the engine has recorded the command for each agent. One real host with a few
slots then works through them, with a program that exits at once, until all are stopped.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import rekindle
from fleet.apart import Apart
from rekindle import AgentSettings, BulkResult, Fleet, FleetChange, FleetRow

POOL = "many"
TEAMS = 4
_PATIENCE = 1800


class PhaseTimes:
    """Times of the phases, with the load of the machine."""

    def __init__(self, agents: int) -> None:
        self._agents = agents
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[phase] = taken = time.perf_counter() - began
        rate = f"{self._agents / taken:,.0f} agents/s"
        print(f"{phase:32} {taken:8.1f} s  {rate:>18}  load {os.getloadavg()[0]:.1f}", flush=True)


@contextmanager
def host(address: str, folder: Path, slots: int) -> Iterator[None]:
    """Run the only host of the pool, which also decides for all agents."""
    folder.mkdir(parents=True)
    fleet = f"fleet: {{address: '{address}', pool: {POOL}}}"
    (folder / "rekindle.yaml").write_text(f"version: 1\nagents: {{}}\n{fleet}\n")
    argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", POOL]
    argv += ["--slots", str(slots), "--root", str(folder / "root"), "--sandbox", "off"]
    process = Apart(argv, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "takes up to" in process.stdout.readline()
        yield
    finally:
        process.terminate()
        try:
            process.wait(120)
        finally:
            process.close()


def make_specs(agents: int) -> list[AgentSettings]:
    return [
        AgentSettings(
            name=f"many-{number}",
            harness="command",
            command=["true"],
            task=f"Do task {number}.",
            team=f"team-{number % TEAMS}",
            manifest={"runtime": {"brief": {"at": "never"}}},
        )
        for number in range(agents)
    ]


def drive(address: str, folder: Path, agents: int, slots: int = 4) -> dict[str, float]:
    """Take all agents from their definition to their removal, and return the time of each phase."""
    times, specs = PhaseTimes(agents), make_specs(agents)
    names = [spec.name for spec in specs]
    with (
        host(address, folder / "host", slots),
        rekindle.connect(fleet=address, pool=POOL) as fleet,
    ):
        with times.measure("define"):
            known = {spec.name: spec for spec in specs}
            _repeat(lambda names: fleet.define_all(known[name] for name in names), names)
        with times.measure("until all are listed"):
            _wait(fleet, lambda rows: len(rows) == agents)
        with times.measure("list"):
            assert len(fleet.rows(pool=POOL)) == agents
        with times.measure("list one team"):
            assert len(fleet.rows(team="team-0")) == agents // TEAMS
        with times.measure("define again"):
            assert len(fleet.define_all(specs).unchanged) == agents
        with times.measure("run"):
            _repeat(lambda names: fleet.run(names, cycles=1), names)
        polls = fleet.polls()
        with times.measure("watch: until all have changed"):
            seen: set[str] = set()
            _wait_for_changes(polls, seen, {"waiting", "running", "stopped"}, agents)
        with times.measure("watch: one request"):
            next(polls)
        with times.measure("usage by team"):
            usage = fleet.usage()
            assert sum(team.agents for team in usage) == agents
            print("  ", ", ".join(f"{team.name}: {team.running} run" for team in usage))
        with times.measure("stop"):
            _repeat(fleet.stop, names)
        with times.measure("until all are listed as stopped"):
            _wait(fleet, lambda rows: {row.state for row in rows} == {"stopped"})
        print(f"   {sum(row.cycle > 0 for row in fleet.rows(pool=POOL))} had run a cycle before")
        with times.measure("remove"):
            _repeat(fleet.remove, names)
        with times.measure("until none is listed"):
            _wait(fleet, lambda rows: not rows)
    return times.seconds


def _repeat(call: Callable[[list[str]], BulkResult], names: list[str]) -> None:
    """Repeat a call for the agents for which it failed, as a program would."""
    deadline = time.monotonic() + _PATIENCE
    wanted, done, is_again = set(names), set[str](), False
    while names:
        assert time.monotonic() < deadline, f"{len(names)} agents are left"
        result = call(names)
        # A call that failed may have reached the engine, and then changes nothing.
        done |= {*result.done} | ({*result.unchanged} if is_again else set())
        is_again = True
        if result.failed:
            print(f"   {len(result.failed)} failed: {next(iter(result.failed.values()))}")
        names = list(result.failed)
    assert done == wanted, f"{len(wanted - done)} agents were left out"


def _wait(fleet: Fleet, holds: Callable[[list[FleetRow]], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds(fleet.rows(pool=POOL)):
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.5)


def _wait_for_changes(
    polls: Iterator[list[FleetChange]], seen: set[str], states: set[str], agents: int
) -> None:
    """Wait until each agent was seen after its start, in one of these states."""
    deadline = time.monotonic() + _PATIENCE
    while len(seen) < agents:
        assert time.monotonic() < deadline, f"{len(seen)} of {agents} agents have changed"
        changes = next(polls)
        seen |= {
            change.row.agent
            for change in changes
            if change.row.state in states and change.row.reason != "not started yet"
        }
        time.sleep(0.2)
