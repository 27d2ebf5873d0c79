"""The figures of docs/explanation/scale.md, compared with measurements."""

from pathlib import Path

import msgspec

FIGURES = Path(__file__).parents[2] / "tools/scale.json"
TIMES = 3
"""The factor by which a machine may differ from the one of the figures."""


def hold(*, is_sample: bool = False, **measured: float) -> None:
    """Check a measured cost against the recorded figure, in both directions.

    A sample may be cheaper by chance, so only its upper bound is checked.
    """
    written = msgspec.json.decode(FIGURES.read_bytes(), type=dict[str, float])
    for name, value in measured.items():
        print(f"  {name}: {value:.4g} measured, {written[name]:.4g} written")
    for name, value in measured.items():
        share = value / written[name]
        assert share < TIMES, f"tools/scale.json says {written[name]} of {name}"
        assert is_sample or share > 1 / TIMES, f"tools/scale.json says {written[name]} of {name}"
