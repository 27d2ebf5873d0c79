"""The page: what was claimed and what bears it out, what fits, what an earlier one said."""

from datetime import date

import pytest

from rekindle.documents import brief as briefs
from rekindle.documents.brief import BriefLabel
from rekindle.documents.state import OpenLoop
from rekindle.documents.summaries.summary import SummaryItem
from rekindle.documents.transcripts.turns import (
    ToolCall,
    Turn,
)
from rekindle.policy.briefs import brief_content as policy
from rekindle.policy.briefs.brief_content import BriefContent
from rekindle.policy.briefs.claim_check import (
    UNVERIFIED_MARK,
    GitWork,
    is_claim_supported,
)
from rekindle.policy.summaries.attribution import SourceTexts
from rekindle.policy.text import token_estimate
from rekindle.thresholds.texts import BRIEF_NUMBER_CHARACTERS

DAY = date(2026, 2, 16)
WORK = GitWork(changed=("src/parser.py", "docs/guide.md"), commits=("Restore the snapshot cron",))


def ran(about, result, shown=""):
    return Turn(number=1, who="agent", text="x", calls=(ToolCall("Bash", about, result, shown),))


CLAIMS = [
    ("`src/parser.py` takes empty files", [], True),
    ("parser.py takes empty files", [], True),
    ("parser.py and lexer.py take empty files", [], False),
    ("lexer.py takes empty files", [], False),
    ("IBKR snapshot cron restored", [], True),
    ("a multi-asset analysis was built", [], False),
    ("all tests pass", [ran("just test", "ok", "3 passed")], True),
    ("all tests pass", [ran("uv run pytest -q", "ok", "1 failed, 3 passed")], False),
    ("all tests pass", [ran("just test", "failed", "2 failed"), ran("cat x", "ok")], False),
    ("all tests pass", [], False),
    ("all tests pass", [ran("just test", "unknown")], False),
    ("two tests of parser.py fail", [ran("npm test", "failed", "2 failed")], True),
    ("two tests fail", [ran("cargo test", "ok")], False),
]


@pytest.mark.parametrize(("claim", "turns", "holds"), CLAIMS)
def test_what_nothing_bears_out_is_marked(claim, turns, holds):
    (line,) = policy.mark_claims([SummaryItem(claim, (1,))], turns, WORK, SourceTexts(turns))
    assert line == (claim if holds else f"{claim} {UNVERIFIED_MARK}")


def test_a_quotation_is_marked_as_one():
    turns = [ran("cat notes", "ok", "every server is patched and runs the new kernel")]
    (line,) = policy.mark_claims(
        [SummaryItem("every server is patched and runs the new kernel")],
        turns,
        WORK,
        SourceTexts(turns),
    )
    said = "a tool, turn 1: “every server is patched and runs the new kernel”"
    assert line == f"{said} {UNVERIFIED_MARK}"


@pytest.mark.parametrize(
    ("claim", "subject"),
    [
        ("Released 1.2.0", "Release 1.2.0"),
        ("Upgraded Python to 3.13", "Upgrade Python to 3.13"),
        ("Moved the site to example.com", "Move the site to example.com"),
        ("Ported the front end to Node.js", "Port the front end to Node.js"),
        ("Tests for failed logins were added in `tests/test_login.py`", "Add tests of logins"),
    ],
)
def test_what_looks_like_a_file_or_a_result_may_be_neither(claim, subject):
    work = GitWork(commits=(subject,), changed=("tests/test_login.py",))
    assert is_claim_supported(claim, (), work)


def test_a_file_does_not_bear_out_that_its_tests_pass():
    assert not is_claim_supported(
        "the tests of `parser.py` pass", (), GitWork(changed=("parser.py",))
    )


def test_what_the_agent_says_of_itself_is_checked_like_the_rest():
    claim = "I have rewritten the exporter and every test in the suite passes now"
    turns = [Turn(number=1, who="agent", text=f"{claim}.")]
    (line,) = policy.mark_claims([SummaryItem(claim)], turns, WORK, SourceTexts(turns))
    assert line == f"the agent, turn 1: “{claim}” {UNVERIFIED_MARK}"


