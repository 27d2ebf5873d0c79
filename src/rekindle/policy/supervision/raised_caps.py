"""Collect the caps that the operator sets for a run."""

from collections.abc import Iterable, Mapping

import msgspec


class RaisedCap(msgspec.Struct, frozen=True, order=True):
    """A cap that the operator set for a run, and the log position of that command."""

    unit: str
    seq: int
    amount: float


def add_caps(
    caps: Iterable[RaisedCap], seq: int, raised: Mapping[str, float | None]
) -> tuple[RaisedCap, ...]:
    """Return the last cap for each unit, including those of the command at position `seq`."""
    new = [RaisedCap(unit, seq, amount) for unit, amount in raised.items() if amount is not None]
    return tuple({cap.unit: cap for cap in sorted({*caps, *new})}.values())
