"""Build, start and stop a real cluster on this machine, and break it: `just cluster`."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fleet.cluster.cluster import Cluster, is_alive, read_start
from fleet.cluster.costs import add_options as add_cost_options
from fleet.cluster.costs import main as measure_costs
from fleet.cluster.faults import add_options
from fleet.cluster.faults import main as break_everything
from fleet.cluster.prepare import MissingProgramError, build
from fleet.cluster.server_config import MAX_SHARDS, MIN_SHARDS, place_apart, place_together

FOLDER = Path(__file__).parents[3] / "build/cluster"
_STATE = FOLDER / "cluster.json"
_LOG = FOLDER / "cluster.log"
_START_SECONDS = 300
_STOP_SECONDS = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="just cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="install what is missing, and build the server")
    for name, words in {"start": "build and start a cluster", "run": argparse.SUPPRESS}.items():
        start = commands.add_parser(name, help=words)
        start.add_argument("--port", type=int, default=7233, help="port for clients (default 7233)")
        start.add_argument("--shards", type=int, default=MIN_SHARDS, help="4 to 16 (default 4)")
        start.add_argument(
            "--apart", action="store_true", help="two machines, and a process for each service"
        )
    commands.add_parser("stop", help="stop the cluster, and remove its data")
    commands.add_parser("status", help="print the address and the processes")
    words = "start a cluster and three hosts, break all parts, and print a table"
    add_options(commands.add_parser("faults", help=words))
    words = "measure what a fleet costs: the figures of docs/explanation/scale.md"
    add_cost_options(commands.add_parser("costs", help=words))
    args = parser.parse_args()
    try:
        match args.command:
            case "build":
                print(f"{build().server.parent} has the server and its SQL tool")
            case "run":
                _run(args)
            case "stop":
                return _stop()
            case "status":
                return _status()
            case name:
                works = {"start": _start, "faults": break_everything, "costs": measure_costs}
                return works[name](args)
    except MissingProgramError as missing:
        print(f"just cluster: {missing}", file=sys.stderr)
        return 1
    return 0


def _start(args: argparse.Namespace) -> int:
    """Start a process that holds the cluster, and print the address when all of it answers."""
    if _read() is not None:
        print("just cluster: it runs already; `just cluster stop` ends it", file=sys.stderr)
        return 1
    if not MIN_SHARDS <= args.shards <= MAX_SHARDS:
        print(f"just cluster: --shards: {MIN_SHARDS} to {MAX_SHARDS}", file=sys.stderr)
        return 2
    build()
    FOLDER.mkdir(parents=True, exist_ok=True)
    options = ["--port", str(args.port), "--shards", str(args.shards)]
    options += ["--apart"] if args.apart else []
    with _LOG.open("wb") as log:
        holder = subprocess.Popen(
            [sys.executable, "-m", "fleet.cluster", "run", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    while _read() is None:
        if holder.poll() is not None or time.monotonic() > deadline:
            holder.terminate()
            print(_LOG.read_text()[-3000:], file=sys.stderr)
            print(f"just cluster: it did not start; see {FOLDER}", file=sys.stderr)
            return 1
        time.sleep(0.2)
    return _status()


def _run(args: argparse.Namespace) -> None:
    """Hold a cluster until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    members = place_apart() if args.apart else place_together()
    cluster = Cluster(FOLDER, members=members, shards=args.shards, port=args.port)
    try:
        with cluster:
            state = {
                "pid": os.getpid(),
                "began": read_start(os.getpid()),
                "address": cluster.address,
                "frontends": cluster.frontends,
                "shards": cluster.shards,
                "database": f"{cluster.database.folder} port {cluster.database.port}",
                "processes": {name: one.pid for name, one in cluster.processes.items()},
                "metrics": {name: cluster.metrics(name) for name in cluster.processes},
            }
            written = _STATE.with_suffix(".new")
            written.write_text(json.dumps(state, indent=1))
            written.replace(_STATE)
            signal.pause()
    finally:
        with contextlib.suppress(FileNotFoundError):
            _STATE.unlink()


def _stop() -> int:
    state = _read()
    if state is None:
        print("no cluster is running")
        return 0
    os.kill(state["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while _read() is not None:
        if time.monotonic() > deadline:
            print(f"just cluster: process {state['pid']} does not end", file=sys.stderr)
            return 1
        time.sleep(0.1)
    print("the cluster has ended")
    return 0


def _status() -> int:
    state = _read()
    if state is None:
        print("no cluster is running; `just cluster start` starts one")
        return 1
    print(f"address    {state['address']} (namespace default)")
    print(f"frontends  {', '.join(state['frontends'])}")
    print(f"shards     {state['shards']}")
    print(f"database   {state['database']}")
    for name, pid in state["processes"].items():
        words = f"process {pid}" if is_alive(pid) else "down"
        print(f"{name:10} {words}, metrics {state['metrics'][name]}")
    return 0


def _read() -> dict | None:
    """Return the state of the running cluster, or None."""
    try:
        state = json.loads(_STATE.read_text())
    except FileNotFoundError:
        return None
    # After a crash, the pid may belong to another process.
    return state if read_start(state["pid"]) == state["began"] else None


if __name__ == "__main__":
    sys.exit(main())
