"""Many agents through the Python API: 1,000 on a real cluster, and a share of them in CI."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import prerequisites
from fleet.cluster.agents import drive
from fleet.cluster.cluster import Cluster
from fleet.cluster.prepare import MissingProgramError
from fleet.engine import Engine

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3600)]
WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
AGENTS: Final = 1000 if WHOLE else 20
PHASES: Final = 13


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Start a cluster, or for a share of the agents the development server."""
    if not WHOLE:
        engine: Engine = request.getfixturevalue("own_engine")
        yield engine.address
        return
    try:
        cluster = Cluster(tmp_path / "cluster")
    except MissingProgramError as missing:
        prerequisites.refuse(str(missing))
    with cluster:
        yield cluster.address


def test_all_agents_are_defined_run_listed_watched_and_stopped(address, tmp_path):
    times = drive(address, tmp_path, AGENTS)
    assert len(times) == PHASES
    if WHOLE:  # with few agents, the requests for all take as long as those for each
        assert times["define again"] < times["define"]
        assert times["watch: one request"] < times["run"]
