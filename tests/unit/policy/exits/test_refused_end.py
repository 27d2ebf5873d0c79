"""Why a cycle does not end the run, in one line."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.events import CycleEnded
from rekindle.policy.exits.refused_end import (
    explain_failure,
    explain_refusal,
    render_failure,
)

NOW = datetime(2026, 4, 9, tzinfo=UTC)
LOUD = "`make test` exited with 2. Its output ends with:\n    one\n    2 failed"
SILENT = "`make test` exited with 2. It printed nothing."


def test_a_failure_with_the_end_of_its_output():
    assert render_failure("make test", "exited with 2", ["one", "2 failed"]) == LOUD
    assert render_failure("make test", "exited with 2", []) == SILENT


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (LOUD, "`until:` fails: `make test` exited with 2: 2 failed"),
        (LOUD + "\n    \n", "`until:` fails: `make test` exited with 2: 2 failed"),
        (SILENT, "`until:` fails: `make test` exited with 2"),
        ("`x` could not be started: no such file.", "`until:` could not be started: no such file"),
        ("", "`until:` fails"),
    ],
)
def test_a_failure_in_one_line(words, expected):
    assert explain_failure(words) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ""),
        ({"until": "passed", "review": "passed"}, ""),
        ({"until": "failed", "until_words": SILENT}, explain_failure(SILENT)),
        ({"review": "failed"}, "the review does not agree"),
        ({"review": "failed", "review_words": "no tests"}, "the review does not agree: no tests"),
        ({"until": "failed", "until_words": SILENT, "review": "failed"}, explain_failure(SILENT)),
    ],
)
def test_why_a_cycle_does_not_end_the_run(fields, expected):
    assert explain_refusal(CycleEnded(ts=NOW, cycle=1, **fields)) == expected
