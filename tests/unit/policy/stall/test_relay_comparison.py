"""Two consecutive relays, and what the loop did between them."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.policy.settings.runtime_settings import STALL_ALARM
from rekindle.policy.stall.relay_comparison import compare_relays
from rekindle.policy.stall.stretches import (
    find_stretches,
    judge_pairs,
)
from rekindle.policy.stall.verdict import (
    StallKind,
    StallVerdict,
)


def relay(directive: str, did: str = "Looked around.", heading: str = "Next Action") -> str:
    return f"# Relay\n\n## What We Did This Cycle\n{did}\n\n## {heading}\n{directive}\n"


def between(before: str, after: str, work: str | None = None) -> StallVerdict:
    return compare_relays(relay(before), relay(after), work)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Port the parser to the new grammar.", "Port the parser to the new grammar."),
        ("Port the parser to the new grammar.", "**Port** the parser to the new grammar!"),
        ("Cycle 4: port the parser, 12 files left", "Cycle 5: port the parser, 11 files left"),
        ("- [ ] Port the parser\n- [ ] Drop yacc", "1. 🔧 port the parser\n2. drop yacc"),
        ("1. 移植解析器\n2. 删除旧语法", "1. **移植解析器**\n2. 删除旧语法"),
        ("第 7 轮：移植解析器", "第 8 轮：移植解析器"),
        ("Repair the remaining 12 tests", "Repair the remaining 9 tests"),
        (
            "Rewrite the billing page to use the new form",
            "The billing page should use the new form",
        ),
        ("Port the parser (2026-01-03)\n- drop yacc", "Port the parser (2026-01-04)\n- drop yacc"),
    ],
)
def test_the_same_ask_in_another_dress_is_a_stall(before, after):
    """Case, bullets, emoji, dates, numbers of cycles and counters do not make it another one."""
    found = between(before, after)
    assert found.verdict is StallKind.STALLED
    assert found.about


def test_word_for_word_is_told_from_merely_alike():
    """The verdict says which of the two it is, and names what was repeated."""
    same = between("Port the parser.", "Port the parser.")
    assert same.is_equal
    assert "word for word" in same.why
    alike = between(
        "Port the parser to the new grammar.\n- lexer tables\n- error messages",
        "Port the parser to the new grammar.\n- lexer tables\n- the error messages",
    )
    assert alike.verdict is StallKind.STALLED
    assert not alike.is_equal
    assert "Port the parser to the new grammar" in alike.why


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Port the parser.", "Write the release notes.", "different work"),
        ("Fix TASK-12: the login page", "Fix TASK-13: the login page", "task-13"),
        ("Plan v1.2 of the importer", "Plan v1.3 of the importer", "v1.3"),
        ("Review runs/2026-01-03_1200_a/log", "Review runs/2026-01-04_0900_a/log", "2026-01-04"),
        ("Merge PR #7, then tag", "Merge PR #8, then tag", "pr#8"),
        ("Run 03A, then 03B", "Run 03B", "03b"),
        ("Do:\n- [ ] lexer\n- [ ] tables", "Do:\n- [x] lexer\n- [ ] tables", "done: lexer"),
        ("To do\n- lexer rules\n- parse tables", "To do\n- parse tables", "no longer requested"),
        ("继续开发：\n- TASK-7: 词法", "继续开发：\n- TASK-8: 语法", "task-8"),
        ("1. 移植解析器\n2. 删除旧语法", "1. ✅ 移植解析器\n2. 删除旧语法", "done: "),
        ("移植解析器到新语法", "撰写版本发布说明", "different work"),
        ("Repair the bug in module A", "Repair the bug in module B", "on another subject: b"),
        ("Serve GET /users from the cache", "Serve GET /orders from the cache", "/orders"),
        ("Write chapter 3", "Write chapter 4", "chapter4"),
        ("Proof page 12 of the book", "Proof page 13 of the book", "page13"),
        ("校对第 3 章", "校对第 4 章", "第4章"),
    ],
)
def test_a_step_is_progress_however_much_stays_the_same(before, after, why):
    """Another task, a ticked item, an item that is gone: each is named."""
    found = between(before, after)
    assert found.verdict is StallKind.PROGRESS
    assert why in found.why


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Continue adding recipes\n- soups\n- stews", "Continue adding recipes\n- stews\n- salads"),
        ("Pick another page to proof-read", "Pick another page to proof-read"),
        ("Keep polishing the menus, round 3", "Keep polishing the menus, round 4"),
        ("继续完善菜谱 - 第 12 批", "继续完善菜谱 - 第 13 批"),
        ("持续增加菜谱\n- 汤类\n- 面食", "持续增加更多菜谱\n- 汤类\n- 凉菜"),
    ],
)
def test_more_of_the_same_is_a_treadmill(before, after):
    """Wording and counters change; the ask, which has no end, does not."""
    assert between(before, after).verdict is StallKind.TREADMILL


def test_themes_under_an_endless_heading_are_a_treadmill():
    """Which of them comes first does not matter, as long as no task is named."""
    first = relay("- 按钮颜色\n- 字体间距", heading="下一步优化方向")
    second = relay("- 图标大小\n- 弹窗阴影", heading="下一步优化方向")
    assert compare_relays(first, second).verdict is StallKind.TREADMILL
    named = relay("- TASK-9: 图标大小", heading="下一步优化方向")
    assert compare_relays(first, named).verdict is StallKind.PROGRESS


@pytest.mark.parametrize(
    "directive",
    [
        "Waiting for the owner to approve the budget.",
        "Awaiting sign-off from legal",
        "HUMAN: log in to the registry (2 min)",
        "The boss must choose a name",
        "User action required: renew the certificate",
        "On hold until the vendor ships the part",
        "Manual upload required",
        "Blocked: no key for the registry",
        "Ask the user which database to take",
        "受阻：没有密钥",
        "等待老板确认预算",
        "需要用户手动登录",
        "请负责人审批合同",
    ],
)
def test_a_relay_that_waits_for_a_person_is_waiting(directive):
    """It counts from the first relay that says so, and in every one that repeats it."""
    for before in ("Draft the budget.", directive):
        found = between(before, directive)
        assert found.verdict is StallKind.WAITING
        assert found.about in directive
        assert found.why == found.about


@pytest.mark.parametrize(
    "directive",
    [
        "Fix the missing await in the fetch loop",
        "Reduce waiting times in the queue",
        "Let users log in with a key",
        "Write the notes or wait for the owner",
        "While waiting for the owner, write the notes",
        "Push the branch, then wait for review",
        "编写文档，或等待老板指示",
    ],
)
def test_the_word_alone_is_not_a_wait(directive):
    """A relay must wait for a person and have nothing else to do first."""
    assert between("Draft the budget.", directive).verdict is StallKind.PROGRESS


def test_waiting_for_something_new_is_progress():
    """The one thing came, and the next is waited for; or an item was done meanwhile."""
    assert between("Wait for PR #7", "Wait for PR #8").verdict is StallKind.PROGRESS
    before = "Wait for the owner:\n- [ ] invoice\n- [ ] contract"
    after = "Wait for the owner:\n- [x] invoice\n- [ ] contract"
    assert between(before, after).verdict is StallKind.PROGRESS


def test_the_agent_s_own_part_moves_beside_a_wait():
    """The part for the agent alone is compared even while a person is waited for."""
    wait = "### Launch (needs the owner)\n- logo\n\n### Autonomous work\n- test the {}"
    found = between(wait.format("parser tables"), wait.format("lexer"))
    assert found.verdict is StallKind.PROGRESS
    same = between(wait.format("lexer"), wait.format("lexer"))
    assert same.verdict is StallKind.WAITING
    assert same.about == "Launch (needs the owner)"


def test_a_wait_below_a_title_counts():
    """A person who must act first is seen under any title, new or not."""
    wait = "The owner must choose a name first."
    for before in (f"Launch of the shop\n\n{wait}", "Paint the shop."):
        found = between(before, f"Opening of the shop\n\n{wait}")
        assert (found.verdict, found.about) == (StallKind.WAITING, wait)


def test_what_is_done_or_told_is_not_what_is_asked():
    """A growing log and a status above the ask do not hide that it stays the same."""
    before = "**Status:**\n- all green\n\n**Port the parser**\n\n**Done in cycle 3:**\n- lexer"
    after = "**Status:**\n- 3 red\n\n**Port the parser**\n\n**Done in cycle 4:**\n- tables\n- lexer"
    found = between(before, after)
    assert found.verdict is StallKind.STALLED
    assert found.about == "Port the parser"


@pytest.mark.parametrize("directive", ["Port the parser.", "Continue with the menus"])
def test_work_does_not_change_what_the_relays_show(directive):
    """Stuck agents change files too: the work decides about the reaction, not the verdict."""
    found = between(directive, directive, "4 commits")
    assert found.verdict is between(directive, directive).verdict
    assert found.is_stuck
    assert "but there was work: 4 commits" in found.why


def test_work_alone_decides_if_there_is_nothing_to_compare():
    """The reason says so, and what was seen."""
    assert between("TBD", "TBD", "").verdict is StallKind.UNUSABLE
    found = between("TBD", "TBD", "4 commits")
    assert found.verdict is StallKind.PROGRESS
    assert "4 commits" in found.why


def test_work_does_not_end_a_wait():
    """A person has to act: work beside the wait changes nothing about that."""
    assert between("Wait for Ann", "Wait for Ann", work="4 commits").verdict is StallKind.WAITING


def test_a_stale_directive_is_told_by_tasks_reported_as_done():
    """The directive stayed, but another section reports a task that it did not report before."""
    before, after = (
        relay("Run TASK-7.", did=did) for did in ("TASK-6 is done.", "TASK-7 is done.")
    )
    found = compare_relays(before, after)
    assert found.verdict is StallKind.PROGRESS
    assert "TASK-7 is done" in found.why
    planned = relay("Run TASK-7.", did="TASK-6 is done. TASK-8 comes next.")
    assert compare_relays(before, planned).verdict is StallKind.STALLED


@pytest.mark.parametrize(
    ("before", "after", "which"),
    [
        ("# Relay\n", relay("Port it."), "previous relay has no directive"),
        (relay("Port it."), relay("TBD"), "current relay has no directive"),
        (relay("n/a"), relay("n/a"), "previous relay has no directive"),
        (relay("Port it."), "<!-- rekindle: relay 99 -->\n" + relay("Port it."), "has schema 99"),
    ],
)
def test_without_two_directives_there_is_nothing_to_compare(before, after, which):
    """Placeholders do not equal each other."""
    found = compare_relays(before, after)
    assert found.verdict is StallKind.UNUSABLE
    assert which in found.why


def test_a_directive_in_a_fence_is_one():
    """This holds if there is nothing else."""
    fenced = relay("```\nmake release\n```")
    assert compare_relays(fenced, fenced).verdict is StallKind.STALLED


def test_relays_and_texts_are_judged_alike():
    """A caller that has parsed them already need not do it again."""
    one, two = relay("Port the parser."), relay("Write the notes.")
    assert compare_relays(one, two) == compare_relays(relays.parse(one), relays.parse(two))


def test_a_stretch_is_an_unbroken_run_that_is_long_enough():
    """It names its relays, what it was stuck on and what that cost."""
    steps = ["Lex.", "Parse.", *["Wait for Ann"] * 3, "Parse.", *["Bind."] * 3, "Emit."]
    found = judge_pairs(map(relay, steps))
    assert len(found) == len(steps) - 1
    (stretch,) = find_stretches(found)
    assert (stretch.first, stretch.last, stretch.cycles) == (1, 4, 3)
    assert stretch.verdicts == {StallKind.WAITING: 3}
    assert stretch.about == "Wait for Ann"
    assert STALL_ALARM == 3
    assert [(one.first, one.last) for one in find_stretches(found, alarm=2)] == [(1, 4), (6, 8)]
    assert find_stretches([]) == []


def seconds_to_compare(one, two):
    before, after = relay(one), relay(two)
    began = process_time()
    compare_relays(before, after)
    return process_time() - began


@pytest.mark.bench
@pytest.mark.parametrize("piece", ["等待", "human ", "1,", "**a**(", "cycle 1 -", "- item\n"])
def test_the_time_to_judge_a_line_grows_with_its_length(piece):
    """No pattern looks at a line again and again from each of its places."""
    small, large = (
        min(seconds_to_compare(piece * size + "x", piece * size + "y\nmore") for _ in range(2))
        for size in (7_500, 30_000)
    )
    assert large < 10 * max(small, 0.002)  # four times the text; its square would be sixteen


@pytest.mark.bench
def test_the_time_to_judge_a_log_grows_with_its_length():
    """Not every line is compared with every other."""

    def seconds(size):
        lines = [f"{n:x} {n * n:x}q" for n in range(size)]
        return seconds_to_compare(
            *("\n".join(f"- {word} {line}" for line in lines) for word in "ab")
        )

    small, large = (min(seconds(size) for _ in range(2)) for size in (750, 3_000))
    assert large < 10 * max(small, 0.002)


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "## Next Action",
                "### 下一步",
                "Continue with more soups",
                "继续优化菜谱",
                "等待老板确认",
                "- [x] TASK-7 is done",
                "- [ ] TASK-8",
                "**Status:**",
                "```",
                "---",
                "HUMAN: log in",
                "",
            ]
        ),
        st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=40),
    ),
    max_size=14,
)
TEXTS = PIECES.map("\n".join)


@given(TEXTS | st.text(), TEXTS | st.text(), st.sampled_from(["", "1 commit"]))
def test_any_two_texts_get_a_verdict_with_a_reason(before, after, work):
    """Nothing that an agent writes is an error."""
    found = compare_relays(before, after, work)
    assert found.verdict in StallKind
    assert found.why


@given(TEXTS)
def test_equal_texts_are_never_progress(text):
    """Without evidence, that is: whatever they say, nothing moved."""
    text = f"{text}\n## Next Action\nBake the bread\n"
    assert compare_relays(text, text).verdict is not StallKind.PROGRESS


@given(TEXTS, TEXTS)
def test_line_ends_do_not_matter(before, after):
    """Saved by an editor that writes CRLF, it is the same relay."""
    found = compare_relays(before, after)
    assert compare_relays(before.replace("\n", "\r\n"), after) == found
    assert compare_relays(before, after.replace("\n", "\r\n")) == found


@given(st.lists(TEXTS, max_size=6))
def test_a_history_is_judged_as_its_pairs_are(texts):
    """Reading each relay once changes nothing."""
    assert judge_pairs(texts) == [compare_relays(one, two) for one, two in pairwise(texts)]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Port the parser.", "Port the parser.", "asks for the same work, word for word: "),
        ("Port the parser.", "Write notes for users.", "asks for different work: "),
        ("Pick another page", "Pick another page", "asks for more of the same: "),
    ],
)
def test_a_reason_ends_with_the_request(before, after, why):
    """So that a person sees what it is about."""
    found = between(before, after)
    assert found.why == f"{why}{after}"
    assert found.about == after
    assert found.is_equal is (before == after)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Fix TASK-1", "Fix TASK-2, TASK-3, TASK-4 and TASK-5", "task-2, task-3, task-4"),
        ("Fix TASK-1 and TASK-2", "Fix TASK-2 and TASK-1", "task-2"),
        ("Fix TASK-1 and TASK-2", "Fix TASK-1, TASK-2 and TASK-3", "task-3"),
    ],
)
def test_the_tasks_that_are_named_first(before, after, why):
    """At most three of them, and the first one if only the order changed."""
    assert between(before, after).why == f"names another task: {why}"


def test_a_share_of_equal_requests_is_given_in_percent():
    """The first requests are compared in any order."""
    found = between(
        "Port the parser.\n- lexer tables\n- error messages",
        "Port the parser.\n- error messages\n- lexer tables",
    )
    assert found.why == "asks for the same work, 100% alike: Port the parser."
    assert not found.is_equal


def test_work_beside_an_unusable_relay():
    """The problem is named, and the work counts."""
    found = compare_relays(relay("n/a"), relay("Port it."), "2 commits")
    assert found.verdict is StallKind.PROGRESS
    assert found.reasons == (
        "the previous relay has no directive",
        "but there was work: 2 commits",
    )
    both = compare_relays(relay("n/a"), relay("TBD"))
    assert both.reasons == (
        "the previous relay has no directive",
        "the current relay has no directive",
    )


def test_a_named_endless_task_is_still_endless():
    """A first name for the work is not another task."""
    found = between("Continue with more soups", "Continue with more soups for TASK-7")
    assert found.verdict is StallKind.TREADMILL
    named = between("Continue with TASK-6 soups", "Continue with TASK-7 soups")
    assert named.verdict is StallKind.PROGRESS


@pytest.mark.parametrize(
    "text",
    [
        "The project owner should decide on the next phase.",
        "Blocked, resume after the API key is there",
        "Needs credentials for the registry",
        "Action required: approve the budget",
        "Resume once the maintainer approves the pull request",
        "Pending review by the security team",
        "current: no open issues, no open pull requests",
    ],
)
@pytest.mark.parametrize("heading", ["What's Next?", "Remaining", "Notes"])
def test_a_wait_is_recognized_under_any_heading(text, heading):
    """A human must act first, or nothing is left to do until something happens outside."""
    page = f"# Notes\n\n## {heading}\n{text}\n"
    found = compare_relays(page, page)
    assert found.verdict is StallKind.WAITING


def test_a_wait_beside_own_work_says_so():
    """The loop does not pause for it."""
    text = "Waiting for the owner to approve the logo\n- translate the manual"
    found = between(text, text)
    assert found.verdict is StallKind.WAITING
    assert found.has_own_work


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# Notes\n\n## Status\nAll tests for gradients are complete.\n\n## Next Steps\nNone.\n",
            "# Notes\n\n## Status\nThe task is complete, verified again.\n\n## Next Steps\nNone.\n",
        ),
        ("## Next Action\nDONE\n", "## Next Action\nDONE\n"),
    ],
)
def test_finished_is_its_own_verdict(before, after):
    """Nothing is left to do, so the repetition is not a stall."""
    assert compare_relays(before, after).verdict is StallKind.FINISHED


def test_a_relay_without_headings_is_compared_as_free_text():
    """The first lines stand for the directive."""
    page = "current: port the parser to the new grammar\nlast action: {}\n"
    found = compare_relays(page.format("read the grammar"), page.format("read the grammar"))
    assert found.verdict is StallKind.STALLED
    assert "repeats its text" in found.why
    other = "current: write the release notes for version two\nlast action: ported the parser\n"
    assert compare_relays(page.format("x"), other).verdict is StallKind.PROGRESS


@pytest.mark.parametrize(
    "text",
    [
        "Users should be able to export invoices",
        "Users must see their own orders first",
        "Managers can filter the report by team",
        "Implement the approval flow for new accounts",
        "Build the password reset page",
        "Fix the missing await in the fetch loop",
        "Handle idle connections in the pool",
        "Add a quiet flag to the importer",
        "Add monitoring to the queue",
        "Write the test for the blocked-user page",
        "Return None if no new items exist",
    ],
)
def test_a_product_with_users_and_approvals_is_not_a_wait(text):
    """Even if it is repeated, such a request never pauses the agent at once."""
    found = between(text, text)
    assert found.verdict is StallKind.STALLED or found.has_own_work
