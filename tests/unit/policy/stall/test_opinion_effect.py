"""What a recorded second opinion changes, by the evidence of the cycle."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.events import CycleEnded, WorkSigns
from rekindle.policy.stall.opinion_effect import is_pause_added, is_pause_softened, list_evidence

NOW = datetime(2026, 4, 9, tzinfo=UTC)
EMPTY, JOURNAL = WorkSigns(), WorkSigns(artefacts=("journal.md",))


def end(signs, opinion="", evidence=""):
    return CycleEnded(ts=NOW, cycle=1, signs=signs, opinion=opinion, evidence=evidence)


def test_the_evidence_lists_files_and_counts_the_rest():
    signs = WorkSigns(commits=2, artefacts=("a.py", "b.py"), resolved=1, decisions=3)
    assert list_evidence(end(signs)) == (
        *("a.py", "b.py"),
        *("2 commits", "3 decisions", "1 resolved loop"),
    )


@pytest.mark.parametrize("signs", [None, EMPTY])
def test_a_cycle_that_changed_nothing_has_no_evidence(signs):
    assert list_evidence(end(signs)) == ()


@pytest.mark.parametrize(
    ("signs", "opinion", "is_softened"),
    [
        (JOURNAL, "progress", True),
        (EMPTY, "progress", False),
        (JOURNAL, "stuck", False),
        (JOURNAL, "unusable", False),
        (JOURNAL, "", False),
    ],
)
def test_a_pause_is_softened_only_for_progress_with_evidence(signs, opinion, is_softened):
    assert is_pause_softened(end(signs, opinion)) == is_softened


@pytest.mark.parametrize(
    ("signs", "opinion", "evidence", "is_added"),
    [
        (EMPTY, "stuck", "", True),
        (JOURNAL, "stuck", "", False),
        (EMPTY, "stuck", "1 changed file", False),
        (EMPTY, "progress", "", False),
        (EMPTY, "", "", False),
    ],
)
def test_a_pause_is_added_only_without_any_change(signs, opinion, evidence, is_added):
    assert is_pause_added(end(signs, opinion, evidence)) == is_added
