"""Decide whether a relay reports that the work is done.

The documented form is `DONE` as the Next Action. Agents also report it in their own words, in
English and Chinese: "None. The task is complete". `reports_all_done` reads both. It splits the Next
Action into clauses and compares each with the tables below:

| table | a clause that matches |
|---|---|
| `_ENDS` | reports that all of the work is done, or that nothing is left to do |
| `_BARE` | is only a word like "Done": counts if it is the first clause |
| `_NOTHING` | is only a word like "None": counts with a clause that reports something as finished |
| `_FINISHED` | reports something, not necessarily all of the work, as finished |
| `_SCOPE` | is about a part of the work ("this phase", "for now"): does not report an end |
| `_ASIDE` | is optional or conditional, or waits for the operator's next task: asks for nothing |
| `_OPEN`, `_VERBS` | asks for work, waits for something, or makes an exception |

`_ENDS` is a closed grammar: between "all" and "tasks", and after "done", it allows only words that
do not narrow the task. "All backend tasks are done" reports only a part of the work as done.

A relay reports an end if no clause of its Next Action asks for work, and the first clause

- matches `_ENDS` or `_BARE`, or
- matches `_NOTHING`, and a later clause or Current Phase matches `_FINISHED`, or
- states a fact before "nothing is left".

If in doubt, the work does not count as done. For a finished agent, that costs another cycle, but
stopping before the end would leave the work unfinished.
"""

import re
from collections.abc import Iterator

from rekindle.documents.relay import (
    DONE_DIRECTIVE,
    Relay,
    RelayField,
)


def _compile_any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_CORE = (
    r"(?:tasks?|to-?do list|to-?dos?|work|projects?|jobs?|goals?|objectives?|missions?|assignments?"
    r"|requests?|backlog|scope)"
)
"""Nouns that mean all of the work."""
_NARROW = r"(?:plan|loop|run|implementation|feature|fix|migration|refactoring|procedure|change)"
"""Nouns that mean all of the work only after a bare article, unlike in "the backend migration"."""
_PARTS = (
    rf"(?:{_CORE}|items?|steps?|requirements?|features?|phases?|milestones?|stories|criteria"
    r"|issues?|deliverables?|functionality|checks?|boxes|checkboxes|tickets?|changes?|plan)"
)
_SPAN = (
    r"(?:(?:original|assigned|requested|required|primary|main|planned|entire|whole|overall|listed"
    r"|given|agreed|defined|necessary|acceptance|remaining|outstanding|open|pending|user'?s?|your"
    r"|development|coding|project|success|the|these|those|our|my|bounded|of|\d+|two|three|four|five|six"
    r"|seven|eight|nine|ten) )*"
)
"""Words that may come before a noun without narrowing it."""
_WHOLE = (
    r"(?!(?:work|tasks) (?:done|completed)$)(?:(?:the|this|our|my|your|entire|whole|overall) )?"
    rf"(?:{_SPAN}{_CORE}|(?:requested )?{_NARROW})"
    r"|(?:the|this|our|my) (?:[^\s.]+ ){1,3}?(?:project|goal|mission)"
)
_ALL = (
    rf"(?:all|every|each) {_SPAN}{_PARTS}(?: and (?:tests|docs|documentation))?"
    r"(?: (?:on|in|from|of) (?:the|this|my|our) (?:plan|list|backlog|to-?do list|project|task))?"
    r"|(?:all|everything)(?: of (?:it|them|this)| else)?"
    r"(?: (?:that )?(?:planned|requested|(?:was |is |were )?(?:asked|requested|required|planned)"
    r"|you asked|on (?:the|my|our) (?:plan|list))(?: for)?)?"
)
_DONE_WORDS = (
    r"done|completed?|finished|achieved|accomplished|fulfilled|implemented|delivered|satisfied"
    r"|met|reached|closed|concluded|wrapped up|checked off|feature[- ]complete|shipped"
    r"|ticked(?: off)?"
)
_IS = (
    r"(?:(?:is|are|was|were|has been|have been|'s|now|fully|all|already|successfully|100%|both|thus"
    r"|officially|functionally) )*"
)
_HERE = (
    rf"(?: (?:now|here|at this time|successfully|in full|(?:for|from|in|on|within) (?:the|this)"
    rf" {_SPAN}{_CORE}|as (?:planned|requested|specified|required|asked|expected|described)))?"
)
_STOP = rf"{_HERE}(?=$| (?:and|because|since|per)\b|[!?.])"
"""Text that may follow a reported end, unlike in "done for today" or "no further work on the
lexer".
"""
_STEPS = (
    r"(?:actions?|updates?|steps?|work|tasks?|items?|to-?dos?|changes?|cycles?|iterations?"
    r"|sessions?|development|repairs?|implementation|issues?)"
)
_LEFT = (
    r"(?:needed|required|necessary|pending|remaining|remains?|outstanding|left|identified|planned"
    r"|expected|to do|to be done|to take)"
)
_MORE = (
    r"(?:further|more|remaining|additional|outstanding|next|other|pending|open|unfinished"
    r"|follow-?up)"
)
_OF = r"(?:development|implementation|coding|code|action|work)"
_ZH_ADVERB = r"(?:已经|已|均|都|全部?|圆满|顺利|成功|宣告|完全|正式|也)*"
_ZH_DONE = (
    r"(?:处理|执行|开发)?(?:完成|结束|完毕|实现|达成|交付|做完|收尾|修复|搞定|终止|解决)了?"
    r"(?:并(?:已|且|通过|归档|验证|测试|合并|提交|交付|上线|部署)+)?$"
)
_ZH_CORE = r"(?:项目|任务|工作|目标|循环|开发工作|项目开发|整体工作|需求)"
_ZH_PARTS = rf"(?:{_ZH_CORE}|事项|要求|功能|计划|步骤|内容|待办|问题|阶段|里程碑|features?|issues?)"
_ZH_ALL = (
    r"(?:所有|全部|整个|各项|一切|原定|既定|计划内?)"
    r"(?:的|已?规划|计划|内|中|剩余|既定|原定|用户|要求|请求|开发|\s|\d|[个项])*"
    r"(?:[^，。；]{1,8}(?:指令|指示|要求|安排|交办|布置)的)?"
)
_ZH_LEAD = r"(?:(?:目前|现在|至此|当前|截至目前|到此|我们|我|用户要求的|用户) ?)*"
_ZH_STEP = r"(?:任务|工作|事项|行动|操作|步骤|动作|计划|内容|事情|事|了)"
_ZH_NONE = r"(?:已|并|再)?(?:无|没有|没|暂无|别无)(?:任何|更多)?"

