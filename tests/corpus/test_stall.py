"""Measure stalls, treadmills and waits in real histories, against independent labels.

`python tests/corpus/test_stall.py` (or `just stalls`) prints the figures as a table.

The thresholds are fitted with one source left out at a time; the result on that source is the
honest figure for them. The words were chosen with all sources in view.
"""

import json
import lzma
from collections import Counter
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from time import process_time
from typing import NamedTuple

import pytest

from rekindle.policy.stall.relay_comparison import (
    RelayReading,
    StallThresholds,
    _Pair,
    judge_readings,
    read_relay,
)
from rekindle.policy.stall.stretches import (
    find_stretches,
    judge_pairs,
)
from rekindle.policy.stall.verdict import (
    STUCK_KINDS,
    StallKind,
)

CORPUS = Path(__file__).parents[2].parent / "shared" / "relay-corpus"
PRECISION, RECALL, TOLD_APART = 0.85, 0.90, 0.85
LONGEST = ("MrHulu__HuluAiChat", 698)
GRID = [
    StallThresholds(same_head=head, same_lead=lead, treadmill_head=go_head, treadmill_lead=go_lead)
    for head, lead, go_head, go_lead in product(
        (0.65, 0.75, 0.85), (0.7, 0.8, 0.9), (0.45, 0.55, 0.65), (0.4, 0.5, 0.6)
    )
]

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of real relays is not beside this checkout"
)


class Pair(NamedTuple):
    source: str
    before: int
    after: int
    label: str

    @property
    def is_stuck(self) -> bool:
        return self.label in {"stall", "blocked"}


class Score(NamedTuple):
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.right / (2 * self.right + self.wrong + self.missed)


@cache
def texts(source: str) -> dict[int, str]:
    path = CORPUS / "relays" / f"{source}.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return {row["seq"]: row["text"] for row in map(json.loads, lines)}


@cache
def reading(source: str, seq: int) -> RelayReading:
    return read_relay(texts(source)[seq])


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def usable_pairs() -> list[Pair]:
    return [
        Pair(row["source"], row["prev_seq"], row["curr_seq"], row["label"])
        for row in rows("labels_pairs.jsonl")
        if row["label"] != "unusable"
    ]


def score(pairs: list[Pair], found: dict[Pair, StallKind]) -> Score:
    hits = Counter((pair.is_stuck, found[pair] in STUCK_KINDS) for pair in pairs)
    return Score(hits[True, True], hits[False, True], hits[True, False])


def judged(pair: Pair) -> StallKind:
    before, after = (reading(pair.source, seq) for seq in (pair.before, pair.after))
    return judge_readings(before, after).verdict


def alarms(row: dict) -> bool:
    """Return whether the loop would have been called stuck within a stretch."""
    source = row["source"]
    seqs = [seq for seq in sorted(texts(source)) if row["start_seq"] <= seq <= row["end_seq"]]
    found = [
        judge_readings(reading(source, one), reading(source, two)) for one, two in pairwise(seqs)
    ]
    return bool(find_stretches(found))


def left_out(pairs: list[Pair]) -> Score:
    """Every source judged with the thresholds that fit all the others best."""
    by_thresholds: list[dict[Pair, StallKind]] = [{} for _ in GRID]
    for pair in pairs:
        before, after = (reading(pair.source, seq) for seq in (pair.before, pair.after))
        shared = _Pair(before, before.ask, after, after.ask, work="", limits=StallThresholds())
        for found, thresholds in zip(by_thresholds, GRID, strict=True):
            shared.limits = thresholds
            found[pair] = shared.verdict().verdict
    scores = []
    for source in sorted({pair.source for pair in pairs}):
        others = [pair for pair in pairs if pair.source != source]
        best = max(by_thresholds, key=lambda found: score(others, found).f1)
        scores.append(score([pair for pair in pairs if pair.source == source], best))
    return Score(*map(sum, zip(*scores, strict=True)))


@needs_corpus
def test_labelled_pairs_are_told_apart():
    """Precision and recall over all pairs that both have a directive."""
    pairs = usable_pairs()
    assert len(pairs) == 355
    found = score(pairs, {pair: judged(pair) for pair in pairs})
    assert found.precision >= PRECISION
    assert found.recall >= RECALL


@needs_corpus
def test_they_are_told_apart_in_a_history_that_the_thresholds_were_not_fitted_to():
    """The same with each source left out in turn while the thresholds are chosen."""
    found = left_out(usable_pairs())
    assert found.precision >= PRECISION
    assert found.recall >= RECALL


@needs_corpus
def test_a_wait_is_told_from_a_stall():
    """Most blocked pairs get the verdict `waiting`."""
    blocked = [judged(pair) for pair in usable_pairs() if pair.label == "blocked"]
    assert blocked.count(StallKind.WAITING) >= TOLD_APART * len(blocked)


@needs_corpus
def test_stuck_stretches_raise_an_alarm_and_others_do_not():
    """At most one of the stuck ones is missed, and at most one alarm is false."""
    every = rows("labels_stretches.jsonl")
    stuck = [row for row in every if row["verdict"] == "stuck" and row["revisions"] >= 4]
    going = [row for row in every if row["verdict"] == "progress"]
    assert (len(stuck), len(going)) == (32, 41)
    assert sum(map(alarms, stuck)) >= 31
    assert sum(map(alarms, going)) <= 1


@needs_corpus
@pytest.mark.bench
def test_the_time_to_judge_a_history_grows_with_its_length():
    """Twice as many relays of the longest history take at most three times as long."""
    source, count = LONGEST
    history = list(texts(source).values())

    def seconds(relays: list[str]) -> float:
        began = process_time()
        assert len(judge_pairs(relays)) == len(relays) - 1
        return process_time() - began

    assert len(history) == count
    # Every second one: as long as the others, and as different.
    assert any(seconds(history) <= 3 * seconds(history[::2]) for _ in range(3))


def main() -> None:
    pairs = usable_pairs()
    found = {pair: judged(pair) for pair in pairs}
    print("| | P | R | right | wrong | missed |\n|---|---:|---:|---:|---:|---:|")
    for name, one in (("as set", score(pairs, found)), ("left out", left_out(pairs))):
        figures = f"{one.precision:.3f} | {one.recall:.3f}"
        print(f"| {name} | {figures} | {one.right} | {one.wrong} | {one.missed} |")
    print(f"\n| label | {' | '.join(StallKind)} |\n|---|{'---:|' * len(StallKind)}")
    table = Counter((pair.label, kind) for pair, kind in found.items())
    for label in ("progress", "stall", "blocked"):
        print(f"| {label} | {' | '.join(str(table[label, kind]) for kind in StallKind)} |")
    every = rows("labels_stretches.jsonl")
    for name, some in (
        ("stuck", [row for row in every if row["verdict"] == "stuck" and row["revisions"] >= 4]),
        ("progress", [row for row in every if row["verdict"] == "progress"]),
    ):
        print(f"\nalarms in stretches of {name}: {sum(map(alarms, some))} of {len(some)}")


if __name__ == "__main__":
    main()
