"""Claimed ends in real histories: only the relays that were labelled as finished count."""

import json
import lzma
from pathlib import Path

import pytest

from rekindle.documents import relay as relays
from rekindle.errors import DocumentError
from rekindle.policy.claimed_end import claims_end
from sampling import WHOLE

CORPUS = Path(__file__).parents[2].parent / "shared" / "relay-corpus"
FINISHED = {
    ("MrHulu/HuluAiChat", 590),
    ("newsomeb+car-finder", 11),
    ("mcpirate17+HYDRA", 4),
    ("mcpirate17+HYDRA", 9),
    ("mcpirate17+HYDRA", 8),
    ("mcpirate17+HYDRA", 10),
}
"""Relays that report an end, as read by a person; every other one must not be taken for one."""
UNFINISHED = 200

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of real relays is not beside this checkout"
)


def revisions():
    for path in [*sorted((CORPUS / "relays").glob("*.jsonl.xz")), CORPUS / "loops.jsonl.xz"]:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@needs_corpus
def test_only_finished_relays_of_real_histories_claim_an_end():
    claimed, unfinished = set(), 0
    for number, one in enumerate(revisions()):
        key = (one["source"], one["seq"])
        if not (WHOLE or key in FINISHED or number % 5 == 0):
            continue
        try:
            found = relays.parse(one["text"])
        except DocumentError:
            continue
        if claims_end(found):
            claimed.add(key)
        elif found.next_action is not None:
            unfinished += key not in FINISHED
    assert claimed == FINISHED
    assert unfinished >= UNFINISHED
