"""The tables of phrases: each matches its own kind of clause, and not the neighbouring kinds."""

import pytest

from rekindle.policy.relay import end_phrases

CLAUSES = {
    "ENDS": ["all tasks are complete", "no work remains", "任务已完成"],
    "BARE": ["done", "it is finished"],
    "NOTHING": ["none", "no action", "目前无"],
    "ASIDE": ["optional", "if you want more", "等待新任务"],
    "RESULTS": ["all tests pass", "the parser is merged"],
    "OPEN": ["then deploy it", "assuming the tests pass", "继续"],
    "DEFECT": ["the parser is a stub", "报错"],
}
"""Clauses as the splitter yields them: in lower case, without marks."""
APART = ("ENDS", "BARE", "NOTHING", "ASIDE")
"""Tables of which at most one matches a clause."""


@pytest.mark.parametrize(("table", "clause"), [(t, c) for t, cs in CLAUSES.items() for c in cs])
def test_a_clause_matches_its_table_and_no_neighbour(table, clause):
    find = "search" if table in {"OPEN", "DEFECT"} else "match"
    assert getattr(getattr(end_phrases, table), find)(clause)
    for other in set(APART) - {table} if table in APART else ():
        assert not getattr(end_phrases, other).match(clause), other


@pytest.mark.parametrize("clause", ["all backend tasks are done", "tests are written", "下一步"])
def test_a_part_of_the_work_does_not_match_an_end(clause):
    assert not end_phrases.ENDS.match(clause)
