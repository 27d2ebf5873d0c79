"""Measure stalls, treadmills and waits in real histories, against independent labels.

`just stalls` prints the figures as a table. Every source is judged with weights that were fitted
without it.
"""

import json
import lzma
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest
from tools import fit_stalls

from rekindle.policy.stall.pair_features import RelayReading, read_relay
from rekindle.policy.stall.relay_comparison import judge_readings
from rekindle.policy.stall.stretches import (
    find_stretches,
    judge_pairs,
)

CORPUS = Path(__file__).parents[2].parent / "shared" / "relay-corpus"
LONGEST = ("MrHulu__HuluAiChat", 698)
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of real relays is not beside this checkout"
)


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


def alarms(row: dict) -> bool:
    """Return whether the loop would have been called stuck within a stretch."""
    source = row["source"]
    seqs = [seq for seq in sorted(texts(source)) if row["start_seq"] <= seq <= row["end_seq"]]
    found = [
        judge_readings(reading(source, one), reading(source, two)) for one, two in pairwise(seqs)
    ]
    return bool(find_stretches(found))


@needs_corpus
def test_the_weights_and_figures_are_up_to_date():
    """The table in the code and the one in the documentation come from the same fit."""
    stale = [path for path, text in fit_stalls.render_files().items() if path.read_text() != text]
    assert stale == [], "run `just stalls`"


@needs_corpus
@pytest.mark.parametrize(("family", "least"), [("relays", 0.82), ("notes", 0.65)])
def test_pairs_of_an_unseen_source_are_told_apart(family, least):
    """Each source is judged with weights that were fitted to the others."""
    judged = fit_stalls.select(family)
    assert sum(pair.is_stuck for pair, _ in judged) >= 40
    assert fit_stalls.count(judged).f1 >= least


@needs_corpus
@pytest.mark.parametrize(("family", "least"), [("relays", 0.75), ("notes", 0.5)])
def test_a_wait_in_an_unseen_source_is_recognized(family, least):
    """Most blocked pairs count as waiting, not merely as stuck."""
    found, total = fit_stalls.count_waits(fit_stalls.select(family))
    assert found >= least * total > 0


@needs_corpus
def test_stuck_stretches_raise_an_alarm_and_others_do_not():
    """At most two of the stuck ones are missed, and at most one alarm is false."""
    every = rows("labels_stretches.jsonl")
    stuck = [row for row in every if row["verdict"] == "stuck" and row["revisions"] >= 4]
    going = [row for row in every if row["verdict"] == "progress"]
    assert (len(stuck), len(going)) == (32, 41)
    assert sum(map(alarms, stuck)) >= 30
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
