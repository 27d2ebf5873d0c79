"""Which agents live on the simulated hosts, and what befalls them."""

import random

from host import FAULTS, HOUR, Scenario

from rekindle.documents.manifest_keys import Budget
from rekindle.formats.validation import Duration
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    ProgressSettings,
    RestartSettings,
    RuntimeSettings,
    WatchSettings,
)

OFTEN = {"crash": 2.0, "turn": 6.0, "kill -9": 4.0, "long call": 3.0, "restart": 0.5, "clock": 2.0}


def drawn(seed):
    """An agent with settings of its own; the first of each ten has the ones that ship."""
    rng = random.Random(f"scenario {seed}")
    if seed % 10 == 0:
        mix = {name: OFTEN.get(name, 1.0) for name in FAULTS}
        return Scenario(mix=mix, commits_every=4 * HOUR)
    restart = RestartSettings(
        max_crashes=rng.choice([None, None, None, 1, 3, 8]),
        window=Duration(rng.choice([300, 900, 3600])),
        cooldown=Duration(rng.choice([10, 30])),
        max_cooldown=Duration(rng.choice([60, 300])),
        healthy_after=Duration(rng.choice([120, 600])),
    )
    watch = WatchSettings(
        silence=Duration(rng.choice([120, 600, 3600])),
        tool_timeout=Duration(rng.choice([float("inf"), float("inf"), HOUR])),
        idle_call=Duration(rng.choice([float("inf"), HOUR / 2, HOUR, 2 * HOUR])),
    )
    caps = [None, Budget(tokens=400_000), Budget(hours=40.0), Budget(tokens=200_000, hours=90.0)]
    budget = rng.choice(caps)
    return Scenario(
        mix={name: OFTEN.get(name, 1.0) * rng.choice([0, 1, 1, 3]) for name in FAULTS},
        runtime=RuntimeSettings(
            restart=restart,
            watch=watch,
            limits=LimitSettings(wait=rng.random() < 0.8),
            progress=rng.choice(
                [ProgressSettings(), ProgressSettings(paced_after=4, max_launches=12, max_usd=4)]
            ),
        ),
        budget=budget,
        stays=rng.random() < 0.15,
        cycles=rng.choice([1, 1, 2, 5]),
        billed=rng.choice([None, False, True]),
        appends=rng.random() < 0.5,
        commits_every=rng.choice([0.0, 4 * HOUR, 4 * HOUR, 4 * HOUR, 4 * HOUR]),
        tells=rng.random() < 0.7 or (budget is not None and budget.tokens is not None),
    )
