"""Leftovers of dead supervisors prevent no start, and make us signal no other process.

CI plays a few hundred situations; `just torture` plays 10,000.
"""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from loopback.place import Place

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3600)]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
SITUATIONS: Final = 10_000 if WHOLE else 150
SEED: Final = 20261115
TESTS: Final = Path(__file__).parents[1]


def test_stale_locks_refuse_no_start_and_signal_no_process(place: Place, in_memory: Path):
    """Reused process ids and other boots cause 0 wrong signals and 0 refused starts."""
    words = [str(TESTS / "torture/stale.py"), str(in_memory), str(SEED), str(SITUATIONS)]
    started = place.start(
        [sys.executable, "-P", *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS), "LC_ALL": "C.UTF-8"},
        cwd=in_memory,
    )
    assert started.wait(3000) == 0, started.err[-3000:]
    found = json.loads(started.out)
    print(f"\n{sum(found['counts'].values())} situations, seed {SEED}: {found['counts']}")
    assert sum(found["counts"].values()) == SITUATIONS
    assert found["counts"]["really left"] > 0
    assert len(found["counts"]) == 7
    assert found["wrong"] == {}
    assert found["alive"]
    assert found["refused"] == []
    assert found["believed"] == []
