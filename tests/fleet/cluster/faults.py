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
from fleet.cluster.guide_table import write_guide
from fleet.cluster.prepare import VERSION, MissingProgramError, build
from fleet.cluster.server_config import MIN_SHARDS
from fleet.cluster.storm import HEARTBEAT_SECONDS, HOST_CUT, HOST_FROZEN, HOST_KILLED, Storm
from fleet.crowd import make_project
from fleet.hosts import Host
from fleet.invariants import count_by_kind
from loopback.namespace import Namespace, obstacle
from own_user_folder import isolate_user_folder

AGENTS = 30
STEP_SECONDS = 40
"""Seconds of a session: long enough that most agents have one whenever a fault begins."""
HOST_FAULTS = (HOST_KILLED, HOST_FROZEN, HOST_CUT)
MEGABYTES = 512
"""Size of the database's disk."""
RESULTS = Path(__file__).parents[3] / "build"
PATIENCE = 300.0
"""Seconds that a very busy machine may need to start a host."""
_SECONDS = 3600
_FENCED = "Fenced"
_NOWHERE = "NOT_FOUND"
"""The answers to a commit with a lost lease, and to one in another namespace."""


class UnknownFaultError(Exception):
    """No fault has a word of the option `--only` in its name; the message lists all names."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=1, help="rounds of all faults (default 1)")
    parser.add_argument("--agents", type=int, default=AGENTS, help=f"default {AGENTS}")
    parser.add_argument("--shards", type=int, default=MIN_SHARDS, help="4 to 16 (default 4)")
    words = "faults with these words in their names, such as history-killed"
    parser.add_argument("--only", nargs="+", default=[], help=words)
    words = "record the run in the guide if everything held"
    parser.add_argument("--write", action="store_true", help=words)


def main(args: argparse.Namespace) -> int:
    """Run all faults on a cluster made from nothing; return 1 if an invariant broke."""
    if os.geteuid() != 0 or obstacle():
        raise MissingProgramError(f"the faults need root and Linux: {obstacle() or 'run as root'}")
    if args.repeats < 1 or (args.write and args.only):
        print(
            "just cluster faults: --repeats: at least 1; --write: without --only", file=sys.stderr
        )
        return 2
    build()
    isolate_user_folder()
    try:
        with tempfile.TemporaryDirectory(prefix="rekindle-faults-") as place:
            storm, measured = _run(Path(place), args)
    except UnknownFaultError as unknown:
        print(f"just cluster faults: --only: {unknown}", file=sys.stderr)
        return 2
    totals = _add_up(storm, args, len(measured))
    table = render_markdown(summarize(measured), totals)
    print(f"\n{table}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "cluster-faults.md").write_text(table)
    result = {"faults": [dataclasses.asdict(one) for one in measured], "totals": totals}
    (RESULTS / "cluster-faults.json").write_text(json.dumps(result, indent=1))
    problems = _list_problems(storm)
    for problem in problems:
        print(f"BROKEN: {problem}", file=sys.stderr)
    if args.write and not problems:
        write_guide(result)
    return 1 if problems else 0


def _add_up(storm: Storm, args: argparse.Namespace, faults: int) -> dict[str, str | int]:
    """Return the facts of the whole run, with the number of violations of each kind."""
    crowd, told = storm.crowd, storm.crowd.told.values()
    refused = [one.answer for one in crowd.refusals]
    checked: dict[str, str | int] = {
        **count_by_kind(storm.violations),
        "work lost or pushed late": len(storm.lost_work),
        "late commits of lost hosts refused": f"{refused.count(_FENCED)} of {len(refused)}",
        "sessions left on lost hosts": sum(map(len, crowd.leftovers.values())),
    }
    if storm.failure:
        checked = {"invariants": f"not checked, because the run ended early: {storm.failure}"}
    return {
        "engine": f"Temporal {VERSION}, {len(MEMBERS)} processes, {args.shards} shards, PostgreSQL",
        "agents": f"{len(told)} on 3 hosts, heartbeat timeout {HEARTBEAT_SECONDS} s",
        "run": f"{crowd.seconds:.0f} s, {faults} faults",
        "cycles": sum(len(one.of("cycle.ended")) for one in told),
        **checked,
    }


def _list_problems(storm: Storm) -> list[str]:
    """Return what must not have happened in a run."""
    if storm.failure:
        return [storm.failure]
    crowd = storm.crowd
    refused = [one.answer for one in crowd.refusals]
    return [
        *map(str, storm.violations),
        *storm.lost_work,
        *(f"a late commit was answered with {one}" for one in refused if one != _FENCED),
        *(f"left after {what}: {one}" for what, one in crowd.leftovers.items() if one),
        *([f"another namespace answers {crowd.elsewhere}"] if crowd.elsewhere != _NOWHERE else []),
    ]


def _run(folder: Path, args: argparse.Namespace) -> tuple[Storm, list[Measured]]:
    finish = folder / "finish"
    agents = {
        f"a{number:02}": {
            "env": {"STEP_SECONDS": str(STEP_SECONDS + number % 5), "FINISH": str(finish)}
        }
        for number in range(args.agents)
    }
    with contextlib.ExitStack() as stack:
        cluster = Cluster(
            RESULTS / "cluster-faults",
            members=MEMBERS,
            shards=args.shards,
            has_switch=True,
            megabytes=MEGABYTES,
        )
        stack.callback(cluster.close)
        faults = list_faults(cluster)
        require_known(args.only, [*(one.what for one in faults), *HOST_FAULTS])
        cluster.start()
        print(f"the cluster answers at {cluster.address}", flush=True)
        project = make_project(folder, cluster, agents, finish, HEARTBEAT_SECONDS)
        # Two remaining hosts have room for all agents.
        made = {"folder": folder, "project": project, "slots": args.agents // 2 + args.agents // 3}
        hosts = {
            name: stack.enter_context(_make_host(name, cluster=cluster, stack=stack, **made))
            for name in ("x", "y", "z")
        }
        storm = Storm(cluster, hosts, project, finish)
        faults = [one for one in faults if _is_wanted(one.what, args.only)]
        lost = [one for one in HOST_FAULTS if _is_wanted(one, args.only)]
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


def require_known(words: Sequence[str], names: Sequence[str]) -> None:
    """Raise UnknownFaultError if a word is in no name."""
    for word in words:
        if not any(_is_wanted(name, [word]) for name in names):
            known = ", ".join(one.replace(" ", "-") for one in dict.fromkeys(names))
            raise UnknownFaultError(f"{word}: use words of {known}")


def _is_wanted(what: str, words: Sequence[str]) -> bool:
    return not words or any(word in what.replace(" ", "-") for word in words)
