"""Thresholds that the manifest cannot set, each declared once with its default, unit and meaning.

Each module covers one subject. `rekindle.policy.settings.runtime_settings` imports all of them, so
`rekindle config explain` and the reference page list every threshold.
"""

from typing import Literal, TypeVar

T = TypeVar("T")

Unit = Literal[
    "seconds",
    "hours",
    "days",
    "bytes",
    "characters",
    "words",
    "lines",
    "tokens",
    "dollars",
    "percent",
    "share",
    "count",
]
"""Unit of a threshold. A `share` is a fraction from 0 to 1; a `count` has no unit."""


Threshold = tuple[object, Unit, str]
"""Default, unit and meaning, as a plain tuple, because every command imports them."""
FIXED: dict[str, Threshold] = {}
"""Every declared threshold, by the key that `config explain` shows."""


def declare_threshold(default: T, key: str, unit: Unit, meaning: str) -> T:
    """Register a threshold and return its default."""
    FIXED[key] = (default, unit, meaning)
    return default
