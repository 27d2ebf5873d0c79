"""Prompts of workers that merge."""

import pytest

from rekindle.policy.pipelines.merge_prompt import compose_merge_prompt

COMMITS = (("two", "2" * 40), ("three", "3" * 40))


def test_the_commits_are_merged_in_their_order():
    lines = compose_merge_prompt("implement", "workers", COMMITS).splitlines()
    assert lines[3:5] == [
        f"1. `git merge --no-edit {'2' * 40}` (of worker two)",
        f"2. `git merge --no-edit {'3' * 40}` (of worker three)",
    ]


@pytest.mark.parametrize(
    ("stage", "start", "source"),
    [
        ("inputs", "Step judge needs the changes of several earlier steps", "of step two"),
        ("workers", "Several workers of step judge", "of worker two"),
        ("result", "The last steps", "of step two"),
    ],
)
def test_the_prompt_says_where_the_changes_come_from(stage, start, source):
    text = compose_merge_prompt("judge", stage, COMMITS)
    assert text.startswith(start)
    assert source in text
    assert "<<<<<<<" in text


def test_a_retry_gets_the_reason():
    first = compose_merge_prompt("judge", "workers", COMMITS)
    second = compose_merge_prompt("judge", "workers", COMMITS, attempt=2, why="markers in a.py")
    assert second.startswith(first)
    assert "\n| markers in a.py\n" in second
    assert "attempt" not in first
