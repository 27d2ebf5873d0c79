"""The page on the cost of a fleet uses measured figures."""

import sys
from pathlib import Path

import pytest

from fleet.figures import hold

ROOT = Path(__file__).parents[2]
MEASURED = (
    "tests/bench/test_fleet.py",
    "tests/fleet/test_cost.py",
    "tests/fleet/test_many.py",
    "tests/fleet/test_verbs.py",
)
LOAD = {"writes_per_agent_hour", "actions_per_agent_hour", "writes_per_brief", "actions_per_brief"}
"""Figures that `just fleet-load` measures, because that takes minutes."""


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import scale  # noqa: PLC0415 - a script of tools/, found by the line above

    return scale


def test_each_figure_is_held_against_what_is_measured(scale):
    """The page has no figure without a measurement."""
    tests = "".join((ROOT / name).read_text() for name in MEASURED)
    for name in set(scale.Figures.__struct_fields__) - LOAD:
        assert f"{name}=" in tests, name


def test_the_page_names_where_they_are_measured(scale):
    page = scale.page()
    for name in MEASURED:
        assert name in " ".join(page.split())
    assert "just fleet-load" in page
    assert "@" not in page, "each table is where it belongs"


def test_the_page_has_the_figures_of_a_cluster(scale):
    """It names the versions, the shards and the command, and has each measured step."""
    figures, page = scale.read_figures(), " ".join(scale.page().split())
    for words in (
        "just cluster costs",
        f"Temporal {figures.temporal}",
        f"PostgreSQL {figures.cycles.postgresql}",
        f"{figures.shards} history shards",
        "| cluster, PostgreSQL |",
        " ".join(figures.describe_limit().split()),
    ):
        assert words in page, words


def test_waiting_agents_cost_a_cluster_nothing(scale):
    """The recorded statements per minute differ by less than the noise of one run."""
    idle = scale.read_figures().idle
    if idle is None:
        assert "have not been measured" in scale.page()
        return
    assert idle.agents == 2_000
    assert idle.idle.requests == 0
    assert idle.idle.transactions < 1.2 * idle.none.transactions


def test_the_load_on_a_cluster_is_the_sum_of_its_messages(scale):
    figures = scale.Figures(*([1.0] * len(scale.Figures.__struct_fields__)))
    cluster = scale.read_figures()
    load = scale.Load(figures, 1_000)
    costs = cluster.costs
    assert load.count_transactions(cluster) == pytest.approx(
        load.cycles * costs.cycle.transactions
        + load.folds * costs.fold.transactions
        + load.beats * costs.beat.transactions
    )


def test_what_is_written_is_not_what_is_measured():
    """A figure that is three times as high fails the check."""
    with pytest.raises(AssertionError, match="updates_per_cycle"):
        hold(updates_per_cycle=6 * 3.1)
    with pytest.raises(AssertionError, match="updates_per_cycle"):
        hold(updates_per_cycle=6 / 3.1)
    hold(updates_per_cycle=6)


def test_twice_as_many_agents_cost_twice_as_much(scale):
    """The hosts are an exception: there is always at least one."""
    figures = scale.Figures(*([1.0] * len(scale.Figures.__struct_fields__)))
    one, two = scale.Load(figures, 1_000), scale.Load(figures, 2_000)
    for what in ("beats", "updates", "history", "database", "cores", "hosts", "writes", "actions"):
        assert getattr(two, what) == pytest.approx(2 * getattr(one, what)), what
    assert scale.Load(figures, 1).hosts == 1


def test_a_longer_timeout_means_fewer_heartbeats(scale, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    figures = scale.Figures(*([1.0] * len(scale.Figures.__struct_fields__)))
    assert scale.Load(figures, 1_000, heartbeat=10).beats == pytest.approx(4 / 2.5)
    assert scale.Load(figures, 1_000, heartbeat=100).beats == pytest.approx(4 / 25)
