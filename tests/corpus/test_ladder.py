"""Replay recorded loops with their changed files, and check when Rekindle would have reacted."""

import json
import lzma
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from rekindle.policy.stall.replayed_cycles import RelayRevision, ReplayAction, replay_cycles

CORPUS = Path(__file__).parents[2].parent / "shared" / "relay-corpus"
ENDED = {ReplayAction.PAUSE, ReplayAction.FINISH}
IDLE = {"blocked", "finished"}

pytestmark = pytest.mark.skipif(
    not (CORPUS / "loops.jsonl.xz").is_file(),
    reason="the recorded loops are not beside this checkout",
)


@cache
def read_loops() -> dict[str, dict[int, dict]]:
    loops: dict[str, dict[int, dict]] = {}
    with lzma.open(CORPUS / "loops.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            loops.setdefault(row["source"], {})[row["seq"]] = row
    return loops


@cache
def replay(source: str, *, with_work: bool = True) -> dict[int, ReplayAction]:
    """Return the reaction to each revision of a source."""
    loop = read_loops()[source]
    revisions = [
        RelayRevision(row["text"], tuple(row["changed"]) if with_work else None, row["path"])
        for row in (loop[seq] for seq in sorted(loop))
    ]
    cycles = replay_cycles(revisions)
    return dict(zip(sorted(loop)[1:], (cycle.action for cycle in cycles), strict=True))


def read_labels() -> list[dict]:
    lines = (CORPUS / "labels_loops.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_no_productive_cycle_is_paused():
    """Neither a cycle with progress nor a treadmill with work behind it."""
    working = [
        row for row in read_labels() if row["label"] == "progress" or row["sub"] == "treadmill"
    ]
    assert len(working) == 94
    paused = [
        (row["source"], row["curr_seq"])
        for row in working
        if replay(row["source"])[row["curr_seq"]] is ReplayAction.PAUSE
    ]
    assert paused == []


def test_the_files_are_what_keeps_a_working_agent_going():
    """Without them, the same loops would be paused, so the check above can fail."""
    paused = [
        row
        for row in read_labels()
        if row["label"] == "progress"
        and replay(row["source"], with_work=False)[row["curr_seq"]] is ReplayAction.PAUSE
    ]
    assert paused


def test_idle_and_finished_stretches_end_by_the_fourth_cycle():
    """Each series of four or more revisions between two labels that are both idle or finished."""
    stretches = list(find_stretches())
    assert len(stretches) >= 5
    late = [
        (source, seqs)
        for source, seqs in stretches
        if not ENDED.intersection(replay(source)[seq] for seq in seqs[:4])
    ]
    assert late == []


def find_stretches():
    """Yield each source and series of revisions in which the loop was idle or finished."""
    labels = read_labels()
    for source, loop in read_loops().items():
        own = [row for row in labels if row["source"] == source]
        for first, second in pairwise(own):
            if all(row["label"] in IDLE or row["sub"] in IDLE for row in (first, second)):
                seqs = [seq for seq in sorted(loop) if first["curr_seq"] <= seq]
                seqs = [seq for seq in seqs if seq <= second["curr_seq"]]
                if len(seqs) >= 4:
                    yield source, seqs
