"""The cost of the loop itself: the same in its thousandth cycle as in its first."""

import statistics
import subprocess
import time

import pytest

from rekindle.documents import events
from sampling import WHOLE
from torture.test_cycle_kill import OLD, opened, supervise

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

CYCLES = 1_000 if WHOLE else 150
PART = 10
TURNS = 7
# The same relay between the same cycles, as a shell script has it: read, compare, copy, run, write.
SCRIPT = r"""
mkdir -p memories; printf '## Next Action\npart 0\n' > memories/consensus.md
for i in $(seq 1 "$1"); do
  if [ -f memories/prev_consensus.md ]; then
    prev=$(sed -n '/## Next Action/{n;p}' memories/prev_consensus.md)
    curr=$(sed -n '/## Next Action/{n;p}' memories/consensus.md)
    [ "$prev" = "$curr" ] && echo "STALL DETECTED"
  fi
  cp memories/consensus.md memories/prev_consensus.md
  printf '## Current Phase\nBuild\n\n## Next Action\npart %s\n' "$i" > memories/.consensus.tmp
  mv memories/.consensus.tmp memories/consensus.md
done
"""


def test_a_cycle_costs_the_same_after_a_thousand_of_them(tmp_path):
    old, young = begun(tmp_path / "old"), begun(tmp_path / "young")
    began = time.perf_counter()
    supervise(old, cycles=CYCLES)
    whole = (time.perf_counter() - began) / CYCLES
    supervise(young, cycles=PART)
    # In turns, and of the processor: the moods of a shared machine last longer than a turn, and
    # are no property of the loop.
    spent = [(spent_by(old), spent_by(young)) for _ in range(TURNS)]
    last, first = (statistics.median(of_one) / PART for of_one in zip(*spent, strict=True))
    assert opened(old).read("trades").projection.cycle_ended == CYCLES + PART * TURNS
    began = time.perf_counter()
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "loop", str(CYCLES)], cwd=tmp_path, capture_output=True, check=True
    )
    script = (time.perf_counter() - began) / CYCLES
    assert done.stdout == b"", "each of its cycles has another directive"
    print(
        f"\n{first * 1e3:.1f} ms of the processor for a cycle at first, {last * 1e3:.1f} ms after"
        f" {CYCLES:,}: {last / first:.2f} times; {whole * 1e3:.1f} ms in all, {whole / script:.1f}"
        " times a shell script that keeps nothing"
    )
    assert last / first <= 1.2


def begun(project):
    project.mkdir()
    store = opened(project)
    store.submit("trades", events.RelayProposed(ts=store._clock(), text=OLD, by="person"))
    return project


def spent_by(project):
    began = time.process_time()
    supervise(project, cycles=PART)
    return time.process_time() - began
