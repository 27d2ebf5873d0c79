"""Pauses that double, up to their longest."""

import ast
from pathlib import Path

import pytest

from rekindle.policy.exits import backoff
from rekindle.policy.exits.backoff import (
    compute_backoff,
    compute_probe_pause,
    double_pause,
)
from rekindle.policy.settings.runtime_settings import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    RestartSettings,
)


@pytest.mark.parametrize(
    ("first", "doublings", "most", "seconds"),
    [
        (5.0, -3, 100.0, 5.0),
        (5.0, 0, 100.0, 5.0),
        (5.0, 1, 100.0, 10.0),
        (5.0, 4, 100.0, 80.0),
        (5.0, 5, 100.0, 100.0),
        (1.0, 59, 2.0**80, 2.0**59),
        (1.0, 60, 2.0**80, 2.0**60),
        (1.0, 61, 2.0**80, 2.0**60),
        (1.0, 10**9, 2.0**80, 2.0**60),
    ],
)
def test_a_pause_doubles_up_to_its_longest(first, doublings, most, seconds):
    """A count from a damaged file neither overflows nor shortens it."""
    assert double_pause(first, doublings, most) == seconds


def test_the_cooldown_of_the_manifest_and_its_longest():
    limits = RestartSettings(cooldown=3.0, max_cooldown=20.0)
    assert [compute_backoff(limits, count) for count in range(4)] == [3.0, 6.0, 12.0, 20.0]


def test_a_probe_starts_at_its_own_pause():
    assert compute_probe_pause(0) == LIMIT_PROBE_SECONDS
    assert compute_probe_pause(1) == 2 * LIMIT_PROBE_SECONDS
    assert compute_probe_pause(50) == MAX_LIMIT_PROBE_SECONDS


def test_no_other_module_doubles_so_many_times():
    """There is one formula for growing pauses."""
    root = Path(backoff.__file__).parents[2]
    powers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Pow)
        and not isinstance(node.right, ast.Constant)
    }
    assert powers == {"policy/exits/backoff.py"}
