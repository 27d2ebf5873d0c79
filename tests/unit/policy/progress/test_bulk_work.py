"""Counters in relays that grow towards a total."""

import pytest

from rekindle.policy.progress.bulk_work import find_counted_work


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("120 of 10,000 files", "140 of 10,000 files", "140 of 10,000, up from 120"),
        ("pages: 3/40", "pages: 4/40", "4 of 40, up from 3"),
        ("12 of 40; 3 of 7", "12 of 40; 5 of 7", "5 of 7, up from 3"),
        ("140 of 10,000 files", "140 of 10,000 files", ""),
        ("140 of 10,000 files", "120 of 10,000 files", ""),
        ("120 of 10,000", "20 of 5,000", ""),
        ("on 11/16/2025", "on 11/17/2025", ""),
        ("files a/1/2", "files a/2/2", ""),
        ("nothing", "3 of 40", ""),
        ("Iteration 1/50", "Iteration 2/50", ""),
        ("Attempt 3 of 100 failed", "Attempt 4 of 100 failed", ""),
        ("3% done", "4.5% done", "4 of 100, up from 3"),
        ("Remaining: 8,980 files", "Remaining: 8,960 files", "8,960 left, down from 8,980"),
        ("12 files left", "12 files left", ""),
        ("- [ ] lexer\n- [ ] parser", "- [x] lexer\n- [ ] parser", "1 checked items, up from 0"),
        ("- [x] lexer", "- [x] lexer\n- [x] invented afterwards", ""),
        ("1" * 5000 + "/" + "7" * 5000, "2" * 5000 + "/" + "7" * 5000, ""),
    ],
)
def test_a_counter_counts_if_it_grows_towards_the_same_total(before, after, expected):
    assert find_counted_work(before, after) == expected
