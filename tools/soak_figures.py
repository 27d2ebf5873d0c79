"""The stored measures of the soak."""

from pathlib import Path

import msgspec

STORED = Path(__file__).parent / "soak.json"
CLI_NAMES = {"claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}


class Bar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    share: float
    slack: float


class Trend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The medians of the second and of the last quarter, and the most that the latter may be."""

    second: float
    last: float
    most: float

    @property
    def is_flat(self) -> bool:
        return self.last <= self.most


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cli: str
    seed: int
    total: int
    done: int
    lost: int
    twice: int
    interventions: int
    seconds: int
    requests: int
    faults: dict[str, int]
    ended: str
    left: int
    missing: int
    trends: dict[str, Trend]
    series: dict[str, list[float]]
    elsewhere: list[int]

    @property
    def cycles(self) -> int:
        return len(self.series["seconds"])

    @property
    def is_complete(self) -> bool:
        """Return whether each item was done once, without help, and each fault happened."""
        wrong = (self.lost, self.twice, self.interventions, self.left, self.missing)
        return self.done == self.total and not any(wrong)

    @property
    def growing(self) -> list[str]:
        """Return the measures that are not flat."""
        return [name for name, trend in self.trends.items() if not trend.is_flat]


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    date: str
    hours: int
    items_each: int
    clis: dict[str, str]
    kinds: dict[str, str]
    bars: dict[str, Bar]
    runs: list[Run]


def read() -> Stored:
    return msgspec.json.decode(STORED.read_bytes(), type=Stored)
