"""Keys of rekindle.yaml about quota: what agents leave to you, and what they may spend together."""

from typing import Annotated, ClassVar

import msgspec

from rekindle.documents.agent_ledger import Priority
from rekindle.formats.validation import describe_key as _doc


class SpendCap(msgspec.Struct, frozen=True):
    """Caps on what all agents together spend in a day or a month."""

    NEEDS_KEY: ClassVar[bool] = True
    """An empty mapping is refused, because it would not be a cap."""
    usd: (
        Annotated[float, _doc("Maximum cost of all agents, in dollars.", "dollars", gt=0)] | None
    ) = None
    tokens: (
        Annotated[int, _doc("Maximum number of tokens of all agents.", "tokens", gt=0)] | None
    ) = None


class QuotaKeys(msgspec.Struct, frozen=True):
    """How agents share a quota. They wait when they reach one of these limits."""

    reserve: (
        Annotated[
            str,
            _doc(
                "Part of each quota window that agents leave to you, such as `20%`, below `100%`. "
                "Agents that share an account then also take turns.",
                pattern=r"^[0-9]{1,2}(\.[0-9]+)?%$",
            ),
        ]
        | None
    ) = None
    per_day: Annotated[SpendCap | None, _doc("Caps for each day, over all agents.")] = None
    per_month: Annotated[SpendCap | None, _doc("Caps for each month, over all agents.")] = None

    @property
    def reserve_percent(self) -> float | None:
        """Return the reserve as a number, or None if agents are not paced."""
        return float(self.reserve.removesuffix("%")) if self.reserve else None

    @property
    def has_caps(self) -> bool:
        """Return whether a day or a month has a cap."""
        return self.per_day is not None or self.per_month is not None


QuotaKey = Annotated[
    QuotaKeys | None, _doc("What the agents leave to you, and may spend together.")
]
PriorityKey = Annotated[
    Priority | None,
    _doc("Share of a quota that agents share: `high` has two shares, `low` half a share."),
]
