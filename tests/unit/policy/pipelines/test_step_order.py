"""Cycles and ancestors in the order of steps."""

import random

import pytest

from rekindle.policy.pipelines.step_order import find_cycle, list_ancestors


@pytest.mark.parametrize(
    ("dependencies", "cycle"),
    [
        ({}, []),
        ({"a": []}, []),
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, []),
        ({"a": ["a"]}, ["a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b"]),
        ({"a": [], "b": ["a", "d"], "c": ["b"], "d": ["c"]}, ["b", "d", "c"]),
        ({"start": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c"]),
    ],
)
def test_a_cycle_is_found_in_the_order_of_its_dependencies(dependencies, cycle):
    assert find_cycle(dependencies) == cycle


def test_ancestors_include_the_dependencies_of_dependencies():
    dependencies = {"a": [], "b": ["a"], "c": ["b"], "d": ["a", "c"], "e": []}
    assert list_ancestors(dependencies, "d") == {"a", "b", "c"}
    assert list_ancestors(dependencies, "b") == {"a"}
    assert list_ancestors(dependencies, "e") == set()


def test_a_cycle_is_found_in_any_graph_that_has_one():
    """A graph of steps that depend only on earlier ones has none, until an edge closes one."""
    for seed in range(300):
        dice = random.Random(seed)
        size = dice.randrange(2, 30)
        ids = [str(number) for number in range(size)]
        graph = {
            ids[at]: [other for other in ids[:at] if dice.random() < 0.2] for at in range(size)
        }
        assert find_cycle(graph) == []
        last = dice.choice(ids)
        for ancestor in list_ancestors(graph, last):
            closed = graph | {ancestor: [*graph[ancestor], last]}
            cycle = find_cycle(closed)
            assert len(cycle) == len(set(cycle)) > 1
            for step, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
                assert following in closed[step]


def test_a_long_chain_does_not_exhaust_the_stack():
    chain = {str(number): [str(number + 1)] for number in range(5_000)} | {"5000": []}
    assert find_cycle(chain) == []
    assert len(list_ancestors(chain, "0")) == 5_000
