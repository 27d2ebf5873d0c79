"""Measure the time from the death of one process to the start of the next.

A program replaces Claude Code: it prints the id of its session, as Claude Code does, and then kills
itself. It writes the time of its first and last instruction itself, so the figure includes
everything that we do in between (search for leftover processes, make the exit and the next start
durable, write the prompt) and the start of the replacement's own interpreter. That start is
measured in the same run and printed beside the figure, not subtracted.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys

import pytest

pytestmark = pytest.mark.bench

CRASHES = 20
STARTS = 32
"""The number of interpreter starts that a restart may take: 10 to 18 were measured, and half of
that is the disk's."""
MANIFEST = f"""\
version: 1
agents:
  trades:
    harness: claude-code
    cycles: 1
runtime:
  relay: {{summarizer: mechanical}}
  restart: {{max_crashes: {CRASHES + 1}, cooldown: 0s}}
  progress: {{paced_after: 45, max_launches: 45}}
"""
STAND_IN = """\
import time
first = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
import os, sys
session = next(one.partition("=")[2] for one in sys.argv if one.startswith(("--sess", "--resume")))
line = '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\\n' % session
os.write(1, line.encode())
times = os.open("times", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
last = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
os.write(times, b"%d %d\\n" % (first, last))
os.kill(os.getpid(), 9)
"""
PROGRAM = """\
import subprocess, sys, time
from pathlib import Path
from rekindle import config
from rekindle.wiring.supervisor_setup import run_supervisor
from rekindle.wiring.open_store import open_store
python, stand_in = sys.argv[1:]
project = config.load_project(Path.cwd())
outcome = run_supervisor(project, open_store(project), "trades", lambda _: None, once=True,
                       program=(python, "-I", "-S", stand_in))
import json
starts = []
for _ in range(20):
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    code = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))"
    began = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, check=True)
    starts.append((int(began.stdout) - before) / 1e6)
print(json.dumps({"outcome": outcome.why, "starts": starts}))
"""


def test_the_next_process_runs_soon_after_one_has_died(place, tmp_path):
    """From the last instruction of a killed agent to the first of the next.

    The target is a p90 of 200 ms on an idle machine; what is asserted is the ratio to the start of
    an interpreter, which a busy machine slows down as much.
    """
    project = tmp_path / "project"
    project.mkdir()
    # In a repository, a restart must not wait for a snapshot.
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "rekindle.yaml").write_text(MANIFEST)
    (project / "PROMPT.md").write_text("Ship it.\n")
    stand_in = tmp_path / "stand-in.py"
    stand_in.write_text(STAND_IN)
    started = place.start(
        [sys.executable, "-c", PROGRAM, sys.executable, str(stand_in)],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd=project,
    )
    assert started.wait(120) == 0, started.err
    found = json.loads(started.out)
    assert found["outcome"] == "crash"
    times = [tuple(map(int, line.split())) for line in (project / "times").read_text().splitlines()]
    assert len(times) == CRASHES + 1
    gaps = sorted((begun - died) / 1e6 for (_, died), (begun, _) in itertools.pairwise(times))
    p90 = gaps[int(len(gaps) * 0.9)]
    interpreter = statistics.median(found["starts"])
    print(
        f"\n{len(gaps)} restarts: median {statistics.median(gaps):.0f} ms, p90 {p90:.0f} ms,"
        f" of which the stand-in's own start about {interpreter:.0f} ms"
    )
    # The shortest of both, because a busy host only adds to a time.
    assert gaps[0] <= STARTS * min(found["starts"])
