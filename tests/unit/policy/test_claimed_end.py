"""Claimed ends: the documented word, natural forms in two languages, and unfinished work."""

import time

import pytest

from rekindle.documents import primer
from rekindle.documents import relay as relays
from rekindle.policy import check
from rekindle.policy.claimed_end import claims_end

ENDS = """\
DONE
done
**DONE**
DONE.
DONE: every test passes and the README is up to date
None. The task is complete.
None - the parser is finished and merged
None; everything is shipped
N/A, all tasks are done
None (finished)
Nothing left to do.
There is nothing more to do. All 12 tests pass.
Nothing remains to be done: the migration was completed today.
No further action is required.
No further work needed. The converter is complete and documented.
No more steps. The loop can stop.
No remaining tasks.
All tasks are complete.
All planned features are now implemented. Optional ideas: add a dark theme
All acceptance criteria are met.
Everything is done.
The task is done. If new bugs come up, open an issue.
The project is complete. Await further instructions.
This work is finished and verified.
Our goal has been achieved.
We are done.
Project complete.
Mission accomplished.
Stop the loop.
无。任务已完成。
无（全部完成）
无需进一步操作。
无后续任务
没有剩余的工作。
任务已完成。
所有任务均已完成。
全部工作已经完成，测试全部通过。
项目已圆满完成，等待新的指示。
已全部完成
目标已达成，循环可以结束。
""".splitlines()
UNFINISHED = """\
The plan is complete. Code the parser.
The feature is complete. Tackle the login page.
The migration is done. Swap the callers over to the new API.
Everything is implemented. Benchmark it against the old version.
None: the lexer is finished. Parse expressions.
Done for today; the parser comes tomorrow.
Done with the lexer
The work is done for today
The implementation is complete. Two tests are broken.
The implementation is complete, the docs are missing.
The fix is complete. CI is red
任务一已完成
计划已完成。编码解析器。
DONE with the lexer, next write the parser
Done: lexer. Now write the parser.
None yet
None until Ann approves the schema
None. Start phase 3 in the next cycle.
TBD
Complete the parser
Finish all tasks in the plan
All tests pass; deploy the service
All tasks except the parser are done
The first task is done.
Phase 2 is complete
Phase 2 complete. Begin phase 3.
The task is almost complete
The task is not done
No further action is possible until the key arrives
No progress yet
Nothing works: fix the build
Wait for the review
Stop using the old cache
Close the loop on the login issue
Everything is ready. Run the migration.
The lexer is complete. Implement POST /profile with validation
Monitor the deployment
继续完成剩余任务
完成解析器的编写
任务一已完成，接下来编写解析器
所有测试已通过，可以开始部署
项目未完成
无法访问数据库，等待修复
""".splitlines()


def relay(directive, phase=""):
    head = f"## Current Phase\n{phase}\n\n" if phase else ""
    return relays.parse(f"{head}## Next Action\n{directive}\n\n## Open Questions\n- none\n")


@pytest.mark.parametrize("directive", ENDS)
def test_an_end_is_understood(directive):
    assert claims_end(relay(directive))
    assert check.check(relay(directive), 2000).usable


@pytest.mark.parametrize("directive", UNFINISHED)
def test_unfinished_work_is_not_an_end(directive):
    assert not claims_end(relay(directive))


def test_a_bare_none_counts_only_with_a_finished_phase():
    assert claims_end(relay("None", phase="Complete: all tests pass"))
    assert not claims_end(relay("None", phase="Implementing the parser"))
    assert not claims_end(relay("None"))
    finished = check.check(relay("None", phase="Complete"), 2000)
    assert (finished.usable, check.check(relay("None"), 2000).usable) == (True, False)


def test_lists_decide():
    """Ticked items are past, open ones are work, optional ones and statements ask for nothing."""
    assert claims_end(relay("All tasks are done.\n- [x] lexer\n- ✅ parser"))
    assert not claims_end(relay("All tasks are done.\n- [x] lexer\n- [ ] parser"))
    assert not claims_end(relay("All tasks are done.\n1. the printer\n2. the cache"))
    assert claims_end(
        relay("All tasks are done.\n\nPossible follow-ups:\n1. a printer\n2. a cache")
    )
    assert claims_end(relay("The task is done. The tool now has:\n- a lexer\n- a parser"))


def test_the_word_is_found_wherever_the_directive_is():
    assert claims_end(relays.parse("## Next Action: DONE\n\n## Open Questions\n- none\n"))
    assert not claims_end(relays.parse("## What We Did\nDONE\n"))
    assert not claims_end(relays.parse("## Next Action\n\n## Current Phase\nDone\n"))
    assert not claims_end(relays.parse(""))


def test_the_primer_documents_the_word():
    assert f"only the word {relays.DONE} there" in primer.closing("relay.md", 2000)


@pytest.mark.parametrize(
    "part", [" ", "\n", "\t\n", "(", "```\n", "- [ ", "all is ", "no more ", "已"]
)
def test_time_grows_with_the_size_of_the_relay_alone(part):
    """An agent writes the relay: no text may hold its supervisor up."""
    small, large = (
        min(_seconds(relay(f"DONE {part * (size // len(part))}x")) for _ in range(3))
        for size in (8_000, 32_000)
    )
    assert large < 10 * max(small, 0.002)  # four times the text; its square would be sixteen


def _seconds(hostile):
    began = time.process_time()
    claims_end(hostile)
    return time.process_time() - began
