"""The later size: a log of a million events, a thousand agents on a host."""

import contextlib
import io
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime

import msgspec
import pytest

from prerequisites import needs
from rekindle import config
from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.policy.projection import open_loops
from rekindle.stores.log import log_acceptance
from rekindle.system import clock
from rekindle.wiring.open_store import open_store
from torture.tracing import obstacle, trace

pytestmark = pytest.mark.bench

MILLION = 1_000_000
FEW, AGENTS = 10, 1_000
MOST_TIMES = 16


def make_project(folder, names):
    lines = "".join(f"  {name}:\n    harness: claude-code\n" for name in names)
    (folder / "rekindle.yaml").write_text(f"version: 1\nagents:\n{lines}")
    return open_store(config.load_project(folder))


@needs(obstacle())
def test_status_of_a_million_events_reads_at_most_a_megabyte_of_them(tmp_path):
    """The snapshot spares readers the history: counted by the bytes that `status` really reads."""
    store = make_project(tmp_path, ["trades"])
    store.create("trades")
    log = store.folder("trades").log
    beat = events.render(
        events.Heartbeat(ts=datetime(2026, 4, 9, tzinfo=UTC), seq=7, gen=1, tool="Bash")
    )
    before, after = beat.split(b'"seq":7')
    with log.open("ab", buffering=1 << 20) as file:
        for number in range(2, MILLION + 1):
            file.write(b'%s"seq":%d%s\n' % (before, number, after))
    log_acceptance.seal_log(store.folder("trades"))
    start = time.perf_counter()
    store.submit("trades", open_loops.propose_loop({}, "last", "the last loop", clock.read_clock()))
    whole = time.perf_counter() - start
    for number in range(300):
        store.submit(
            "trades", open_loops.propose_loop({}, f"l{number}", "x" * 500, clock.read_clock())
        )

    def status(say):
        os.chdir(tmp_path)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = run(["status", "--json"])
        say(out.getvalue().encode() if code == 0 else b"failed")

    outcome, calls = trace(status, paths=True)
    (row,) = msgspec.json.decode(outcome.said)["agents"]
    assert row["at"] == MILLION + 301
    assert row["open_loops"] == 301
    read = sum(
        call.result or 0
        for call in calls
        if call.name in {"read", "pread64"} and call.path == str(log) and (call.result or 0) > 0
    )
    mapped = [call for call in calls if call.name == "mmap" and call.path == str(log)]
    print(
        f"\nlog of {log.stat().st_size / 1e6:.0f} MB: status read {read / 1e3:.0f} KB of it;"
        f" the first fold, from the beginning, took {whole:.1f} s"
    )
    assert 0 < read <= 1_000_000
    assert mapped == []


def make_agents(folder, count):
    folder.mkdir()
    names = [f"agent-{number:04d}" for number in range(count)]
    store = make_project(folder, names)
    for name in names:
        store.create(name)
        store.submit(
            name, open_loops.propose_loop({}, "open", "a loop of its own", clock.read_clock())
        )
    return names


def measure_status(folder, names):
    """Run `status --json` as a program of its own; return its processor time and its time."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-m", "rekindle", "status", "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
    )
    after, elapsed = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    rows = msgspec.json.decode(ended.stdout)["agents"]
    assert [row["agent"] for row in rows] == names
    assert all(row["open_loops"] == 1 for row in rows)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def test_a_thousand_agents_cost_little_more_than_the_start_of_the_program(in_memory):
    """Processor time, against ten agents in the same run: it depends on no machine and no load."""
    few, many = make_agents(in_memory / "few", FEW), make_agents(in_memory / "many", AGENTS)
    # In turns, so that the processor's frequency is the same for both.
    measured = [
        (measure_status(in_memory / "few", few), measure_status(in_memory / "many", many))
        for _ in range(3)
    ]
    of_few = min(cost for (cost, _), _ in measured)
    of_many = min(cost for _, (cost, _) in measured)
    elapsed = min(seconds for _, (_, seconds) in measured)
    print(
        f"\n{AGENTS} agents: status --json in {elapsed:.2f} s, {of_many:.2f} s of the processor;"
        f" {FEW} agents {of_few:.2f} s: {of_many / of_few:.1f} times (best of {len(measured)})"
    )
    assert of_many < MOST_TIMES * of_few