_BARE = _compile_any(
    rf"{DONE_DIRECTIVE.lower()}{_STOP}",
    r"(?:it'?s |it is |this is |we'?re |we are |i'?m |i am )?(?:all |now |finally )*"
    rf"(?:done|finished|complete){_STOP}",
    r"(?:completed?|finished|mission accomplished|that(?:'?s| is) (?:all|it)|the end)$",
    r"(?:已经|已|均|都|全部|全都|圆满|顺利|成功)+(?:完成|结束|完毕|做完|搞定)了?$",
    r"(?:完成|完毕|结束|收工|大功告成)了?$",
)
_ENDS = _compile_any(
    rf"end of (?:the )?{_CORE}$",
    rf"(?:{_WHOLE}|{_ALL}) {_IS}(?:{_DONE_WORDS}|over){_STOP}",
    r"(?:(?:i|we)(?:'ve| have|'m| am|'re| are)? )?(?:now |already |fully |finally |successfully )*"
    r"(?:completed|finished|implemented|delivered|accomplished|achieved|reached|fulfilled|met|"
    rf"(?:done|finished) with) (?:(?:the|this|our|my) {_SPAN}{_CORE}|{_ALL}){_STOP}",
    rf"(?:there (?:is|are) |there'?s )?nothing(?: (?:is|more|else|further|{_LEFT}))+{_STOP}",
    rf"(?:there (?:is|are) |there'?s )?no(?: {_MORE})+(?: {_OF})? {_STEPS}"
    rf"(?: (?:is|are|was|were|have been|{_LEFT}))*{_STOP}",
    rf"(?:there (?:is|are) |there'?s )?no(?: {_OF})? {_STEPS}"
    rf"(?: (?:is|are|have been|was|were))?(?: {_LEFT})+{_STOP}",
    r"(?:the |this )?(?:loop|run|agent|project|work|you) (?:can|may|should) (?:now |safely )*"
    r"(?:stop|end|exit|be (?:closed|stopped|ended|archived))(?: (?:the|this) (?:loop|run|work))?"
    r"(?: here| now)?$",
    r"(?:please )?(?:stop|exit|end|terminate)(?: (?:the|this) (?:loop|run|work|cycle|session))?"
    r"(?: here| now)?$",
    rf"{_ZH_LEAD}(?:{_ZH_ALL}{_ZH_PARTS}?|(?:本次|本|该|此|这个|这项)?{_ZH_CORE}){_ZH_ADVERB}{_ZH_DONE}",
    rf"{_ZH_LEAD}(?:已经|已)(?:全部|圆满|顺利|成功)*完成了?(?:{_ZH_ALL}{_ZH_PARTS}|本?{_ZH_CORE})$",
    rf"{_ZH_LEAD}{_ZH_NONE}(?:后续|进一步|剩余|更多|其他|其它|待办|待处理|待执行|未完成|下一步"
    rf"|需要(?:再|做|处理|继续|执行|完成))+(?:的)?{_ZH_STEP}*$",
    r"没有(?:任何)?(?:任务|工作|事)了$",
    rf"{_ZH_LEAD}(?:已|并)?(?:无需|无须|不需要|不用|不必|不再需要)(?:再|进一步|后续|更多"
    rf"|任何|额外|继续|采取|进行|其他|做|的)*(?:{_ZH_STEP}|处理|开发|执行|修改|继续|做什么|跟进)$",
    r"(?:循环|任务|项目|代理)?(?:现在|已)?(?:可以|可|应)(?:停止|结束|终止|关闭)(?:了|循环|运行)*$",
    r"(?:停止|结束|终止)(?:循环|运行|任务|本项目|项目)?$",
)
_NONE_LEFT = _compile_any(r"(?:there (?:is|are) |there'?s )?no(?:thing)?\b", r"[已并再]?[无没不]")
"""Beginning of a reported end that may follow other facts. "All 5 features are done" is left out,
because it may be about the features alone.
"""
_LABEL = re.compile(
    r"(?:(?:the|task|project|overall|work|final|loop|任务|项目|整体|当前) ?)*(?:status|state|状态)"
    r"(?: is\b|[ ]?[:：=—–-])\s*"
)
_SCOPE = _compile_any(
    r"\b(?:phase|stage|section|step|part|sprint|module|chapter|batch|iteration|round|cycle|session"
    r"|half|milestone|current|first|second|third|previous|prior|last|earlier|today|for now|so far"
    r"|front-?end|back-?end|this week|right now)\b",
    r"(?<!所有)(?<!全部)阶段|模块|(?:本|该|此|这个?)步|(?<!全)部分|章节?|小节|本轮|本周期|周期|[这那]一?[步项轮期]|第[一二三四五六七八九十\d]|当前"
    r"|今[天日]|本[周月日]|[上下]午|暂时|前端|后端|几乎|基本|即将|快要?完成",
)
_NOTHING = _compile_any(
    rf"(?:none|nothing|n/?a|not applicable|nil)(?: (?:is|are|{_LEFT}|scheduled|queued|due|blocking"
    rf"|in flight|at this time))*(?: (?:for|on|in|from|to close|within) (?:this|the|that)"
    rf" {_SPAN}{_CORE})?$",
    r"(?:当前|目前|暂)?(?:无|没有)(?:了|活动任务|活跃任务|活跃计划|进行中任务|待办)?$",
)
_FINISHED = _compile_any(
    rf"\b(?:{_DONE_WORDS}|deployed|verified|validated|resolved|merged|passing|passed|pass|clean|released"
    r"|fixed|successful|discharged|archived?|terminal)\b",
    r"完成|结束|完毕|达成|交付|收口|通过|关闭|上线",
)
_ASIDE = _compile_any(
    r"(?:if|should|when|whenever|in case|optional|optionally|possible|potential|future|suggested"
    r"|nice[- ]to[- ]have|for reference|ideas?|only if|feel free|unless"
    r"|(?:candidate|natural|any) follow-?ups?)\b",
    r"(?:please )?(?:await|awaiting|wait for|waiting for|stand by for|standing by for|ready for)"
    r"(?: (?:the|any|a|further|new|next|more|additional|user|operator|human|your|user's))*"
    r" (?:instructions?|tasks?|requests?|assignments?|requirements?|directives?|input)\b",
    r"(?:后续|今后|以后)?(?:如果|如需|如有|若)|可选|未来|潜在|后续可",
    r"(?:等待|等候|静候)[^，。；]{0,6}(?:指示|指令|新任务|需求|任务|安排)",
)
_OPEN = _compile_any(
    r"\b(?:next|then|but|however|except|remaining|still|pending|until|once|blocked|blocker|yet|todo"
    r"|tbd|await|awaiting|waiting|wait|continue|start|begin|proceed|move on|resume|let'?s|needs?"
    r"|should|must|will|in progress|almost|partially|mostly|not|now we|now (?:it|that)|other than"
    r"|apart from|before|left|unverified|untested|fails?|failing|failed|verify|monitor|soon|ask"
    r"|broken|breaks?|red|missing|misses|missed|lacks?|incomplete|unfinished|wrong|tomorrow|later"
    r"|approve|approval|review|decide"
    r"|besides|aside from|excluding|save for|minus|exceptions?|to follow|for now"
    r"|(?:phase|milestone|stage|step|sprint|cycle|part|batch|section)s? #?[a-z]?\d+)\b",
    r"\b(?:phase|stage|step|sprint|part|batch|section)(?: \w)? (?:is|was|are|has|complete|done)\b",
    r"(?<![删清移解排消去废])除|除外|[只仅][差剩]",
    r"继续|接下来|然后|开始|下一|剩余|但|不过|除了|尚|还需|还要|还有|还没|未|等待|需要|进入|推进|准备"
    r"|启动|计划|监控|阻塞|待|优先|失败|审批|批准|确认|决定|探索|持续|部分|可以|即可",
)
_LEAD = re.compile(r"(?:now|and|also|please|so|first|finally|just)\s+")
_VERBS = re.compile(
    r"(?:add|address|adjust|analyse|analyze|apply|assess|audit|backfill|build|bump|call"
    r"|capture|change|check|choose|clean|close|collect|commit|compare|configure|confirm"
    r"|connect|consider|convert|cover|create|cut|debug|define|delete|deliver|deploy|design"
    r"|do|document|draft|drop|enable|ensure|evaluate|execute|expand|explore|extend|extract"
    r"|fetch|fill|finalise|finalize|find|finish|fix|focus|follow|generate|get|give|handle"
    r"|identify|implement|improve|increase|inspect|install|integrate|introduce|investigate"
    r"|keep|land|launch|look|maintain|make|measure|merge|migrate|move|open|optimise"
    r"|optimize|package|pick|plan|polish|port|post|prepare|promote|publish|pull|push|raise"
    r"|re-run|read|rebase|record|reduce|refactor|refine|release|remove|rename|repair"
    r"|replace|report|rerun|research|resolve|restore|revert|rewrite|roll|run|schedule"
    r"|scaffold|select|send|set|setup|shift|ship|show|simplify|split|stabilise|stabilize"
    r"|submit|switch|sync|tag|take|test|tidy|track|translate|triage|try|tune|turn|update"
    r"|upgrade|use|validate|wire|work|write)(?![\w/-])"
)
_VERBS_ZH = re.compile(
    r"新增|添加|增加|修复|实现|编写|优化|部署|测试|验证|检查|重构|更新|发布|提交|推送|合并|创建|设计"
    r"|执行|运行|完善|补充|处理|集成|迁移|制定|调研|收集|扩展|选择|编码|开发|撰写|写"
)
_NOUN_FIRST = re.compile(
    r"\S+ (?:is|are|was|were|has|have|passes|passed|pass|succeed\w*|results?|completed?"
    r"|[0-9a-f]{7,40})\b"
)
_STATED = re.compile(
    r"(?:the|an?|all|every|each|this|these|that|those|it|its|they|our|my|any|both|no|nothing|none"
    r"|everything|see|future)(?: \S+){3}|[^\x00-\x7f].{7}"
)
"""Beginning of a statement. Any other clause counts as an instruction, because any word may be its
verb. Shorter clauses ("the lexer") count as the part of the work that a reported end is about.
"""
_FACT = re.compile(
    rf"\b(?:is|are|was|were|has|have|pass(?:es|ed)?|verified|green|merged|ready|works?|working|{_DONE_WORDS})\b"
    r"|^(?:\S+ ){0,4}?\w+(?<!e)ed$|^(?:commit )?[0-9a-f]{7,40}$|^\d+ \w+$|^v?\d[\d.]*$|已|通过|完成"
)
_STATEMENT = _compile_any(
    r"\b(?:now|it) (?:has|have|features?|includes?|supports?|provides?|covers?|contains?|reflects?"
    r"|is|are)$",
    r"\b(?:confidence|validating|confirming|verified|verifying|showing|confirm(?:s|ed)?) that$",
    r"\b(?:summary|includes?|included|completed|delivered|implemented|shipped|resolved|achieved)$",
    r"(?:已完成|包括|成果|能够)$",
)
_READY = re.compile(
    r"\bready (?:for|to) (?:(?:and|or|user|human|final|production|release|merge|merging|review"
    r"|demonstration|deployment|deploy|handover|handoff|be|used?|shipping|ship|approval)\b[ /,]*)+"
)
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_WRAP = re.compile(r"(?<=[a-z,])\n(?=[a-z])")
_BULLET = r"[ \t]*(?:[-+*•]|\d{1,3}[.)、])"
_ITEM = re.compile(rf"{_BULLET}\s+|[ \t]*\|")
_TICKED = re.compile(rf"(?:{_BULLET})\s*(?:\[[xX]\]|✅|☑|✔|~~)")
_UNTICKED = re.compile(rf"{_BULLET}\s*\[ \]")
_BRACKETED = re.compile(r"[(（]([^()（）]*)[)）](?=\s*(?:[.。!！,，;；:：—–-]|$))")
_MARKS = re.compile(r"[*_`#>~\[\]()|\"“”「」]|[^\w\s,.;:!?'/%+&，。；：！？、—–-]")
_CLAUSES = re.compile(r"(?<=[.!?])\s+|[.!?]$|[;,:](?=\s|$)|\s[—–-]+\s|[—–]{1,2}|[。；！？，：]")
_EDGES = " .,;:!?-—–、/+&"


