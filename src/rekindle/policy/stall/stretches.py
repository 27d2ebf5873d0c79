"""Where a history got stuck: so many pairs in a row, without a step between any two relays."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from rekindle.policy.settings import STALL_ALARM
from rekindle.policy.stall.compare import judge, read
from rekindle.policy.stall.verdict import Kind, Verdict


class Stretch(msgspec.Struct, frozen=True):
    first: int
    """The first of its relays, counted from 0."""
    last: int
    verdicts: dict[Kind, int]
    """How many pairs of each kind there are, the most frequent first."""
    about: str
    """What it was stuck on: what most of its pairs are about."""

    @property
    def cycles(self) -> int:
        """The cycles that led nowhere."""
        return self.last - self.first


def verdicts(texts: Iterable[str]) -> list[Verdict]:
    """The verdict on each pair of consecutive relays, each of them read once."""
    return [judge(before, after) for before, after in pairwise(map(read, texts))]


def stretches(found: Sequence[Verdict], alarm: int = STALL_ALARM) -> list[Stretch]:
    runs: list[list[int]] = []
    for place, verdict in enumerate(found):
        if not verdict.is_stuck:
            continue
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [_stretch(found, run) for run in runs if len(run) >= alarm]


def _stretch(found: Sequence[Verdict], run: list[int]) -> Stretch:
    kinds = Counter(found[place].verdict for place in run)
    about = Counter(found[place].about for place in run)
    return Stretch(run[0], run[-1] + 1, dict(kinds.most_common()), about.most_common(1)[0][0])
