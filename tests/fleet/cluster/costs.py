"""Measure what a fleet costs on a cluster over PostgreSQL: `just cluster costs`.

Each part starts its engines from nothing: the development server, and clusters with 4 and 16 shards
one after the other. With `--write` the results become the figures of docs/explanation/scale.md, and
without it they are compared with them.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from fleet.cluster.cluster import NAMESPACE, Cluster
from fleet.cluster.counters import STATEMENT, Counted, add_up, divide, subtract, summarize
from fleet.cluster.growth import choose_step, find_limit, name_limit
from fleet.cluster.measures import measure_beats, measure_cycles, measure_idle, measure_steps
from fleet.cluster.meters import ClusterMeter, ServerMeter
from fleet.cluster.paced import TIMES as TIMES_FASTER
from fleet.cluster.prepare import VERSION, build
from fleet.engine import Engine
from fleet.load import AFTER, CYCLE_SECONDS, LoadRun, MeasuredEngine
from fleet.pace import RecordedCycle, recorded
from own_user_folder import isolate_user_folder

FIGURES: Final = Path(__file__).parents[3] / "tools/scale_cluster.json"
SHARDS: Final = (4, 16)
IDLE: Final = 2_000
STEPS: Final = (10, 25, 50, 100, 200)
LOAD_AGENTS: Final = 16
LOAD_HOURS: Final = 0.5
DEVELOPMENT: Final = "development"
TIMES: Final = 3
"""The factor by which a count may differ from the recorded one."""
COUNTS: Final = ("requests", "transactions", "writes", "bytes")
Figures = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    parts = ", ".join(PARTS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{parts} (default: all)")
    words = "clusters of each size on which growth is measured; the least disturbed counts"
    parser.add_argument("--repeats", type=int, default=1, help=f"{words} (default 1)")
    parser.add_argument("--write", action="store_true", help="record the results as figures")


def main(given: argparse.Namespace) -> int:
    if unknown := set(given.parts) - set(PARTS):
        print(f"just cluster costs: {min(unknown)}: use {', '.join(PARTS)}", file=sys.stderr)
        return 2
    build()
    if os.geteuid() == 0:
        isolate_user_folder()
    differences: list[str] = []
    for part in given.parts or PARTS:
        print(f"{part} (load average {os.getloadavg()[0]:.1f})", flush=True)
        measured = asyncio.run(PARTS[part](given.repeats))
        measured["load_average"] = round(os.getloadavg()[0], 1)
        print(msgspec.json.format(msgspec.json.encode(measured), indent=1).decode(), flush=True)
        figures = msgspec.json.decode(FIGURES.read_bytes()) if FIGURES.exists() else {}
        differences += compare(figures.get(part, {}), measured, part)
        if given.write:
            figures |= {"temporal": VERSION, part: round_all(measured)}
            FIGURES.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
    if not given.write:
        print("\n".join(differences) or "the counts are those of docs/explanation/scale.md")
    return 1 if differences and not given.write else 0


async def run_cycles(_repeats: int) -> Figures:
    """Measure a cycle, a fold and a heartbeat on each engine."""
    cycle = await _record()
    engines: Figures = {}
    version = ""
    for shards in SHARDS:
        with _cluster(shards) as (cluster, _):
            version = cluster.database.query("SHOW server_version")[0][0].split()[0]
            engines[str(shards)] = await _measure_messages(ClusterMeter(cluster), cycle)
    with tempfile.TemporaryDirectory() as folder, MeasuredEngine(Path(folder)) as engine:
        engines[DEVELOPMENT] = await _measure_messages(ServerMeter(engine), cycle)
    return {"postgresql": version, "engines": engines}


async def _record() -> RecordedCycle:
    """Return the messages of a cycle of a real worker, on a server that ends after that."""
    with tempfile.TemporaryDirectory() as folder, Engine(Path(folder)) as engine:
        return await recorded(engine.address, Path(folder))


async def _measure_messages(meter: ServerMeter | ClusterMeter, cycle: RecordedCycle) -> Figures:
    costs = await measure_cycles(meter, cycle)
    costs["beat"] = await measure_beats(meter)
    for name, counted in costs.items():
        _print_statements(name, counted)
    summaries: Figures = {name: summarize(counted) for name, counted in costs.items()}
    summaries["load_average"] = os.getloadavg()[0]
    print(f"  {summaries}", flush=True)
    return summaries


async def run_load(_repeats: int) -> Figures:
    """Measure the hour of a running agent, and a brief, with a real worker and real processes."""
    found: Figures = {}
    with tempfile.TemporaryDirectory() as folder, MeasuredEngine(Path(folder)) as engine:
        found[DEVELOPMENT] = await _measure_load(engine, Path(folder), AFTER)
    with _cluster(SHARDS[0]) as (cluster, folder):
        meter = ClusterMeter(cluster)
        costs = await _measure_load(meter, folder, NAMESPACE)
        start, defined, end = meter.costs
        # Both sides are the same definitions; the brief is what the second one has more.
        brief = subtract(subtract(end, defined), subtract(defined, start))
        _print_statements("brief", divide(brief, LOAD_AGENTS))
        costs["brief"] |= summarize(divide(brief, LOAD_AGENTS))
        found[str(SHARDS[0])] = costs
    return {"engines": found}


async def _measure_load(engine: MeasuredEngine | ClusterMeter, folder: Path, name: str) -> Figures:
    run = LoadRun(engine, folder, LOAD_AGENTS, CYCLE_SECONDS, before=None, after=name)
    async with run.running() as client:
        (hour,) = await run.measure(LOAD_HOURS)
        brief = await run.measure_brief(client)
    return {
        name: {"requests": cost.writes, "actions": cost.actions}
        for name, cost in {"agent_hour": hour, "brief": brief}.items()
    }


async def run_idle(_repeats: int) -> Figures:
    """Measure an engine without agents, and with many that wait."""
    with _cluster(SHARDS[0]) as (cluster, folder):
        costs = await measure_idle(ClusterMeter(cluster), folder, IDLE)
    start = costs.pop("start")
    for name, counted in costs.items():
        _print_statements(f"{name}, per minute", divide(counted, counted["seconds"] / 60))
    return {
        "agents": IDLE,
        "start": summarize(start),
        **{name: _per_minute(counted) for name, counted in costs.items()},
    }


async def run_growth(repeats: int) -> Figures:
    """Measure more and more running agents, several times."""
    clusters: Figures = {}
    cycle = await _record()
    for shards in SHARDS:
        found = []
        for repeat in range(repeats):
            with _cluster(shards) as (cluster, _):
                found.append(await measure_steps(ClusterMeter(cluster), cycle, STEPS, repeat))
        steps = [choose_step(some) for some in zip(*found, strict=True)]
        limit = find_limit(steps)
        clusters[str(shards)] = {
            "steps": [msgspec.to_builtins(one) for one in steps],
            "limit": limit.agents if limit else None,
            "cause": name_limit(limit, os.cpu_count() or 1) if limit else None,
        }
    return {"times": TIMES_FASTER, "clusters": clusters}


PARTS: Final[dict[str, Callable[[int], Coroutine[None, None, Figures]]]] = {
    "cycles": run_cycles,
    "load": run_load,
    "idle": run_idle,
    "growth": run_growth,
}


@contextmanager
def _cluster(shards: int) -> Iterator[tuple[Cluster, Path]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Cluster(folder / "cluster", shards=shards) as cluster:
            print(f"  a cluster with {shards} shards", flush=True)
            yield cluster, folder


def _per_minute(counted: Counted) -> Counted:
    rate = divide(counted, counted["seconds"] / 60)
    return summarize(rate) | {"statements": add_up(rate, STATEMENT)}


def _print_statements(title: str, counted: Counted, most: int = 24) -> None:
    """Print the statements and requests of which there are most."""
    print(f"  {title}:")
    shown = {name: value for name, value in counted.items() if name.startswith(("stat", "req"))}
    for name in sorted(shown, key=lambda one: -shown[one])[:most]:
        print(f"    {shown[name]:10.2f} {name}")


def compare(recorded: Figures, measured: Figures, path: str) -> list[str]:
    """Return a line for each count that differs by more than `TIMES` from the recorded one.

    The steps of growth are a list, and depend on the machine: they are not compared.
    """
    found: list[str] = []
    if not recorded:
        return [f"{path}: nothing is recorded; --write does that"]
    for name, value in measured.items():
        was, where = recorded.get(name), f"{path}.{name}"
        if isinstance(value, dict):
            found += compare(was if isinstance(was, dict) else {}, value, where)
        elif name in COUNTS and was is not None and not was / TIMES <= value <= was * TIMES:
            found.append(f"{where}: {value:.4g} measured, {was:.4g} recorded")
    return found


def round_all(figures: Any) -> Any:
    """Return the figures with three digits, which is more than they repeat."""
    match figures:
        case dict():
            return {name: round_all(value) for name, value in figures.items()}
        case list():
            return [round_all(one) for one in figures]
        case float():
            return float(f"{figures:.3g}")
    return figures
