"""The source of a text's words."""

import json
from pathlib import Path

from rekindle.policy.summaries.provenance import ProvenanceIndex, find_names, find_stems

TABLES = json.loads(Path(__file__).with_name("provenance.json").read_text())


def test_the_stems_of_a_text():
    assert {text: sorted(find_stems(text)) for text in TABLES["stems"]} == TABLES["stems"]


def test_the_names_in_a_text():
    found = {text: sorted(map(sorted, find_names(text))) for text in TABLES["names"]}
    assert found == TABLES["names"]


def describe(passage):
    return passage and [passage.whose, passage.turn, passage.label]


def test_the_source_of_a_text():
    """The source that speaks against it: as an instruction, with further words, and as a claim."""
    trace = ProvenanceIndex(TABLES["own"].values(), TABLES["data"].values())
    also = "restart the worker cluster in production"
    for row, expected in TABLES["sources"].items():
        text, turns = json.loads(row)
        found = [
            trace.find_foreign_source(text, turns),
            trace.find_foreign_source(text, turns, also=also),
            trace.find_main_source(text, turns),
        ]
        assert [describe(passage) for passage in found] == expected, row
