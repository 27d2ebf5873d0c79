"""Break a real cluster and its hosts in every way, and print one table: `just cluster faults`."""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fleet.cluster.cluster import Cluster
from fleet.cluster.fault_list import MEMBERS, list_faults
from fleet.cluster.fault_table import Measured, render_markdown, summarize
from fleet.cluster.prepare import VERSION, MissingProgramError, build
from fleet.cluster.server_config import MIN_SHARDS
from fleet.cluster.storm import HEARTBEAT_SECONDS, Storm
from fleet.crowd import make_project
from fleet.hosts import Host
from fleet.invariants import count_by_kind
from loopback.namespace import Namespace, obstacle
from own_user_folder import isolate_user_folder

AGENTS = 30
STEP_SECONDS = 40
"""Seconds of a session: long enough that most agents have one whenever a fault begins."""
HOST_FAULTS = ("kill -9", "freeze", "network cut")
MEGABYTES = 512
"""Size of the database's disk."""
RESULTS = Path(__file__).parents[3] / "build"
PATIENCE = 300.0
"""Seconds that a very busy machine may need to start a host."""
_SECONDS = 3600


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=1, help="rounds of all faults (default 1)")
    parser.add_argument("--agents", type=int, default=AGENTS, help=f"default {AGENTS}")
    parser.add_argument("--shards", type=int, default=MIN_SHARDS, help="4 to 16 (default 4)")
    parser.add_argument(
        "--only", nargs="*", default=[], help="faults with these names, such as history-kill"
    )


def main(args: argparse.Namespace) -> int:
    """Run all faults on a cluster made from nothing; return 1 if an invariant broke."""
    if os.geteuid() != 0 or obstacle():
        raise MissingProgramError(f"the faults need root and Linux: {obstacle() or 'run as root'}")
    build()
    isolate_user_folder()
    with tempfile.TemporaryDirectory(prefix="rekindle-faults-") as place:
        storm, measured = _run(Path(place), args)
    rows = summarize(measured)
    counts = count_by_kind(storm.violations)
    refused = [one.answer for one in storm.crowd.refusals]
    told = storm.crowd.told.values()
    checked = {
        **counts,
        "work lost or pushed late": len(storm.lost_work),
        "late commits of lost hosts refused": f"{refused.count('Fenced')} of {len(refused)}",
        "sessions left on lost hosts": sum(map(len, storm.crowd.leftovers.values())),
    }
    if storm.failure:
        checked = {"invariants": f"not checked, because the run ended early: {storm.failure}"}
    totals = {
        "engine": f"Temporal {VERSION}, {len(MEMBERS)} processes, {args.shards} shards, PostgreSQL",
        "agents": f"{len(told)} on 3 hosts, heartbeat timeout {HEARTBEAT_SECONDS} s",
        "run": f"{storm.crowd.seconds:.0f} s, {len(measured)} faults",
        "cycles": sum(len(one.of("cycle.ended")) for one in told),
        **checked,
    }
    table = render_markdown(rows, totals)
    print(f"\n{table}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cluster-faults.md").write_text(table)
    result = {"faults": [dataclasses.asdict(one) for one in measured], "totals": totals}
    (RESULTS / "cluster-faults.json").write_text(json.dumps(result, indent=1))
    problems = [storm.failure] if storm.failure else []
    problems += [*map(str, storm.violations), *storm.lost_work]
    problems += [f"a late commit was answered with {one}" for one in refused if one != "Fenced"]
    problems += [f"left after {what}: {one}" for what, one in storm.crowd.leftovers.items() if one]
    for problem in problems:
        print(f"BROKEN: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _run(folder: Path, args: argparse.Namespace) -> tuple[Storm, list[Measured]]:
    finish = folder / "finish"
    agents = {
        f"a{number:02}": {
            "env": {"STEP_SECONDS": str(STEP_SECONDS + number % 5), "FINISH": str(finish)}
        }
        for number in range(args.agents)
    }
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            Cluster(
                RESULTS / "cluster-faults",
                members=MEMBERS,
                shards=args.shards,
                has_switch=True,
                megabytes=MEGABYTES,
            )
        )
        print(f"the cluster answers at {cluster.address}", flush=True)
        project = make_project(folder, cluster, agents, finish, HEARTBEAT_SECONDS)
        # Two remaining hosts have room for all agents.
        made = {"folder": folder, "project": project, "slots": args.agents // 2 + args.agents // 3}
        hosts = {
            name: stack.enter_context(_make_host(name, cluster=cluster, stack=stack, **made))
            for name in ("x", "y", "z")
        }
        storm = Storm(cluster, hosts, project, finish)
        faults = [one for one in list_faults(cluster) if _is_wanted(one.what, args.only)]
        lost = [one for one in HOST_FAULTS if _is_wanted(f"host {one}", args.only)]
        run = storm.run_storm(faults, lost, args.repeats)
        return storm, asyncio.run(asyncio.wait_for(run, _SECONDS))


def _make_host(
    name: str,
    *,
    folder: Path,
    project: Path,
    cluster: Cluster,
    slots: int,
    stack: contextlib.ExitStack,
) -> Host:
    home = folder / name / "home"
    home.mkdir(parents=True)
    host = Host(
        name,
        folder / name,
        project=project,
        ports=(cluster.port,),
        network=stack.enter_context(Namespace()),
        environment={"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        slots=slots,
    )
    host.patience = PATIENCE
    return host


def _is_wanted(what: str, words: Sequence[str]) -> bool:
    return not words or any(word in what.replace(" ", "-") for word in words)
