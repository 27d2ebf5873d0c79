"""The load of running agents on the engine, compared with the scheme of earlier versions.

`just fleet-load` measures whole cycles and briefs.
"""

import asyncio

import msgspec
import pytest

from fleet.figures import FIGURES
from fleet.load import HOUR, TIMES, LoadRun, MeasuredEngine, simulate_day

AGENTS = 8
SECONDS = 10.0
"""Measured time: as long as hook reports wait here."""
SESSION = 10.0 * HOUR
"""A session that does not end while it is measured."""
MOST = 0.3
"""Largest share of the earlier writes and actions; the target for whole cycles is 0.2."""


@pytest.mark.bench
@pytest.mark.timeout(300, method="thread")
def test_a_session_costs_less_than_before(tmp_path):
    async def compare():
        with MeasuredEngine(tmp_path) as engine:
            run = LoadRun(engine, tmp_path, AGENTS, SESSION)
            async with run.running():
                return await run.measure(SECONDS * TIMES / HOUR)

    before, after = asyncio.run(compare())
    print(f"\nper agent-hour: before {before}; after {after}")
    assert before.actions > 200, "both schemes ran"
    assert after.writes / before.writes <= MOST
    assert after.actions / before.actions <= MOST


@pytest.mark.parametrize("agents", [1_000, 10_000, 100_000])
def test_briefs_at_the_same_hour_make_no_peak(agents):
    """A fifth of the agents run all day, and all of them have the default brief hour."""
    figures = msgspec.json.decode(FIGURES.read_bytes(), type=dict[str, float])
    running, brief = figures["writes_per_agent_hour"], figures["writes_per_brief"]
    mean, peak = simulate_day(agents, 0.2, running, brief)
    print(f"\n{agents} agents: mean {mean:.2f}/s, peak {peak:.2f}/s")
    assert peak <= 3 * mean


def test_the_simulation_shows_a_peak():
    """Briefs of 5 times the cost would be one."""
    mean, peak = simulate_day(1_000, 0.2, 50, 100)
    assert peak > 3 * mean
