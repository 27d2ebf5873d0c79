"""The cost of a daemon that watches many agents, none of which needs it.

Its processor time and its memory are the kernel's own figures. The time covers two of its
intervals, so that it contains whole checks and everything in between.
"""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rekindle import config
from rekindle.documents import events
from rekindle.policy.settings.runtime_settings import WatchSettings
from rekindle.policy.supervision import run_moves as policy
from rekindle.system import clock
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.open_store import open_store

pytestmark = pytest.mark.bench

AGENTS = 1_000
LOOKS = 2
TICKS = os.sysconf("SC_CLK_TCK")


def idle(project: Path) -> None:
    """Agents whose run is over, or that the operator has stopped, each with a past."""
    names = [f"agent-{number:04}" for number in range(AGENTS)]
    entries = "".join(f"  {name}: {{harness: claude-code}}\n" for name in names)
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")
    (project / "PROMPT.md").write_text("Ship it.\n")
    accept_folder(project)
    store, rng, now = open_store(config.load_project(project)), random.Random(1), clock.read_clock()
    for name in names:
        with store.writer(name) as writer:
            run = writer.projection.run
            writer.append(policy.make_desired_event(run, "running", now), events.RunStarted(ts=now))
            for number in range(rng.randrange(20)):
                writer.append(events.Heartbeat(ts=now, session="s", call=f"{number}"))
            if rng.random() < 0.5:
                writer.append(events.RunEnded(ts=now, why="done"))
            else:
                writer.append(policy.make_desired_event(writer.projection.run, "stopped", now))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def peak_megabytes(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def test_a_thousand_idle_agents_cost_next_to_nothing(in_memory):
    """Under 2 % of a core and 120 MB, at the interval that it has by default."""
    project = in_memory / "project"
    project.mkdir()
    idle(project)
    said = in_memory / "said"
    # Without its own PID namespace, because the figures are read by its pid here.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(in_memory), "LC_ALL": "C.UTF-8"}
    argv = [sys.executable, "-I", "-m", "rekindle", "daemon"]
    with said.open("wb") as words:
        daemon = subprocess.Popen(argv, cwd=project, env=environment, stdout=words, stderr=words)
    try:
        deadline = time.monotonic() + 60
        while said.read_bytes().count(b"\n") < AGENTS:
            assert daemon.poll() is None, said.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        first = cpu_seconds(daemon.pid)
        seconds = LOOKS * float(WatchSettings().every)
        began = time.monotonic()
        time.sleep(seconds)  # measured time, not a wait
        share = (cpu_seconds(daemon.pid) - first) / (time.monotonic() - began)
        peak = peak_megabytes(daemon.pid)
    finally:
        daemon.terminate()
        daemon.wait(30)
    print(
        f"\n{AGENTS} idle agents: {share:.2%} of a core over {seconds:.0f} s, peak {peak:.0f} MB;"
        f" first look {first:.1f} s of it, with the start"
    )
    told = said.read_text()
    assert told.count("its run is over") + told.count("stopped by the operator") == AGENTS
    assert "started" not in told
    assert seconds >= 20
    assert share < 0.02
    assert peak < 120