def reports_all_done(relay: Relay) -> bool:
    """Return whether a relay reports that all of its work is done."""
    directive = relay.raw_next_action
    clauses = list(_split_clauses(directive))
    if not clauses or any(map(_UNTICKED.match, directive.splitlines())):
        return False
    if any(_is_open(clause, is_item=is_item) for clause, is_item in clauses):
        return False
    first, _ = clauses[0]
    if _find_end(first) or _BARE.match(first):
        return True
    phase = list(_split_clauses(relay.content(RelayField.CURRENT_PHASE) or ""))[:1]
    if _NOTHING.match(first):
        finished = [one for one, _ in (*clauses, *phase) if _FINISHED.search(one)]
        return bool(finished) and not any(map(_SCOPE.search, finished))
    return _ends_with_nothing_left(clauses)


def _ends_with_nothing_left(clauses: list[tuple[str, bool]]) -> bool:
    """Return whether the text states facts about the work and then that nothing is left to do."""
    for clause, _ in clauses:
        if _NONE_LEFT.match(clause):
            return bool(_find_end(clause))
        if _SCOPE.search(clause) or not _FACT.search(clause):
            return False
    return False


def _find_end(clause: str) -> re.Match[str] | None:
    """Return the words that report the end of all the work, or None."""
    end = _ENDS.match(clause)
    return None if end is None or _SCOPE.search(end[0]) else end


