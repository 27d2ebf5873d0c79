"""Claimed ends: the documented word, natural forms in two languages, and unfinished work.

The phrasings are written for these tests. Those of real relays are in tests/corpus.
"""

import time

import pytest

from rekindle.documents import primer
from rekindle.documents import relay as relays
from rekindle.policy.relay import relay_check
from rekindle.policy.relay.claimed_end import reports_all_done

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
The lexer is complete. No further work is needed.
词法分析器已通过测试，无后续任务
Everything is done; README updated, ruff clean.
I have completed the task; no action is required.
I have completed the task.
We have finished the work.
I've finished everything.
I completed all of the requested tasks.
We've implemented all requirements and all tests pass.
I have finished all tasks. Nothing remains.
I am done with the task.
I'm done with everything.
We are done with all tasks.
Finished all tasks.
Completed all the work.
Completed the task successfully.
Successfully completed all tasks.
Status: DONE
Status: Complete
Status: COMPLETED
**Status**: ✅ COMPLETE
STATUS - DONE
Task status: complete
Overall status: finished
State: done.
The work has been completed in full.
There is no work left to do.
We have reached the goal.
Work is finished; you can stop.
You can stop the loop now.
You may stop now; the task is complete.
Please stop the loop, the task is complete.
End of work.
End of task.
This is complete.
It is done.
That is all.
The requested change is complete.
We are finished here.
已完成所有任务
已完成所有任务。
已完成全部工作
已完成全部任务，无需进一步操作
我已完成所有任务
我们已经完成了全部工作。
我已经完成任务
都完成了
所有事项均已处理完毕
状态：已完成
状态：完成
状态：DONE
任务状态：已完成
没有任务了
无需再做任何事
至此全部工作完成
""".splitlines()
UNFINISHED = """\
The parser is shipped - all 5 features complete
The task is done and parse expressions
The task is complete and tackle the docs
DONE: the lexer
DONE - the lexer
Done (the lexer)
任务已完成（本阶段）
任务已完成（前端）
所有任务已完成：前端
任务已完成，仅限前端
The task is complete (this phase)
The task is complete, this phase
All tasks are done as far as the lexer goes
All tasks are done so parse expressions
任务已完成，转向解析器
任务已完成，去写解析器
All tasks in section A are done
本阶段任务已完成
无后续任务，除文档外
No further work on the lexer
该模块全部工作已完成
All tasks for today are done
All tasks for now are done
All tasks of the module are complete
All tasks in the backend are complete
All backend tasks are complete
All frontend work is done
All current tasks are done
All high priority tasks are done
All P0 tasks are done
All remaining tasks of sprint 4 are finished
All work on the parser is done
All steps of phase 1 are complete
All items in this section are done
All tasks excluding the docs are complete
Nothing left to do in this module
Nothing more to do for now
Nothing more to do on the lexer
No further work in this phase
No further work for the lexer
No further action on issue 12
No further action for now
No further action today
No action required for the lexer
No remaining tasks in section A
No more work on this part
No more tasks in this batch
No open tasks for the backend
No pending tasks in the queue for module B
The lexer work is done
This part of the work is done
This module's work is finished
The lexer implementation is complete
The backend migration is complete
None in this module; it is complete
None. Section A is complete.
None - this phase is complete
本阶段全部工作已完成
本阶段已完成
本模块已完成
本步骤已完成
本轮任务已完成
本周期任务已完成
本周期工作已全部完成
本章节任务已完成
该模块已完成
该阶段所有任务已完成
该功能已完成
此模块任务已全部完成
此步骤已完成
所有第一阶段的任务已完成
所有前端任务已完成
所有后端工作已全部完成
所有A模块的任务均已完成
全部前端任务已完成
所有任务已完成，除文档外
所有任务已完成，文档除外
全部完成，只差文档
全部完成，仅剩文档
任务基本完成
任务即将完成
任务快完成了
无后续任务，文档除外
没有剩余的前端任务
无需进一步操作该模块
In this phase, all tasks are complete
I have completed the lexer
I have completed the first task
I have completed part of the task
Completed all tasks in section B
We are done with phase 2
Status: in progress
Status: almost done
Parser status: done
Status: DONE with the lexer
Task complete; on to the parser
已完成第一阶段
已完成所有前端任务
已完成该模块的全部工作
我已完成第一个任务
状态：进行中
除文档外，所有任务已完成
任务完成后编写文档
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
    assert reports_all_done(relay(directive))
    assert relay_check.classify_relay(relay(directive), 2000).usable


