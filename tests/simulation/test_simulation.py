"""Agents for many years, on simulated hosts with every possible fault.

The supervisor is the real one: policy, `Supervisor`, `CycleRunner`, `Launch`; so is the
`Watchdog`. The host and its faults are drawn from a seed (`host.py`), the settings of
each agent as well (`scenarios.py`), and an oracle that knows the true causes checks every step
(`oracle.py`).

A violation names its seed. To repeat the same life alone:

    REKINDLE_SEED=1234 pytest tests/simulation/test_simulation.py -k seed -s

CI lives 24 years, `just torture tests/simulation` 1,000.
"""

import os
import time

import pytest
from host import HOUR, YEAR, Host, Scenario
from scenarios import drawn

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SEED = os.environ.get("REKINDLE_SEED")
YEARS_EACH = 0.25
LIVES = 500 if WHOLE else 12
"""In each of the eight parts."""


def live(seed):
    """One life; where it breaks a promise, it says which, after what, and how to see it again."""
    host = Host(drawn(seed), seed)
    try:
        host.live(YEARS_EACH * YEAR)
    except Exception as error:  # noqa: BLE001 - whatever it is, its seed is what helps
        past = "\n".join(host.oracle.past)
        pytest.fail(f"REKINDLE_SEED={seed}: {error!r}\n{past}")
    return host


@pytest.mark.torture
@pytest.mark.timeout(3600 if WHOLE else 300)
@pytest.mark.parametrize("part", range(8))
def test_years_of_faults(part):
    """24 agent-years in CI, 1,000 in the whole sweep: no promise is broken at any step."""
    began = time.process_time()
    lives = [live(part * LIVES + number) for number in range(LIVES)]
    took, years = time.process_time() - began, LIVES * YEARS_EACH
    faults, launches = (sum(getattr(one, it) for one in lives) for it in ("faults", "launches"))
    print(
        f"\n{years:g} agent-years, {faults:,} faults, {launches:,} launches:"
        f" {years / took:.1f} years a second"
    )
    assert faults > 300 * years
    assert launches > 300 * years


def test_a_person_s_session_continues_whatever_the_clock_says():
    """In `mode: stay`, only hooks report a session on a person's screen, by whatever clock."""
    mix = {"clock": 3, "crash": 3, "crashes": 1, "kill -9": 1}
    for seed in range(6):
        Host(Scenario(mix=mix, gap=HOUR / 2, stays=True), seed).live(YEAR / 50)


@pytest.mark.skipif(SEED is None, reason="REKINDLE_SEED names a life to live again")
def test_the_seed_that_was_asked_for():
    """One life, to look into."""
    print("\n".join(live(int(SEED or 0)).oracle.past))


def test_a_life_depends_on_its_seed_alone():
    """Otherwise a violation could not be repeated."""
    one, same, other = live(1), live(1), live(2)
    assert list(one.oracle.past) == list(same.oracle.past)
    assert list(one.oracle.past) != list(other.oracle.past)
