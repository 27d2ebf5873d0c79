"""Nights with questions: each is answered at most once, none is lost, and no call runs unasked."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest

import sampling
from loopback.fixtures import require_namespaces
from loopback.place import Place
from phone.night_world import IGNORED, Night, find_faults

pytestmark = [pytest.mark.torture, pytest.mark.timeout(1800)]


class Plan(NamedTuple):
    """The size of a night."""

    seed: int
    agents: int
    calls: int
    """Number of calls of each agent."""
    wait: int
    """Seconds that a call waits for an answer."""
    kills: int


NIGHTS = sampling.in_ci([Plan(1, 5, 10, 20, 20), Plan(2, 5, 10, 20, 40), Plan(3, 2, 2, 6, 3)], 2)


@pytest.fixture
def home_place(tmp_path):
    """Give the test its own processes, which can reach the double on this host's loopback."""
    require_namespaces()
    with Place(SimpleNamespace(argv=lambda argv: argv), tmp_path / "place") as made:
        yield made


@pytest.mark.parametrize("plan", NIGHTS, ids=str)
def test_a_night_of_kills(home_place, telegram, desk, tmp_path, plan):
    """The bridge and the supervisors are killed at random, and 20 % of the questions ignored."""
    desk.pair()
    night = Night(home_place, telegram, tmp_path, plan)
    night.play()
    assert find_faults(night) == []
    decisions = list(night.person.decisions.values())
    counts = f"{len(decisions)} questions, {decisions.count(IGNORED)} ignored"
    ran = f"{len(night.list_runs())} calls ran, {len(telegram.messages)} messages"
    print(f"{counts}, {ran}, kills: {dict(night.kills)}")
    assert len(decisions) >= plan.agents * plan.calls
    assert sum(night.kills.values()) == plan.kills
    # In a short wait on a slow host, every approval may come too late.
    assert night.list_runs() or plan.wait < 20
    assert IGNORED in decisions

    # The checks can fail: a call that ran once more, and an answer that was never given.
    with (night.path / "calls").open("a") as file:
        file.write("a0 0 1\n")
    night.person.decisions["a0-999"] = "allow"
    assert len(find_faults(night)) == 2
