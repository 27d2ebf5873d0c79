"""The sample of a sweep that CI plays; `just torture` plays all of it."""

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"


def examples(whole: int) -> int:
    """Return how many examples a property test draws: all, or in CI a fifth."""
    return whole if WHOLE else whole // 5


def in_ci(cases: Sequence[T], *places: int) -> list[T]:
    """Return all cases, or in CI those at the given places."""
    return list(cases) if WHOLE else [cases[place] for place in places]
