"""English and Chinese phrases that report finished work, a result or open work.

| table | a clause that matches |
|---|---|
| `ENDS` | reports that all of the work is done, or that nothing is left to do |
| `BARE` | is only a word like "Done": counts if it is the first clause |
| `NOTHING` | is only a word like "None": counts with a clause that reports something as finished |
| `FINISHED` | reports something, not necessarily all of the work, as finished |
| `SCOPE` | is about a part of the work ("this phase", "for now"): does not report an end |
| `ASIDE` | is optional or conditional, or waits for the operator's next task: asks for nothing |
| `RESULTS` | reports a good result ("all tests pass") or describes the product |
| `OPEN`, `LIMITED`, `DEFECT`, `VERBS` | asks for work, or limits what it reports |

`ENDS` and `RESULTS` are closed grammars. Between "all" and "tasks", and after "done", `ENDS` allows
only words that do not narrow the task: "All backend tasks are done" reports only a part of the work
as done. A clause that no table matches counts as open work, because there are countless ways to say
that work is missing, but only a few to say that it is done.
"""

import re

from rekindle.documents.relay import DONE_DIRECTIVE


def _compile_any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_CORE = (
    r"(?:tasks?|to-?do list|to-?dos?|work|projects?|jobs?|goals?|objectives?|missions?|assignments?"
    r"|requests?|deliverables?|backlog|scope)"
)
"""Nouns that mean all of the work."""
_NARROW = (
    r"(?:plan|loop|run|implementation|feature|fix|migration|refactoring|refactor|rewrite"
    r"|cleanup|upgrade|procedure|change)"
)
"""Nouns that mean all of the work only right after an article, so not in "the backend migration".
"""
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
_AS_GIVEN = (
    r"(?:,? as (?:described|requested|specified|planned|defined|given)"
    r"| (?:described|defined|requested|specified|listed|outlined|given) (?:in|by) \S+"
    r"| (?:in|from|of) (?:the )?(?:prompt|plan|tasks?|to-?do|spec)(?:\.\w+| list)?"
    rf"| (?:for|of|in) (?:this|the) {_CORE})?"
)
"""Text after a noun that says where all of the work is listed."""
_WHOLE = (
    r"(?!(?:work|tasks) (?:done|completed)$)"
    r"(?:(?:the|this|our|my|your|entire|whole|overall|the prompt's) )?"
    rf"(?:{_SPAN}{_CORE}|(?:requested )?{_NARROW}){_AS_GIVEN}"
    r"|(?:the|this|our|my) (?:[^\s.]+ ){1,3}?(?:project|goal|mission)"
)
_ALL = (
    rf"(?:all|every|each) {_SPAN}{_PARTS}(?: and (?:tests|docs|documentation))?"
    rf"(?: (?:on|in|from|of) (?:the|this|my|our) (?:plan|list|backlog|to-?do list)|{_AS_GIVEN})"
    r"|(?:all|everything)(?: of (?:it|them|this)| else)?"
    r"(?: (?:that )?(?:planned|requested|(?:was |is |were )?(?:asked|requested|required|planned)"
    r"|(?:you|the (?:user|prompt|task|operator)) (?:asked|asks|requested|requests|wanted)"
    r"|on (?:the|my|our) (?:plan|list)|in (?:the )?(?:prompt|plan|spec)(?:\.\w+)?)(?: for)?"
    rf"{_AS_GIVEN})?"
    r"|what (?:was|is) (?:asked|requested|required|planned)(?: for)?"
)
_DONE_WORDS = (
    r"done|completed?|finished|achieved|accomplished|fulfilled|implemented|delivered|satisfied"
    r"|met|reached|closed|concluded|wrapped up|checked off|feature[- ]complete|shipped"
    r"|ticked(?: off)?|in place|made"
)
_IS = (
    r"(?:(?:is|are|was|were|has been|have been|'s|now|fully|all|already|successfully|100%|both|thus"
    r"|officially|functionally) )*"
)
_HERE = (
    r"(?: (?:now|here|at this time|successfully|in full|from me|for (?:me|us|this agent) to do"
    rf"|(?:for|from|in|on|within) (?:the|this) {_SPAN}(?:{_CORE}|plan|list)"
    r"|as (?:planned|requested|specified|required|asked|expected|described)))?"
)
_STOP = rf"{_HERE}(?=$| (?:and|because|since|per)\b|[!?.])"
"""Text that may follow a reported end. "Done for today" and "no further work on the lexer" do not
match.
"""
_TASKS = r"(?:actions?|steps?|work|tasks?|items?|to-?dos?)"
_WHEN = r"in (?:this|the (?:last|previous|prior|earlier)) (?:cycle|session|run|iteration)"
_STEPS = (
    rf"(?:{_TASKS}|updates?|changes?|cycles?|iterations?|sessions?|development|repairs?"
    r"|implementation|follow-?ups?)"
)
_LEFT = (
    r"(?:needed|required|necessary|pending|remaining|remains?|outstanding|left|identified|planned"
    r"|expected|to do|to be done|to take)"
)
_MORE = r"(?:further|more|remaining|additional|outstanding|next|other|follow-?up)"
_TO_DO = r"to (?:do|implement|add|build|write|change|fix|complete|finish)"
_THERE = r"(?:there (?:is|are) |there'?s |(?:i|we) have )?"
_OF = r"(?:development|implementation|coding|code|action|actionable|work)"
_ZH_ADVERB = r"(?:已经|已|均|都|全部?|圆满|顺利|成功|宣告|完全|正式|也)*"
_ZH_DONE = (
    r"(?:处理|执行|开发)?(?:完成|完(?=了)|结束|完毕|实现|达成|交付|做完|收尾|修复|搞定|终止|解决|满足|清空)了?"
    r"(?:并(?:已|且|通过了?|归档|验证|全部|所有|测试|合并|提交|交付|上线|部署)+)?$"
)
_ZH_CORE = r"(?:项目|任务|工作|目标|循环|开发工作|项目开发|整体工作|需求)"
_ZH_PARTS = rf"(?:{_ZH_CORE}|事项|要求|功能|计划|步骤|内容|待办|问题|阶段|里程碑|features?|issues?)"
_ZH_ALL = (
    r"(?:所有|全部|整个|各项|一切|原定|既定|计划内?)"
    r"(?:的|已?规划|计划|内|中|剩余|既定|原定|用户|要求|请求|开发|\s|\d|[个项])*"
    r"(?:[^，。；]{1,8}(?:指令|指示|要求|安排|交办|布置)的)?"
)
_ZH_LEAD = r"(?:(?:后续|目前|现在|至此|当前|截至目前|到此|我们|我|用户要求的|用户的?) ?)*"
_ZH_STEP = r"(?:任务|工作|事项|行动|操作|步骤|动作|计划|内容|事情|事|了)"
_ZH_NONE = r"(?:已|并|再)?(?:无|没有|没|暂无|别无)(?:任何|更多)?"

