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
任务已完成,无需进一步操作。
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
None. All work is complete and all tests pass.
The task is complete. All 48 tests pass and the README describes the new flags.
All done! The CLI works end to end.
Nothing further. The feature is implemented, tested and documented.
No next action: the project is finished.
Task finished, no follow-up required.
Everything the prompt asked for is in place and tested.
The work described in PROMPT.md is finished.
Nothing. The implementation is complete.
There are no remaining items; all five modules are written and tested.
No action needed - the requested files exist and the tests are green.
All goals have been met; the run can end here.
We've completed every step of the plan.
I have nothing left to do.
The whole task is finished. The final commit is 3f2a9bc.
All the work is done and pushed to main.
Finished. The parser handles all nine operators, and the docs cover them.
The job is complete: wordcount.py prints the totals and its tests pass.
Task is done, there's nothing more to implement.
All acceptance criteria have been satisfied and verified.
The task has been completed successfully, no further cycles are needed.
No tasks remain.
No work remains.
Nothing to do, everything is finished.
Project finished. Waiting for new instructions from the operator.
All requested changes have been made and tested. Nothing is outstanding.
Completed. All checks pass.
The assignment is complete; see README.md for usage.
No more work is required on this task.
任务全部完成，所有测试通过。
无，项目已经完成。
全部功能已经实现并测试通过，没有剩余工作。
没有下一步了，任务已经完成。
所有需求都已实现，文档也已更新。
工作已全部完成，无需继续。
本任务已经完成，可以结束循环。
任务完成。所有 12 个测试均通过，README 已更新。
已经没有要做的事情了
没有待办事项，所有工作都已完成。
无后续步骤。代码已提交并推送。
已按要求完成所有工作，测试全部通过。
目标已经实现，不需要再做任何事情。
整个项目开发完毕。
No next action required. The library is published and the changelog is up to date.
None required; the task is fully implemented, tested, and committed.
All work for this task has been completed.
The task as described is complete.
I believe the task is complete. All tests are passing.
This task is now complete, and I have verified the output by hand.
Nothing more is required from me.
There's no work left.
We have finished what was asked.
The requested feature is finished and its tests are green.
Nothing to do: the script exists, works, and is covered by tests.
All 7 steps in the plan are checked off. No outstanding work.
Task accomplished. `just test` passes with 31 tests.
The refactoring is complete and behaviour is unchanged.
Everything in PROMPT.md is implemented, and the test suite passes.
All bugs are fixed and all tests pass. Nothing else to do.
The deliverable is finished: report.md has all five sections.
No further steps; the site builds without errors and all links work.
All sub-tasks finished, nothing pending.
Work complete. No further cycles needed.
All objectives achieved. Ready for the next assignment.
The loop may end: all criteria are met.
None. I have implemented the converter, written 14 tests, and updated the README.
Task complete, exit.
The project is feature complete and fully tested; no action items remain.
No actionable items remain.
The prompt's task is done.
That's everything. All files are committed.
There is nothing else for me to do.
无需任何后续操作，项目已完成。
所有工作都做完了，测试也都通过了。
任务已全部完成，代码已提交，文档已更新。
无剩余任务
没有后续工作，全部测试通过，构建成功。
本项目所有功能均已开发完成并通过测试。
任务完成，等待用户的新指令。
全部搞定，没有遗留问题。
已完成：所有需求均已实现，测试通过。
不需要进一步的工作
一切就绪，任务完成。
用户要求的功能已全部完成，无其他事项。
Nothing. The work is complete and every test is green.
None — task complete. The tool converts all sample files correctly.
The task is finished; all code is committed on main.
All requirements from PROMPT.md are implemented and tested.
No further action. Implementation finished and verified against the examples.
All steps complete. Final test run: 56 passed, 0 failed.
There is nothing left to implement; every item on the checklist is ticked.
The objective has been reached and the results are saved in results.csv.
I finished the task: the script runs, the output matches the expected file.
Task done. No open items.
Everything requested has been delivered.
No remaining work. The repository is clean and all changes are pushed.
Completed all the items in the task list; the build is green.
The project is done and needs no further work.
The work is complete; the agent can stop.
All done, nothing else is needed.
This is the end of the task; all files are written.
Final state reached: all tests pass, nothing to do.
None (project complete, all milestones delivered)
任务已完成，不需要后续动作。
所有步骤都已执行完毕，测试结果全部正常。
无下一步行动，项目已交付。
全部任务完成，代码已推送到 main 分支。
需求已全部实现，测试覆盖完整，无待办。
工作完成，可以停止。
所有测试通过，任务结束。
项目开发已完成，文档齐全。
没有更多任务，循环可以停止。
该任务已完成并通过了全部测试。
None, the task is finished.
Nothing further to do. The report is written and saved as report.md.
The task is complete and all tests pass.
All planned work has been completed; the repository is in a clean state.
No further action is needed, since all acceptance criteria pass.
Everything has been implemented as requested.
We have completed all tasks on the list and verified the result.
The project has reached its goal. All features work.
Task completed. All 23 tests pass, lint is clean, docs are updated.
None. Both bugs are fixed and covered by regression tests.
I have done everything that was asked for.
The migration is complete, all 1,204 rows were converted, and the checks pass.
There is no next step; the work is finished.
The work is done. Future improvements could include caching.
Done. `make test` is green.
All goals are met and no issues remain.
Finished all work. The final result is in output/summary.md.
No action. The task was completed in the previous cycle.
All complete; nothing outstanding.
Project is complete and documented. No tasks left.
The requested endpoint is live, tested, and documented. The task is complete.
All tests pass and the linter reports no errors. Task complete.
The job is done, please stop.
There is nothing more for this agent to do.
Work finished; see CHANGELOG.md.
任务圆满完成，无需后续操作。
所有任务都完成了，没有剩余事项。
无待办事项
项目完成，所有测试通过，文档已更新。
目前没有需要继续的工作。
全部需求已完成，等待验收后的新任务。
已全部实现并通过测试，任务结束。
所有目标已达成，代码已合并到主分支。
任务已经全部做完，没有其他需要处理的了。
工作全部结束，谢谢。
无，任务已完成，所有检查均通过。
所有功能开发完成，测试覆盖率 100%。
不再需要任何操作，循环结束。
该项目的全部任务已经完成，可以停止运行。
None. Task is complete and verified.
The task is complete; no additional work is required.
All of the requested work is done. Tests pass.
Nothing left. The CLI, its tests and its docs are finished.
No more work to do.
Everything asked for in the prompt is done and tested.
The goal has been accomplished: both scripts run and their tests pass.
We're finished. All changes are on the main branch.
Task complete. Next action: none.
This project is finished. All planned releases are published.
I've completed all of the steps and the final check passed.
All tasks done, all tests green, nothing left open.
No further development is planned; the tool is complete.
All user stories are implemented, tests cover every one of them.
The assignment is finished, and the summary is in SUMMARY.md.
Stop here. The work is complete.
N/A - task complete
The whole backlog is done.
Implementation complete, verification complete, nothing pending.
There are no more tasks in the plan.
The task is fully done, I verified it with `pytest -q` (18 passed).
Work is complete. The operator can close this run.
Every requirement is satisfied; no further cycles are necessary.
All milestones are complete and the project is closed.
Nothing needs to be done.
没有剩余任务，项目完成。
任务已完成，全部 20 项测试通过。
所有工作均已完成，无需下一步。
全部完成，无后续计划。
项目已全部完成并归档。
任务完成，没有进一步的工作。
本次任务的所有要求均已满足。
已完成全部功能，文档和测试也都齐全。
无需操作：任务已结束。
所有待办已清空，任务完成。
目标全部达成，测试通过，可以结束。
开发工作全部完成，系统运行正常。
所有问题都已解决，没有遗留任务。
用户的需求已经全部满足，任务结束。
代码、测试和文档均已完成，无其他工作。
None. The exporter is implemented and every test passes.
There is no further work. The final version is tagged v1.2.0.
Task complete — all deliverables are in the docs folder.
I completed everything in the plan and cleaned up the branch.
All of the work is finished, no follow-up is necessary.
We have met all the requirements, and the tests confirm it.
No steps remain. The feature has shipped.
The task was finished successfully.
Nothing else needs doing; the script is complete and tested.
All done here. Feel free to close the loop.
The refactor is complete, all 88 tests still pass.
Every task on the list is done.
The entire project is complete and no work remains.
Completed and verified, no next action.
Finished; the answer is in ANSWER.md.
No further cycles required: the goal is reached.
The task is complete. Final coverage is 100%.
All fixed, all tests pass, task complete.
任务已经完成，后续无需任何工作。
全部工作完成，结果保存在 result.json。
没有任务需要处理，项目结束。
所有需求已经实现，测试全部通过，项目可以关闭。
已完成任务，代码和文档都已提交。
无需继续，目标已经达成。
任务结束，所有文件都已生成。
所有的功能都开发完了，也都测试过了。
""".splitlines()
UNFINISHED = """\
Done?
DONE??
All tasks complete?
Is the task complete?
已完成？
~~Done~~
The task is complete, assuming the tests pass.
Everything is done if the migration works.
The task is complete unless the review finds something
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
The implementation is complete. The tests have to be written.
All features are implemented. I have no tests.
Everything is done. 3 of 12 tests pass.
No open issues. The parser is half written.
None - lexer merged, parser is a stub
The task is done. The user has to confirm the deployment.
No pending changes.
任务已完成，测试已交给别人
All tasks are complete. The deployment has yet to happen.
The work is finished. Documentation is thin.
Everything is implemented. Nobody has run it.
The project is complete. Coverage is at 40 percent.
Done. The linter has complaints.
The task is done. Two modules are placeholders.
None. The parser is merged and the printer is a skeleton.
The feature is complete. It has no error handling.
All requirements are met. One of the four endpoints returns 500.
The migration is complete. Old rows are orphaned.
The task is complete. The schema is a draft.
All planned features are implemented. Only half of the tests pass.
Everything is done. 7/9 checks pass.
The implementation is complete. The build hangs.
The job is done. Ann has to sign off.
The work is complete. Performance is poor.
No further action from me. The team has to migrate the data.
Nothing left to do here. The other branch is where the work is.
The goal is achieved. Cleanup is for another day.
Mission accomplished. The second server is down.
The task is complete. When CI is green, merge the branch.
The fix is done. The regression test is commented out.
All items are done. The remote is behind.
Done. I have doubts about the date handling.
None. Lexer finished. Parser at 60%.
Task complete. The user is expected to rotate the key.
Everything is shipped. Some users have reported crashes.
All issues are closed. The flaky one is skipped.
The plan is complete. The code is what comes now.
No open tasks. The report is empty.
任务已完成，文档写了一半
全部完成，测试由小王负责补
任务已完成，解析器只是个空壳
所有功能已实现，性能很差
项目已完成，有两个用例报错
工作已完成，代码没有提交
无。词法分析器已完成，语法分析器是空的
所有任务已完成，12 个测试里过了 3 个
任务已完成，上线要等客户点头
全部工作已完成，覆盖率只有四成
The work in lexer.py is done.
Everything in parser.py is implemented.
Lexer merged. Done.
The finished parser crashes on empty input.
The tests pass. The task is half done.
The task is complete. The tests are half implemented.
The task is complete. Logging still prints debug output everywhere.
Everything is implemented. The cache leaks memory under load.
All work is done. The certificate expires on Friday and has no renewal.
The project is finished. Windows support is experimental.
Done. The benchmark numbers are worse than before.
All features are implemented. The API key is hard-coded.
None. The importer is finished, the exporter throws.
The goal is achieved. We are two endpoints short.
The task is done. I could not run the tests.
All tasks are complete. Translations are machine generated and unchecked.
The job is finished. The data is stale.
Task complete. Somebody from ops has the final switch.
Nothing left to do on my side. Legal has the contract.
No further action required. The PR is open.
Everything is done. Five tests time out.
The fix is complete. The root cause is unknown.
The implementation is complete. Login works in Chrome.
All criteria are met. The coverage badge says 71%.
Work complete. README is a template.
The migration is finished. Row counts differ.
All items are checked off. The last one was optimistic.
None - backend shipped, frontend is at mockup level
任务已完成，登录页面样式错乱
全部完成，缓存模块是临时方案
所有任务已完成，线上环境由运维同学发布
任务已完成，日志里报了三个警告
项目已完成，数据迁移跑到一半
无。接口已完成，前端在做
任务完成，测试覆盖率偏低
所有功能已实现，部署脚本是手动的
The task is complete. All tests pass apart from the slow ones.
Everything is done. The parser works on simple input.
The work is finished. Tests pass when run twice.
All tasks are done. The results are surprising.
The project is complete. Docs exist for one of the modules.
The implementation is complete, though the tests were never executed.
No further action. Waiting on the vendor.
The job is done. The output is written to the wrong folder.
None. The lexer is tested, the rest compiles.
All goals are met. I removed the failing tests.
The task is done. The tests were removed.
Nothing left to do. The build is broken on macOS.
All features are implemented. Merging is up to Ann.
The feature is complete. A colleague checks the numbers on Monday.
Done. The server is offline.
Everything is implemented. Deployed to staging, production comes after sign-off.
The fix is complete. It works on my machine.
All items are complete. The changelog says otherwise.
The task is finished. Memory use doubled.
The migration is complete. 40 rows were dropped.
Task complete. The secret is in the repository.
The plan is done. It covers the first week.
All work is complete. The tests take nine hours.
任务已完成，结果和预期有差距
全部完成，性能测试跑不动
所有任务已完成，合并的事交由组长
任务已完成，删掉了失败的测试
项目已完成，生产环境连不上
无。后端完成，前端样式要重做
任务完成，明天补文档
The task is complete. The reviewers had objections.
Everything is done. My last run gave a different number.
The implementation is complete. Error paths are theoretical.
All tasks are finished. The demo account is locked.
Done. Half the screenshots are from the old version.
The work is complete. The licence question is open.
No further work on this. Ben took over the rest.
The project is finished. The installer asks for a password and stops.
All requirements are met. Requirement 7 is interpreted loosely.
The task is done. The index rebuild takes until morning.
Nothing left to do. The tests cannot be run here.
The goal is achieved. Accuracy is 62%.
The feature is complete. Safari renders it blank.
All work is done. The queue holds 300 messages.
None. The scraper is done and the site has blocked us.
The fix is complete. I did it without a test.
Everything is implemented. The config is an example.
The job is finished. The backup is from March.
All issues are closed. Two came back.
Task complete. The invoices go out by hand.
The plan is complete. Budget approval is with finance.
Mission accomplished. The report lacks a conclusion.
任务已完成，第三个接口返回空
全部完成，界面是英文的，翻译没做
所有任务已完成，客户那边有意见
任务已完成，跑一次要六个小时
项目已完成，说明书是旧版
无。爬虫已完成，数据源换了地址
工作已完成，有一个测试时好时坏
任务完成，密钥写死在代码里
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
    "start",
    ["all ", "the ", "nothing is ", "no ", "所有", "已完成全部", "无需", "done. it passes in "],
)
def test_time_grows_with_the_size_of_an_end_alone(start):
    for part in ("open ", "the ", "more ", "is ", "的", "要求的", "全部", "passes in ", "已通过"):
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
