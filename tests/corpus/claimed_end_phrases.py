"""Phrasings of ends and of unfinished work that the rules of `claimed_end` were not fitted to.

They were written after the rules, and measured once. A phrasing that a change of the rules is made
for moves to the tests of `policy/relay/claimed_end`.
"""

NATURAL = """\
None. The job is done.
The task is complete: the importer, its tests and the guide are written.
No further action is necessary. All twelve checks succeed.
Everything on the list is finished and committed.
There is nothing left for me to do on this project.
All work items are closed. The release is out.
DONE - all criteria verified with `just check`
Nothing further is needed, the library is complete and documented.
We have finished the task. The build passes on Linux and macOS.
The objective is fully met and the results are reproducible.
This task is complete. No changes are pending.
I have finished implementing all the requested features.
All five deliverables are done; the summary is in docs/summary.md.
The feature request has been fulfilled and merged.
No remaining work; I have closed all open loops.
Project complete. Thanks!
All steps of the plan have been carried out successfully.
There is no task left in the plan.
Goal achieved. The endpoint answers in under 50 ms, as required.
The code is finished, the tests are green and there is nothing left to do.
None, everything was completed in earlier cycles.
The work requested in the prompt has been completed and checked.
The task can be considered complete.
Complete. No outstanding issues.
Implementation is done, tests are done, documentation is done. Nothing more to do.
任务全部结束，没有需要跟进的内容。
所有代码都已完成并提交，测试全部通过。
无（任务已经全部完成）
项目目标已全部实现，循环可以停止。
没有更多要做的了，全部完成。
已经完成了用户要求的所有内容。
全部功能完成，文档完善，测试通过。
任务完成，结果已写入 report.md。
后续没有任何待办，本任务结束。
工作已经做完，所有检查都是绿色的。
需求全部完成，无需再继续。
本项目已完成所有里程碑，正式结束。
所有步骤完成，输出文件已经生成。
任务达成，停止循环。
代码已经合并，任务全部完成，没有遗留工作。
""".splitlines()
UNFINISHED = """\
The task is complete. The graph looks odd.
All work is finished. Nobody on the team can log in.
Everything is done. The numbers do not add up.
The implementation is complete. The API is rate limited.
Done. Two reviewers want changes.
The project is complete. The domain is for sale.
All features are implemented. The mobile layout overlaps.
The migration is complete. Reads go to the old table.
The goal is reached. The margin is thin and the sample is small.
No further steps. The pipeline is paused.
None. The client is finished, the server is Ann's.
The job is done. The tests are in a branch of mine.
The task is finished. I changed the expected values.
All tasks are complete. The last commit broke the docs build.
The fix is complete. Users on 1.x see the bug.
Everything is shipped. The invoice module is read-only.
The feature is complete. Keyboard users are stuck.
The work is done. The spec and the code disagree.
All criteria are met. I lowered two of them.
Task complete. The password is in the log.
The plan is complete. Step seven is a guess.
The implementation is complete. It compiles.
Mission accomplished. The dashboard shows zeros.
任务已完成，打印出来全是乱码
全部完成，服务器磁盘满了
所有任务已完成，测试在别人机器上过
项目已完成，两个依赖版本冲突
任务已完成，合同细节在谈
无。导入功能已完成，导出格式是错的
工作已完成，数据少了三百行
""".splitlines()