LOOPS = tuple(
    OpenLoop(f"loop-{number}", f"the {number}th thing that is still to be looked at", "2026-02-01")
    for number in range(30)
)
LONG = BriefContent(
    changed=tuple(
        f"changed the {number}th file of the parser and its tests" for number in range(30)
    ),
    next="process the snapshot, then update the numbers of the month",
    risk=tuple(f"risk number {number} of a long list" for number in range(9)),
    open=LOOPS,
    numbers={f"number {number}": "$266,691" for number in range(20)},
)


@pytest.mark.parametrize("cap", [600, 300, 150, 100])
def test_a_long_one_fits_by_whole_lines(cap):
    made = policy.compose_brief("trades", DAY, LONG, cap)
    text = briefs.render(made)
    assert token_estimate.estimate_tokens(text) <= cap
    assert made.content(BriefLabel.NEXT) == LONG.next
    known = {f"- {line}" for line in (*LONG.changed, *LONG.risk)}
    for line in text.splitlines():
        if line.startswith("- "):
            assert line in known or line.startswith(("- loop-", "- and "))
    assert briefs.parse(text) == made


def test_the_newest_changes_and_the_oldest_loops_stay():
    made = policy.compose_brief("trades", DAY, LONG, 300)
    changed = made.content(BriefLabel.CHANGED).splitlines()
    assert changed[-2] == "- changed the 29th file of the parser and its tests"
    assert changed[-1].startswith("- and ")
    assert made.content(BriefLabel.OPEN_LOOPS).startswith("- loop-0: ")


def test_a_next_step_without_end_is_cut():
    told = BriefContent(next="and on " * 500)
    assert (
        token_estimate.estimate_tokens(
            briefs.render(policy.compose_brief("trades", DAY, told, 100))
        )
        <= 100
    )


def test_stale_loops_and_claims_are_seen():
    stale = OpenLoop("schwab-oauth", "not set up", "2026-02-01", stale=True)
    told = BriefContent(
        open=(stale,), claimed={"schwab-oauth": "it works"}, numbers={"NAV": "$1", "PnL": "-3"}
    )
    made = policy.compose_brief("trades", DAY, told, 600)
    assert made.content(BriefLabel.OPEN_LOOPS) == (
        "- schwab-oauth: not set up (since 2026-02-01, stale, reported done: it works)"
    )
    assert made.content(BriefLabel.NUMBERS) == "NAV $1 | PnL -3"


def test_a_page_says_once_what_its_briefs_said():
    before = policy.compose_brief(
        "trades", DAY, BriefContent(changed=("the parser was rewritten", "docs (unverified)")), 600
    )
    found = policy.merge_changes(before, ["The parser was rewritten.", "a cron runs"])
    assert found == ("the parser was rewritten", "docs (unverified)", "a cron runs")
    assert policy.merge_changes(None, []) == (policy.NOTHING_KNOWN,)
    nothing = policy.compose_brief(
        "trades", DAY, BriefContent(changed=(policy.NOTHING_KNOWN,)), 600
    )
    assert policy.merge_changes(nothing, ["a cron runs"]) == ("a cron runs",)


def select_numbers(reported, text, known=()):
    turns = [Turn(number=1, who="agent", text=text)]
    return policy.select_numbers(known, reported, turns, SourceTexts(turns))


def test_a_number_counts_if_a_sentence_has_its_name_and_its_digits():
    text = "The backlog is 12 orders. The margin is thin."
    assert select_numbers({"backlog": "12 orders"}, text) == {"backlog": "12 orders"}
    assert select_numbers({"backlog": "13 orders"}, text) == {}
    assert select_numbers({"margin": "12"}, text) == {}
    assert select_numbers({"margin": "thin"}, text) == {}, "a value without digits"


def test_a_number_may_have_a_name_of_the_longest_length_and_no_longer():
    longest = "backlog".ljust(BRIEF_NUMBER_CHARACTERS, "s")
    text = f"The {longest} is 12. The {longest}s is 12."
    assert select_numbers({longest: "12"}, text) == {longest: "12"}
    assert select_numbers({f"{longest}s": "12"}, text) == {}
