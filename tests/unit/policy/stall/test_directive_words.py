"""The words that a directive is judged by."""

import json
from pathlib import Path

from rekindle.policy.stall import directive_words

TABLES = json.loads(Path(__file__).with_name("directive_words.json").read_text())


def test_what_a_line_says():
    """Each line with the questions that are answered with yes."""
    asked = {
        "waits": directive_words.is_wait,
        "asks_for_more": directive_words.asks_for_more,
        "is_endless": directive_words.is_endless,
        "is_aside": directive_words.is_status_label,
        "is_unattended": directive_words.is_unattended,
        "is_ticked": directive_words.is_ticked,
        "says_done": directive_words.says_done,
    }
    answers = {
        line: " ".join(name for name, ask in asked.items() if ask(line) is True)
        for line in TABLES["answers"]
    }
    assert answers == TABLES["answers"]


def test_the_clauses_of_a_line():
    assert {line: directive_words.split_clauses(line) for line in TABLES["clauses"]} == TABLES[
        "clauses"
    ]
