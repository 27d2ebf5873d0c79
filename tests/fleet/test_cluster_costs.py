"""The arithmetic of `just cluster costs`; it needs no server."""

import msgspec
import pytest

from fleet.cluster import costs
from fleet.cluster.counters import name_statement, subtract_background, summarize
from fleet.cluster.growth import Step, choose_step, find_limit, name_limit


def make_step(agents: int, **given) -> Step:
    usual = {
        "failed": 0,
        "updates": agents * 0.8,
        "p50_ms": 20.0,
        "p95_ms": 50.0,
        "transactions": agents * 2.0,
        "syncs": 10.0,
        "sync_share": 0.1,
        "lock_ms": 1.0,
        "servers": 0.5,
        "database": 0.2,
        "worker": 0.2,
        "others": 0.1,
        "idle": 1.0,
        "waits": {"CPU": 1.0},
    }
    return Step(agents=agents, **usual | given)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("INSERT INTO history_node (shard_id) VALUES ($1)", "INSERT history_node"),
        ("UPDATE shards SET range_id = $1", "UPDATE shards"),
        ("DELETE FROM tasks_v2 WHERE range_hash = $1", "DELETE tasks_v2"),
        ("SELECT range_id FROM shards WHERE shard_id = $1 FOR SHARE", "LOCK shards"),
        ("SELECT a,\n b FROM executions e WHERE x = $1", "SELECT executions"),
        ("BEGIN READ WRITE", "BEGIN"),
        ("COMMIT", "COMMIT"),
        ("SHOW server_version", "OTHER"),
        ("SELECT calls FROM pg_stat_statements", ""),
    ],
)
def test_a_statement_has_a_kind_and_a_table(query, name):
    assert name_statement(query) == name


def test_the_background_of_the_same_time_is_not_the_cost_of_the_work():
    quiet = {"seconds": 20.0, "transactions": 40.0}
    counted = {"seconds": 10.0, "transactions": 120.0, "statement COMMIT": 7.0}
    net = subtract_background(counted, quiet)
    assert net == {"seconds": 10.0, "transactions": 100.0, "statement COMMIT": 7.0}


def test_a_summary_tells_writes_locks_and_reads_apart():
    counted = {
        "request CreateTasks": 2.0,
        "statement INSERT tasks_v2": 3.0,
        "statement DELETE tasks_v2": 1.0,
        "statement LOCK shards": 5.0,
        "statement SELECT executions": 6.0,
        "statement COMMIT": 9.0,
        "transactions": 4.0,
        "commits": 9.0,
        "cpu servers": 0.05,
        "cpu worker": 0.03,
        "cpu database": 0.02,
        "bytes": 100.0,
        "wal bytes": 200.0,
        "syncs": 3.0,
    }
    found = summarize(counted)
    assert (found["requests"], found["writes"], found["locks"], found["reads"]) == (2, 4, 5, 6)
    assert found["database_ms"] == 20
    of_a_server = {name: counted[name] for name in ("cpu servers", "cpu worker", "bytes")}
    assert "transactions" not in summarize(of_a_server)


def test_growth_is_linear_until_an_agent_does_less():
    steps = [make_step(10), make_step(50), make_step(100, updates=63.0), make_step(200)]
    assert find_limit(steps) == steps[2]
    assert find_limit(steps[:2]) is None


def test_growth_is_linear_until_updates_take_twice_as_long():
    steps = [make_step(10), make_step(25, p95_ms=99.0), make_step(50, p95_ms=100.0)]
    assert find_limit(steps) == steps[2]


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"idle": 0.05}, "processors"),
        ({"sync_share": 0.7}, "disk"),
        ({"lock_ms": 15.0}, "shard locks"),
        ({"waits": {"CPU": 1.0, "Lock tuple": 3.0}}, "database locks"),
    ],
)
def test_the_limit_has_a_cause(given, cause):
    assert name_limit(make_step(100, **given), cores=2) == cause


def test_the_least_disturbed_of_repeated_steps_counts():
    repeats = [make_step(10, others=value, p95_ms=90.0 * value) for value in (1.5, 0.2, 0.9)]
    assert choose_step(repeats) == repeats[1]


def test_a_count_that_is_three_times_as_high_is_reported():
    recorded = {"cycle": {"transactions": 20.0, "server_ms": 50.0}}
    measured = {"cycle": {"transactions": 61.0, "server_ms": 500.0}}
    assert costs.compare(recorded, measured, "cycles") == [
        "cycles.cycle.transactions: 61 measured, 20 recorded"
    ]
    assert not costs.compare(recorded, recorded, "cycles")
    (missing,) = costs.compare({}, measured, "cycles")
    assert missing == "cycles: nothing is recorded; --write does that"


def test_figures_are_rounded_at_every_depth():
    figures = {"steps": [msgspec.to_builtins(make_step(10, p50_ms=12.3456))], "words": "a"}
    rounded = costs.round_all(figures)
    assert rounded["steps"][0]["p50_ms"] == 12.3
    assert rounded["words"] == "a"
