"""Claims, compared with git and with the last run of the tests."""

import pytest

from rekindle.documents.transcripts.turns import ToolCall, Turn
from rekindle.policy.briefs.claim_check import GitWork, is_claim_supported

CHANGED = GitWork(changed=("src/parser.py", "docs/guide/start.md", "Makefile"))
COMMITS = GitWork(commits=("Add retries to the uploader", "Fix"))


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Rewrote src/parser.py", True),
        ("Rewrote parser.py", True),
        ("Rewrote `./src/parser.py`", True),
        ("Rewrote `docs/guide/`", True),
        ("Rewrote docs/", False),
        ("Rewrote parser.py and lexer.py", False),
        ("Rewrote `arser.py`", False),
        ("Rewrote the parser", False),
        ("Set `x`", False),
        ("Released 1.2", False),
        ("", False),
    ],
)
def test_a_file_that_git_shows_as_changed(claim, expected):
    """Every file that a claim names must have changed."""
    assert is_claim_supported(claim, [], CHANGED) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Retries were added to the uploader", True),
        ("The uploader has retries, added today", True),
        ("The downloader has no cache", False),
        ("Fix", False),
    ],
)
def test_a_commit_that_says_the_same(claim, expected):
    """A subject of one word says too little."""
    assert is_claim_supported(claim, [], COMMITS) is expected


def turns(*runs):
    calls = [ToolCall("Bash", about, result, shown) for about, result, shown in runs]
    return [Turn(number=1, who="agent", calls=tuple(calls))]


PASSED = ("pytest -q", "ok", "12 passed")
FAILED = ("pytest -q", "failed", "1 failed")
QUIET = ("npm run test", "ok", "3 failed, 9 passed")
OTHER = ("ls tests", "failed", "")
UNKNOWN = ("cargo test", "open", "")


@pytest.mark.parametrize(
    ("claim", "runs", "expected"),
    [
        ("All tests pass", [PASSED], True),
        ("All tests pass", [FAILED, PASSED], True),
        ("All tests pass", [PASSED, FAILED], False),
        ("All tests pass", [PASSED, OTHER], True),
        ("All tests pass", [QUIET], False),
        ("All tests pass", [UNKNOWN], False),
        ("All tests pass", [], False),
        ("Two tests fail", [FAILED], True),
        ("Two tests fail", [PASSED], False),
        ("Two tests fail", [QUIET], True),
        ("Two tests fail", [UNKNOWN], False),
        ("Two tests fail, the others pass", [PASSED], True),
        ("测试全部通过", [PASSED], True),
        ("测试失败", [PASSED], False),
        ("CI is green", [PASSED], True),
        ("Fixed the failing tests of parser.py", [], True),
        ("parser.py passes its tests", [], False),
        ("Wrote tests in parser.py", [], True),
    ],
)
def test_what_the_last_run_of_the_tests_showed(claim, runs, expected):
    """A claim that all is well needs a run, whatever files it names."""
    assert is_claim_supported(claim, turns(*runs), CHANGED) is expected


def test_a_search_is_not_a_run_of_the_tests():
    """Only a tool that runs commands counts."""
    calls = (ToolCall("Grep", "pytest", "ok"), ToolCall("Read", "./scripts/test.sh", "ok"))
    found = [Turn(number=1, who="agent", calls=calls)]
    assert not is_claim_supported("All tests pass", found, GitWork())
    ran = [Turn(number=1, who="agent", calls=(ToolCall("exec_command", "just ci", "ok"),))]
    assert is_claim_supported("All tests pass", ran, GitWork())
