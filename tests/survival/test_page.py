"""The page says what the runs of a cell measured, also if they disagree."""

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import survival_costs
import survival_page
from survival_figures import Cell, Run, read

pytestmark = pytest.mark.pure

GOOD = Run(
    evidence="killed 1 process",
    done=20,
    lost=0,
    twice=0,
    requests=25,
    tokens=1000,
    after_stop=0,
    ended="the work is done",
    seconds=10,
    resumed_after=2.0,
    interventions=0,
    left=0,
    told=["done"],
)


def cell(*runs, fault="cli-killed"):
    return Cell("tool", "codex", fault, list(runs))


def changed(**more):
    return msgspec.structs.replace(GOOD, **more)


def test_a_cell_without_trouble_is_whole():
    assert cell(GOOD, GOOD).troubles(20) == []
    assert cell(GOOD, GOOD).is_whole(20)


@pytest.mark.parametrize(
    ("runs", "trouble"),
    [
        ([changed(done=11), GOOD], "11–20 of 20"),
        ([changed(done=11), changed(done=11)], "11 of 20"),
        ([changed(twice=1), changed(twice=3)], "1–3 done twice"),
        ([changed(lost=2)], "2 lost"),
        ([changed(interventions=1)], "1 × a person"),
        ([changed(left=1), GOOD], "0–1 processes left"),
    ],
)
def test_a_trouble_in_any_run_is_shown_with_its_range(runs, trouble):
    found = cell(*runs)
    assert found.troubles(20) == [trouble]
    assert not found.is_whole(20)


def test_work_that_continues_after_the_stop_is_shown():
    stopped = changed(done=6)
    assert cell(stopped, fault="operator-stop").is_whole(20)
    on = cell(changed(done=20, after_stop=15), fault="operator-stop")
    assert on.troubles(20) == ["15 requests after the stop"]


def test_a_run_whose_fault_did_not_happen_does_not_count():
    assert not cell(GOOD, changed(evidence="")).is_whole(20)
    assert cell(changed(evidence=""), fault="none").is_whole(20)


def test_a_cell_in_which_another_tool_did_better_is_in_the_first_paragraph():
    stored = read()
    bad = msgspec.structs.replace(GOOD, interventions=1)
    cells = [
        Cell("rekindle", "codex", "login", [bad]),
        Cell("plain-loop", "codex", "login", [GOOD]),
    ]
    found = survival_page._find_better(msgspec.structs.replace(stored, cells=cells))
    assert "plain-loop with Codex: an expired login" in " ".join(found.split())
    cells = [msgspec.structs.replace(one, runs=[GOOD]) for one in cells]
    found = survival_page._find_better(msgspec.structs.replace(stored, cells=cells))
    assert "No tool did better" in " ".join(found.split())


def test_a_tool_that_did_as_well_and_sooner_is_in_the_first_paragraph_and_in_a_table():
    stored = read()
    late = changed(resumed_after=40.0)
    cells = [
        Cell("rekindle", "codex", "login", [late]),
        Cell("plain-loop", "codex", "login", [GOOD]),
    ]
    found = msgspec.structs.replace(stored, cells=cells)
    assert "In one cell, another tool" in survival_page._refer_to_sooner(found)
    row = "| an expired login, which is later repaired | Codex | plain-loop | 2 s | 40 s |"
    assert row in survival_page._list_sooner(found)
    cells = [msgspec.structs.replace(one, runs=[GOOD]) for one in cells]
    found = msgspec.structs.replace(stored, cells=cells)
    assert survival_page._refer_to_sooner(found) == ""
    assert survival_page._list_sooner(found) == []


def test_runs_of_a_cell_that_disagree_are_named():
    stored = read()
    cells = [Cell("rekindle", "codex", "login", [GOOD, GOOD])]
    same = survival_page._describe_runs(msgspec.structs.replace(stored, cells=cells))
    assert same.endswith("the counts of all runs agree.")
    cells = [Cell("rekindle", "codex", "login", [GOOD, changed(twice=1)])]
    differ = survival_page._describe_runs(msgspec.structs.replace(stored, cells=cells))
    assert differ.endswith(
        "except in: rekindle with Codex, an expired login, which is later repaired."
    )


def test_a_cell_that_needs_many_tokens_is_listed_with_its_cause():
    stored = read()
    ideal = stored.ideal["codex"].tokens
    cells = [
        Cell("rekindle", "codex", "window", [changed(tokens=round(1.3 * ideal))]),
        Cell("rekindle", "codex", "login", [changed(tokens=round(1.15 * ideal))]),
    ]
    found = survival_costs._explain(msgspec.structs.replace(stored, cells=cells))
    assert "Codex, the context window is full: 1.30, because each new session" in found
    assert "login" not in found


def test_every_single_fault_has_a_cause_for_its_tokens():
    assert set(survival_costs.CAUSES) == set(read().faults) - survival_costs.UNLIKE
