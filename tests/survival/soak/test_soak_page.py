"""The section about the soak says so if a run lost something, or if a measure grew."""

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.append(str(Path(__file__).parents[3] / "tools"))
import soak_page
from soak_figures import Run, Stored, Trend

pytestmark = pytest.mark.pure

GOOD = Run(
    cli="codex",
    seed=1,
    total=12,
    done=12,
    lost=0,
    twice=0,
    interventions=0,
    seconds=60,
    requests=30,
    faults={"reboot": 2},
    ended="the work is done",
    left=0,
    missing=0,
    trends={"processor": Trend(0.4, 0.5, 0.5)},
    series={"seconds": [5.0, 6.0]},
    elsewhere=[],
)


def stored(*runs):
    return Stored("2026-11-19", 24, 3, {"codex": "1"}, {"reboot": "a reboot"}, {}, list(runs))


def changed(**more):
    return msgspec.structs.replace(GOOD, **more)


def test_runs_without_trouble():
    judged = soak_page._judge(stored(GOOD, GOOD))
    assert "24 items in 2 runs, through 4 faults: none was lost" in judged
    assert "stayed flat in each run" in judged


@pytest.mark.parametrize("name", ["lost", "twice", "left", "interventions", "missing"])
def test_a_run_with_a_loss_is_named(name):
    judged = soak_page._judge(stored(GOOD, changed(seed=2, **{name: 1})))
    assert "with trouble in Codex, 2" in judged


def test_a_measure_that_grew_is_named_and_bold():
    grown = changed(seed=3, trends={"processor": Trend(0.4, 0.7, 0.5)})
    assert "Not all measures were flat: Codex, 3 (processor)." in soak_page._judge(stored(grown))
    assert "**0.40 → 0.70**" in "".join(soak_page._list_trends(stored(grown)))


def test_faults_are_added_up_for_each_cli():
    assert "| a reboot | 4 |" in soak_page._list_faults(stored(GOOD, GOOD))