def _split_clauses(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses of a text without markdown, and whether each is in a list item.

    Ticked items are left out, and so are items below a line that calls them optional or introduces
    a list of facts.
    """
    is_aside = False
    for line in _WRAP.sub(" ", _FENCE.sub("", text)).splitlines():
        is_item = bool(_ITEM.match(line))
        if _TICKED.match(line) or (is_item and is_aside):
            continue
        bare = _BRACKETED.sub(r", \1", _ITEM.sub("", line, count=1) if is_item else line)
        bare = " ".join(_MARKS.sub(" ", bare).casefold().split()).strip(_EDGES)
        bare = bare[label.end() :] if (label := _LABEL.match(bare)) else bare
        clauses = [part for part in (part.strip(_EDGES) for part in _CLAUSES.split(bare)) if part]
        if not clauses:
            continue
        is_aside = not is_item and bool(_STATEMENT.search(clauses[-1]))
        for clause in clauses:
            if _ASIDE.match(clause):
                is_aside = True
                break  # the rest of the line belongs to the condition
            yield _READY.sub("ready ", clause).strip(), is_item


def _is_open(clause: str, *, is_item: bool) -> bool:
    """Return whether a clause asks for work, even after the end that it reports."""
    end = _find_end(clause) or _BARE.match(clause) or _NOTHING.match(clause)
    if not end:
        return _asks_for_work(clause, is_item=is_item)
    _, conjunction, rest = clause[end.end() :].partition(" and ")
    asks = bool(conjunction) and _asks_for_work(rest, is_item=is_item)
    return asks or bool(_OPEN.search(clause, end.end()))


def _asks_for_work(clause: str, *, is_item: bool) -> bool:
    is_fact = bool(_FACT.search(clause) or _STATEMENT.search(clause))
    is_verb = bool(_VERBS.match(_LEAD.sub("", clause))) and not _NOUN_FIRST.match(clause)
    is_verb = is_verb or (bool(_VERBS_ZH.match(clause)) and not is_fact)
    is_stated = bool(_STATED.match(clause) or _FINISHED.search(clause)) and not is_item
    is_stated = is_stated and not _SCOPE.search(clause)
    return is_verb or bool(_OPEN.search(clause)) or not (is_fact or is_stated)
