"""When each fault strikes: in about every second cycle, at a random item.

48 cycles stand for 24 hours, so a fault strikes once in an hour on average. In the middle half, no
fault ends a supervisor, so that one of them lives long enough to show a leak.
"""

import random
from collections.abc import Mapping
from typing import Final

from survival.soak.strikes import KINDS, Kind
from survival.soak.work import EACH

HOURS: Final = 24
CYCLES: Final = 48
"""Cycles of a run; each stands for half an hour."""


def plan(seed: int, cycles: int) -> dict[int, str]:
    """Return the kind of fault for each item in which one strikes."""
    chance = random.Random(seed)
    struck = sorted(chance.sample(range(cycles), cycles // 2))
    middle = [cycle for cycle in struck if cycles <= cycle * 4 < cycles * 3]
    outer = [cycle for cycle in struck if cycle not in middle]
    sparing = {name: kind for name, kind in KINDS.items() if not kind.ends_supervisor}
    chosen: dict[int, str] = {}
    for free, allowed in ((middle, sparing), (outer, KINDS)):
        chance.shuffle(free)
        # Each kind that is left strikes at least once.
        for name in sorted(allowed.keys() - set(chosen.values())):
            if free:
                chosen[free.pop()] = name
        chosen |= dict(zip(free, _draw(chance, allowed, len(free)), strict=True))
    return {cycle * EACH + chance.randint(1, EACH): chosen[cycle] for cycle in sorted(chosen)}


def find_struck(seed: int, cycles: int) -> set[int]:
    """Return the cycles that a fault reaches, counted from 0.

    A cycle ends when its last item is in the ledger: the recovery from a fault there is in the next
    one.
    """
    struck = plan(seed, cycles)
    return {(item - 1) // EACH for item in struck} | {item // EACH for item in struck}


def _draw(chance: random.Random, kinds: Mapping[str, Kind], number: int) -> list[str]:
    weights = [kind.weight for kind in kinds.values()]
    return chance.choices(list(kinds), weights, k=number)