@pytest.mark.parametrize("directive", UNFINISHED)
def test_unfinished_work_is_not_an_end(directive):
    assert not reports_all_done(relay(directive))


def test_a_bare_none_counts_only_with_a_finished_phase():
    assert reports_all_done(relay("None", phase="Complete: all tests pass"))
    assert not reports_all_done(relay("None", phase="Implementing the parser"))
    assert not reports_all_done(relay("None"))
    finished = relay_check.classify_relay(relay("None", phase="Complete"), 2000)
    assert (finished.usable, relay_check.classify_relay(relay("None"), 2000).usable) == (
        True,
        False,
    )


def test_lists_decide():
    """Ticked items are past, open ones are work, optional ones and statements ask for nothing."""
    assert reports_all_done(relay("All tasks are done.\n- [x] lexer\n- ✅ parser"))
    assert not reports_all_done(relay("All tasks are done.\n- [x] lexer\n- [ ] parser"))
    assert not reports_all_done(relay("All tasks are done.\n1. the printer\n2. the cache"))
    assert reports_all_done(
        relay("All tasks are done.\n\nPossible follow-ups:\n1. a printer\n2. a cache")
    )
    assert reports_all_done(relay("The task is done. The tool now has:\n- a lexer\n- a parser"))
    assert not reports_all_done(relay("Work completed:\n- lexer"))


def test_the_word_is_found_wherever_the_directive_is():
    assert reports_all_done(relays.parse("## Next Action: DONE\n\n## Open Questions\n- none\n"))
    assert not reports_all_done(relays.parse("## What We Did\nDONE\n"))
    assert not reports_all_done(relays.parse("## Next Action\n\n## Current Phase\nDone\n"))
    assert not reports_all_done(relays.parse(""))


def test_the_primer_documents_the_word():
    assert f"only the word {relays.DONE_DIRECTIVE} there" in primer.render_closing("relay.md", 2000)


@pytest.mark.bench
@pytest.mark.parametrize(
    "part",
    [
        " ",
        "\n",
        "\t\n",
        "(",
        "```\n",
        "- [ ",
        "all is ",
        "no more ",
        "已",
        "and done ",
        "全部",
        "x\n",
    ],
)
def test_time_grows_with_the_size_of_the_relay_alone(part):
    """An agent writes the relay: no text may hold its supervisor up."""
    assert grows_linearly("DONE ", part)


@pytest.mark.bench
@pytest.mark.parametrize(
    "start", ["all ", "the ", "nothing is ", "no ", "所有", "已完成全部", "无需"]
)
def test_time_grows_with_the_size_of_an_end_alone(start):
    for part in ("open ", "the ", "more ", "is ", "的", "要求的", "全部"):
        assert grows_linearly(start, part), part


def grows_linearly(start, part):
    """Tell whether four times the text takes about four times as long; its square is sixteen."""

    def seconds(size):
        return _seconds(relay(f"{start}{part * (size // len(part))}x"))

    # The shortest times are all noise, and a pause of the machine is in one of three at most.
    return any(seconds(32_000) < 10 * max(seconds(8_000), 0.002) for _ in range(3))


def _seconds(hostile):
    began = time.process_time()
    reports_all_done(hostile)
    return time.process_time() - began
