"""The limits of each agent on a host, and how the host describes them."""

import pytest

from rekindle.policy.sandbox.host_floor import make_host_floor, render_floor
from rekindle.policy.sandbox.profile import SandboxFloor

GIBIBYTE = 1 << 30


def test_each_agent_gets_its_share_of_the_memory_but_enough_to_work():
    assert make_host_floor(32 * GIBIBYTE, 4) == SandboxFloor(8 * GIBIBYTE, 1024)
    assert make_host_floor(4 * GIBIBYTE, 16).memory == 2 * GIBIBYTE


def test_the_operator_s_limits_replace_the_defaults():
    floor = make_host_floor(32 * GIBIBYTE, 4, memory=GIBIBYTE, processes=50, cpu=1.5)
    assert floor == SandboxFloor(GIBIBYTE, 50, 1.5)


@pytest.mark.parametrize(
    ("floor", "words"),
    [
        (None, "sandbox off"),
        (SandboxFloor(), "sandbox on"),
        (SandboxFloor(processes=2, is_container=True), "sandbox container: 2 processes"),
        (SandboxFloor(6 * GIBIBYTE, 1024), "sandbox on: 6G of memory, 1,024 processes"),
        (SandboxFloor(GIBIBYTE // 2, 1, 1.5), "sandbox on: 0.5G of memory, 1 process, 1.5 cores"),
    ],
)
def test_a_host_tells_how_it_contains_its_agents(floor, words):
    assert render_floor(floor) == words
