"""Find the parts of a history in which consecutive relays show no progress."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from rekindle.policy.settings.runtime_settings import STALL_ALARM
from rekindle.policy.stall.pair_features import read_relay
from rekindle.policy.stall.relay_comparison import judge_readings
from rekindle.policy.stall.verdict import (
    StallKind,
    StallVerdict,
)


class StuckStretch(msgspec.Struct, frozen=True):
    first: int
    """Index of the first relay in the stretch, counted from 0."""
    last: int
    verdicts: dict[StallKind, int]
    """Number of pairs with each verdict, most frequent first."""
    about: str
    """Directive that most of the pairs repeat."""

    @property
    def cycles(self) -> int:
        """Return the number of cycles without progress."""
        return self.last - self.first


def judge_pairs(texts: Iterable[str]) -> list[StallVerdict]:
    """Return the verdict on each pair of consecutive relays, parsing each relay only once."""
    return [judge_readings(before, after) for before, after in pairwise(map(read_relay, texts))]


def find_stretches(
    verdicts: Sequence[StallVerdict], alarm: int = STALL_ALARM
) -> list[StuckStretch]:
    runs: list[list[int]] = []
    for index, verdict in enumerate(verdicts):
        if not verdict.is_stuck:
            continue
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [_make_stretch(verdicts, run) for run in runs if len(run) >= alarm]


def _make_stretch(verdicts: Sequence[StallVerdict], run: list[int]) -> StuckStretch:
    kinds = Counter(verdicts[index].verdict for index in run)
    about = Counter(verdicts[index].about for index in run)
    return StuckStretch(run[0], run[-1] + 1, dict(kinds.most_common()), about.most_common(1)[0][0])