BARE = _compile_any(
    rf"{DONE_DIRECTIVE.lower()}{_STOP}",
    r"(?:it'?s |it is |this is |we'?re |we are |i'?m |i am )?(?:all |now |finally )*"
    rf"(?:done|finished|complete){_STOP}",
    r"(?:completed?|finished|mission accomplished|that(?:'?s| is) (?:all|it|everything)|the end)$",
    r"(?:已经|已|均|都|全部|全都|圆满|顺利|成功)+(?:完成|结束|完毕|做完|搞定)了?$",
    r"(?:完成|完毕|结束|收工|大功告成)了?$",
)
ENDS = _compile_any(
    rf"(?:this is )?(?:the )?end of (?:the )?{_CORE}$",
    rf"(?:{_WHOLE}|{_ALL}) {_IS}(?:{_DONE_WORDS}|over){_STOP}",
    rf"(?:{_WHOLE}) (?:has|have) (?:reached|achieved|met|fulfilled) (?:its|all|the|all its)"
    r" (?:goals?|objectives?|requirements?)$",
    rf"(?:the|this) (?:(?:entire|whole) )?(?:task|project|job|assignment) {_IS}(?:{_DONE_WORDS})"
    rf" {_WHEN}$",
    r"(?:(?:i|we)(?:'ve| have|'m| am|'re| are)? )?(?:now |already |fully |finally |successfully )*"
    r"(?:completed|finished|implemented|delivered|accomplished|achieved|reached|fulfilled|met|done|"
    rf"(?:done|finished) with) (?:(?:the|this|our|my) {_SPAN}{_CORE}|{_ALL}){_STOP}",
    rf"{_THERE}nothing(?: (?:is|more|else|further|open|{_LEFT}))+(?: {_TO_DO})?{_STOP}",
    rf"nothing (?:else |more |further )?(?:needs (?:to be done|doing)|has to be done){_STOP}",
    rf"{_THERE}no(?: {_MORE})+(?: {_OF})? {_STEPS}"
    rf"(?: (?:is|are|was|were|have been|{_LEFT}))*{_STOP}",
    rf"{_THERE}no (?:open|pending|unfinished)(?: {_MORE})? {_TASKS}{_STOP}",
    rf"{_THERE}no(?: {_OF})? {_TASKS}(?: (?:is|are|have been|was|were))?(?: {_LEFT})+{_STOP}",
    rf"{_THERE}no (?:{_OF} )?(?:{_STEPS}|{_TASKS})(?: (?:is|are))? (?:needed|required|necessary)"
    rf"{_STOP}",
    r"(?:the |this )?(?:loop|run|agent|project|work|you|operator|user) (?:can|may|should)"
    r" (?:now |safely )*(?:stop|end|exit|close|be (?:closed|stopped|ended|archived))"
    r"(?: (?:the|this) (?:loop|run|work))?(?: here| now)?$",
    r"(?:please )?(?:stop|exit|end|terminate)(?: (?:the|this) (?:loop|run|work|cycle|session))?"
    r"(?: here| now)?$",
    rf"{_ZH_LEAD}(?:(?:[本该]?次?(?:项目|任务)的?)?{_ZH_ALL}{_ZH_PARTS}?|(?:本次|本|该|此|这个|这项)?{_ZH_CORE}){_ZH_ADVERB}{_ZH_DONE}",
    rf"{_ZH_LEAD}(?:已经|已)(?:按(?:照)?[^，。；]{{1,6}})?(?:全部|圆满|顺利|成功)*完成了?(?:{_ZH_ALL}{_ZH_PARTS}|本?{_ZH_CORE})$",
    rf"{_ZH_LEAD}{_ZH_NONE}(?:后续|进一步|剩余|遗留|更多|其他|其它|待办|待处理|待执行|未完成|下一步"
    rf"|需要(?:再|做|处理|继续|执行|完成))+(?:的)?{_ZH_STEP}*$",
    r"(?:已经|已)?没有(?:任何)?(?:(?:需要|要)(?:做|处理|完成)的)?(?:任务|工作|事情?)了$",
    r"没有(?:任何)?(?:任务|工作|事情?)(?:需要|要)(?:处理|做|继续|完成)了?$",
    r"(?:已经|已)?(?:没有|无)下一步(?:行动|操作|任务|计划)?了?$",
    rf"{_ZH_LEAD}(?:已|并)?(?:无需|无须|不需要|不用|不必|不再需要)(?:再|进一步|后续|更多"
    rf"|任何|额外|继续|采取|进行|其他|做|的)*(?:{_ZH_STEP}|处理|开发|执行|修改|继续|做什么|跟进|下一步)$",
    r"(?:循环|任务|项目|代理)?(?:现在|已)?(?:可以|可|应)(?:停止|结束|终止|关闭)(?:了|循环|运行)*$",
    r"(?:停止|结束|终止)(?:循环|运行|任务|本项目|项目)?$",
)
CLOSING = _compile_any(
    r"(?:there (?:is|are) |there'?s |(?:i|we) have )?no(?:thing)?\b",
    rf"(?:(?:so|thus|therefore) )?(?:(?:the|this|our|my) )?(?:(?:entire|whole) )?{_CORE}\b",
    r"[已并再]?[无没不]",
    rf"(?:[本该此]|整个)?{_ZH_CORE}",
)
"""Words that may start a reported end after results. "All 5 features are done" does not match,
because it may be about the features alone.
"""
LABEL = re.compile(
    r"(?:(?:the|task|project|overall|work|final|loop|任务|项目|整体|当前) ?)*(?:status|state|状态)"
    r"(?: is\b|[ ]?[:：=—–-])\s*"
)
SCOPE = _compile_any(
    r"\b(?:phase|stage|section|step|part|sprint|module|chapter|batch|iteration|round|cycle|session"
    r"|half|milestone|current|first|second|third|previous|prior|last|earlier|today|for now|so far"
    r"|front-?end|back-?end|this week|right now)\b",
    r"(?<!所有)(?<!全部)阶段|模块|(?:本|该|此|这个?)步|(?<!全)部分|章节?|小节|本轮|本周期|周期|[这那]一?[步项轮期]|第[一二三四五六七八九十\d]|当前"
    r"|今[天日]|本[周月日]|[上下]午|暂时|前端|后端|几乎|基本|即将|快要?完成",
)
UNSCOPED = re.compile(
    rf"\b(?:(?:every|each|no(?: {_MORE})+) (?:phase|stage|step|milestone|cycle|session|iteration)"
    rf"|{_WHEN})\b"
)
"""Words that `SCOPE` would match, but that do not narrow down the work."""
NOTHING = _compile_any(
    r"no (?:action|tasks?|steps?)$",
    rf"(?:none|nothing|n/?a|not applicable|nil)(?: (?:is|are|{_LEFT}|scheduled|queued|due|blocking"
    rf"|in flight|at this time))*(?: (?:for|on|in|from|to close|within) (?:this|the|that)"
    rf" {_SPAN}{_CORE})?$",
    r"(?:当前|目前|暂)?(?:无|没有)(?:了|活动任务|活跃任务|活跃计划|进行中任务|待办)?$",
)
FINISHED = _compile_any(
    rf"\b(?:{_DONE_WORDS}|deployed|verified|validated|resolved|merged|passing|passed|pass|clean|released"
    r"|fixed|successful|discharged|archived?|terminal)\b",
    r"完成|结束|完毕|达成|交付|收口|通过|关闭|上线",
)
ASIDE = _compile_any(
    r"(?:thanks|thank you|谢谢)$",
    r"(?:optional|optionally|possible|potential|future|suggested|nice[- ]to[- ]have|for reference"
    r"|ideas?|feel free|(?:candidate|natural|any) follow-?ups?)\b",
    r"(?:if|should|when|whenever|in case|only if|unless) (?:(?:the )?(?:user|operator|you)"
    r" (?:wants?|asks?|requests?|needs?|wish\w*|would|reports?|finds?|decides?)"
    r"|any|anything|something|new|further|more|additional|other|needed|required|necessary|desired"
    r"|wanted|issues?|bugs?|problems?|requirements?|questions?|scope|there|an?|future|later)\b",
    r"(?:please )?(?:await|awaiting|wait for|waiting for|stand by for|standing by for|ready for)"
    r"(?: (?:the|any|a|further|new|next|more|additional|user|operator|human|your|user's))*"
    r" (?:instructions?|tasks?|requests?|assignments?|requirements?|directives?|input)"
    r"(?: from (?:you|(?:the )?(?:user|operator)))?$",
    r"(?:后续|今后|以后)?(?:如果|如需|如有|若)|可选|未来|潜在|后续可",
    r"(?:等待|等候|静候)[^，。；]{0,6}(?:指示|指令|新任务|需求|任务|安排)",
)
OPEN = _compile_any(
    r"\b(?:next|then|but|however|except|remaining|still|pending|until|once|blocked|blocker|yet|todo"
    r"|tbd|await|awaiting|waiting|wait|continue|start|begin|proceed|move on|resume|let'?s|needs?"
    r"|should|must|will|in progress|almost|partially|mostly|not|now we|now (?:it|that)|other than"
    r"|apart from|before|left|unverified|untested|fails?|failing|failed|verify|monitor|soon|ask"
    r"|broken|breaks?|red|missing|misses|missed|lacks?|incomplete|unfinished|wrong|tomorrow|later"
    r"|approve|approval|review|decide"
    r"|besides|aside from|excluding|save for|minus|exceptions?|to follow|for now"
    r"|assum(?:e|es|ed|ing)|provided|presumably|if|unless|whether"
    r"|(?:phase|milestone|stage|step|sprint|cycle|part|batch|section)s? #?[a-z]?\d+)\b",
    r"\b(?:phase|stage|step|sprint|part|batch|section)(?: \w)? (?:is|was|are|has|complete|done)\b",
    r"(?<![删清移解排消去废])除|除外|[只仅][差剩]",
    r"继续|接下来|然后|开始|下一|剩余|但|不过|除了|尚|还需|还要|还有|还没|未|等待|需要|进入|推进|准备"
    r"|启动|计划|监控|阻塞|待|优先|失败|审批|批准|确认|决定|探索|持续|部分|可以|即可",
)
LEAD = re.compile(r"^(?:(?:now|and|also|please|so|first|finally|just|therefore|thus)\s+)+")
HELD = re.compile(r"^(?:i|we) (?:believe|consider|can confirm)(?: that)?\s+")
VERBS = re.compile(
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
NOUN_FIRST = re.compile(
    r"\S+ (?:is|are|was|were|has|have|passes|passed|pass|succeed\w*|results?|completed?"
    r"|[0-9a-f]{7,40})\b"
)
LIMITED = _compile_any(
    r"\b(?:only|half|some|most|many|few|several|partly|nearly|roughly|hardly|barely|nobody"
    r"|maybe|perhaps|probably|hopefully|supposedly|apparently|unclear"
    r"|no one|never|neither|without(?! (?:any )?(?:errors?|failures?|warnings?|problems?|issues?))"
    r"|(?<!every )(?:one|two|three|four|five|six|seven|eight|nine|ten) (?:out )?of"
    r"|(?:ha(?:ve|s)|is|are|was|were|be|expected|supposed) to|instead)\b",
    r"\b(?!100 ?%)\d+(?:\.\d+)? ?(?:%|percent\b)",
    r"\b(?!(\d+) ?(?:of|out of|/) ?\1\b)\d+ ?(?:of|out of|/) ?\d+\b",
    r"[未没不半仅只由]|部分|大多|多数|一些|交给|转交|几乎",
)
"""Words that limit a reported result, as in "3 of 12 tests pass"."""
NO_DEFECTS = _compile_any(
    r"\b(?:(?:reports?|finds?|found|shows?|with|and) )?"
    r"(?:no|zero|0|without(?: any)?)(?: \w+)? (?:errors?|failures?|warnings?|problems?|issues?"
    r"|regressions?|bugs?|blockers?|conflicts?)"
    r"(?: (?:found|known|reported|remain|remaining|left|open))?\b",
    r"\b(?:0 failed|nothing is (?:missing|broken|wrong|blocked))\b",
    r"\b(?:needs?|requires?) no (?:further|more) (?:work|changes?|action|steps?)\b",
    r"(?:无|没有|零|0 ?个?)(?:任何|已知|遗留)?(?:错误|报错|失败|警告|回归|问题|缺陷)",
)
DEFECT = re.compile(
    r"\b(?:stubs?|placeholders?|skeletons?|drafts?|mock(?:s|ed)?|to-?dos?|fixmes?|workarounds?"
    r"|(?:an?|one|two|three|\d+|the|known|minor|open) (?:errors?|bugs?|crash(?:es)?|failures?"
    r"|warnings?|problems?|issues?|regressions?|gaps?|conflicts?))\b"
    r"|空壳|占位|桩|草稿|报错|错误|缺陷|缺失|缺少"
)
REMOVED = re.compile(
    r"\b(?:fix\w*|resolved?|closed?|removed?|eliminated|handle[sd]?)\b|修复|解决|处理"
)
"""A word that turns a defect into a result, as in "both bugs are fixed"."""
_GOOD = (
    rf"(?:{_DONE_WORDS}|pass(?:es|ed|ing)?|succeed(?:s|ed)?|successful|green|clean|merged|deployed"
    r"|released|published|pushed|committed|tagged|verified|validated|tested|confirmed|checked"
    r"|reviewed|approved|fixed|resolved|updated|documented|written|added|created|archived"
    r"|refactored|migrated|covered|integrated|installed|up[- ]to[- ]date|ready"
    r"|discharged|terminal|available|correct|stable|built|saved|recorded|exists?|in sync"
    r"|live|100 ?%|on (?:the )?(?:main|master)(?: branch)?"
    r"|in an? (?:clean|good|working|stable|final) state"
    r"|unchanged|intact|consistent|accurate|generated|produced"
    r"|configured|converted|translated|moved|renamed|replaced|applied|executed|finali[sz]ed)"
)
"""Predicates that report a good result."""
_WORD = (
    r"(?:(?!(?:is|are|was|were|be|been|has|have|had|does|do|did|can|cannot|could|would|may|might"
    r"|that|which|who|what|where|why|how|no|none|nothing|to|if|for|i|we|you|user|operator|team"
    r"|reviewer|client|customer|colleagues?)\b)\S+)"
)
"""A word in a noun phrase. Verbs, persons and the start of another clause do not match."""
_AUX = (
    r"(?:(?:is|are|was|were|has been|have been|has|have|be|being|now|all|also|already|fully|both"
    r"|successfully|cleanly|still) )*"
)
_TAIL = (
    r"(?: (?:successfully|cleanly|correctly|locally|again|now|here|too|today|end[- ]to[- ]end))*"
    r"(?: (?:in|on|to|with|by|at|from|into|as|after|under|via|against|through|across)"
    rf"(?: {_WORD}){{0,12}})?(?: v?\d[\d.]*)?"
)
_MADE = (
    r"(?:written|generated|made|added|updated|fixed|implemented|wrote|created|tested|verified"
    r"|validated|documented|committed|merged|pushed|refactored|completed|finished|resolved|closed"
    r"|published|released|deployed|confirmed|checked|ran|built|shipped|delivered|covered"
    r"|cleaned up|tidied up)"
)
_DESCRIBES = (
    r"(?:(?:handle|include|contain|explain|describe|reflect)s?|covers? (?:all|every|both|them)"
    r"|supports|provides|documents|implements|matches|meets|satisfies|prints|builds|compiles"
    r"|(?!(?:crash|reject|fail|miss|los|drop|break|ignor|skip|leak|hang|block|delet)\w*)\w+s"
    r" (?:all|every|each|both)|(?:has|have) (?:all|every|(?:\d+ )?(?:tests|docs|documentation)))"
)
_ZH_GOOD = (
    r"(?:完成|结束|完毕|通过|更新|提交|推送|合并|部署|上线|发布|归档|验证|测试|交付|实现|达成|修复|关闭"
    r"|写好|写完|补齐|同步|记录|收口|发送|生成|创建|添加|配置|安装)"
)
RESULTS = _compile_any(
    rf"(?:{_WORD} ){{0,8}}?{_AUX}{_GOOD}{_TAIL}$",
    rf"(?:{_WORD} ){{0,8}}?{_AUX}(?:works?|working|runs)"
    r"(?: (?:as (?:expected|intended|described|planned)|correctly|fine"
    r"|end[- ]to[- ]end|again|now))*$",
    rf"(?:(?:i|we)(?:'ve| have)? )?(?:also |already |successfully )*{_MADE}(?: {_WORD}){{1,12}}$",
    rf"(?:{_WORD} ){{1,6}}?(?:now |also |correctly )*{_DESCRIBES}(?: {_WORD}){{0,12}}$",
    r"(?:the |all )?(?:\w+ )?(?:tests|checks|results) (?:confirm|show|prove) (?:it|this|that)$",
    rf"(?:{_WORD} ){{1,8}}?(?:correctly|properly|as (?:expected|specified|required|intended))$",
    r"(?:(?:the|its|all|my|final|full) )*(?:answers?|results?|report|summary|output|code|files?"
    r"|deliverables?|docs|documentation|changes|work|details|notes) (?:is|are|can be found|lives?)"
    r" (?:saved |stored |written )?(?:in|at|under|on) (?:\S+ ){0,2}"
    r"(?:\S*[./]\S*|folder|directory|branch|main)$",
    r"(?:for (?:details|usage)[, ]+)?see (?:\S+ ?){1,8}$",
    r"(?:the )?(?:final |last )?(?:commit|version|tag|release|branch)?(?: (?:is|was))? ?"
    r"(?:[0-9a-f]{7,40}|v?\d+(?:\.\d+)+)$",
    rf"[^，。；]{{0,24}}?(?:已经|已|均|都|也|全部?|全都|成功|顺利)+{_ZH_GOOD}了?"
    rf"(?:并[已且]?{_ZH_GOOD})*"
    r"(?:测试|验证|验收|审查|检查|[到至于] ?[!-~ ]{0,40}(?:主?分支|仓库|主干)?)?$",
    r"[^，。；]{0,16}100 ?%$",
    r"[^，。；]{1,24}?(?:正常|齐全|完整|无误|可用)$",
    r"(?:一切|全部|准备|均已)?就绪$",
    r"[^，。；]{0,12}(?:保存|写入|存放|位于|记录)[在于到]? ?[!-~]+$",
    r"[^，。；]{0,12}(?:测试|验证|检查|运行)过了$",
    r"[^，。；]{0,24}?(?:测试|验证|检查|验收|审查|构建)(?:通过|完成|成功)了?$",
)
"""A good result, or a description of the product."""
FRAGMENT = re.compile(rf"(?:{_WORD}(?: |$)){{1,5}}$")
"""Part of a list before its verb, such as "the lexer" in "the lexer and the parser pass"."""
CONJUNCTION = re.compile(r" (?:and|&|as well as) ")
STILL = re.compile(r"\bstill (?=pass|green|work)")
LABELLED = re.compile(
    r"\b(?:(?:open|known|remaining|outstanding) )?(?:blockers?|questions?|issues?|risks?|tasks?"
    r"|work|items?|next (?:steps?|actions?)|follow-?ups?|to-?dos?)"
    r"\s*[:：=—–-]\s*(?:none|nothing|n/?a)\b"
    r"|\b(?:final |last )?(?:test )?(?:run|results?|verification|summary)\s*[:：]",
    re.IGNORECASE,
)
"""A label with the value "none", or a label before a result."""
STATEMENT = _compile_any(
    r"\b(?:now|it) (?:has|have|features?|includes?|supports?|provides?|covers?|contains?|reflects?"
    r"|is|are)$",
    r"\b(?:confidence|validating|confirming|verified|verifying|showing|confirm(?:s|ed)?) that$",
    r"\b(?:summary|includes?|included|completed|delivered|implemented|shipped|resolved|achieved)$",
    r"(?:已完成|包括|成果|能够)$",
)
READY = re.compile(
    r"\bready (?:for|to) (?:(?:and|or|user|human|final|production|release|merge|merging|review"
    r"|demonstration|deployment|deploy|handover|handoff|be|used?|shipping|ship|approval)\b[ /,]*)+"
)
