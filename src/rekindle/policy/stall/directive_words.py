r"""English and Chinese words that show what a directive asks for.

The lists contain a few general words for waiting, endless work and finished work. `directive` and
`relay_comparison` decide where a word must appear to count. Latin words are delimited by anything
that is not a letter, because `\b` sees no boundary between Latin letters and Chinese characters.
"""

import re
from functools import lru_cache

_PERSON = (
    r"(?:humans?|founder|boss|owner|operator|maintainers?|customers?|clients?|stakeholders?|admin"
    r"|someone)"
)
_PERSON_ZH = r"(?:人类|人工|用户|老板|创始人|主人|客户|负责人|管理员|领导|boss)"
_DEED = (
    r"(?:must|has to|needs? to|action|execution|approval|decision|direction|sign-?off"
    r"|work|input|is required)"
)
_USERS_DEED = r"user\ (?:action|input|decision|approval)"
_WAITS = re.compile(
    rf"""
    (?<![a-z]) (?:
        wait(?:s|ing)? \ (?:for|on|until|to\ be|mode|period) | ^wait(?:ing)?
      | await(?:s|ing)? (?=\ [a-z])(?!\ in\b)
      | on\ hold | hold(?:ing)? \ until | stand(?:ing)? [ -]?by
      | ^blocked | blocked \ (?:on|by|until) | ask \ the \ user | unanswered | withheld
      | pending \ (?:\w+\ )? (?:approval|review|decision|reply|response)
      | {_PERSON} [^.;,]{{0,24}} (?<![a-z]) {_DEED} | {_PERSON} (?:\ tasks?)? \s? [:：]
      | {_PERSON}-(?:led|only|gated)
      | (?:the\ )? user \ (?:must \ (?!be\ able)|needs?\ to|has\ to) | {_USERS_DEED}
      | (?:requires?|needs?|needed\ from|asks?|from) \ (?:an?\ |the\ )? (?:{_PERSON}|{_USERS_DEED})
      | manual (?:ly)? [^.;,]{{0,30}} required | requires? \ manual
    ) (?![a-z])
    | 等待 | 等候 | 受阻 | 被阻塞 | 待(?:定|决策|确认|回复|批准|审批|审核)
    | (?:需要?|由|请|等) [^，。；]{{0,6}} (?:{_PERSON_ZH}|手动)
    | {_PERSON_ZH} \s? [^，。；]{{0,8}} (?:手动|操作|决策|决定|回复|指示|确认)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WORKS = (
    r"(?:add|build|document|extend|fix|handle|implement|improve|migrate|port|refactor|rename|render"
    r"|replace|rewrite|split|support|translate|write)(?![a-z])|实现|编写|修复|添加|开发"
)
"""What an agent does without anyone else."""
_STARTS_WORK = re.compile(rf"\W*(?:{_WORKS})", re.IGNORECASE)
_PEOPLE = (
    r"(?:humans?|users?|founders?|boss|(?:project\ |product\ )?owners?|operators?|maintainers?"
    r"|customers?|clients?|stakeholders?|admins?|administrators?|someone|persons?|people"
    r"|managers?|reviewers?|sponsors?|@[a-z][\w-]+|cto|ceo|legal)"
)
_GIFT = (
    r"(?:approvals?|credentials?|permissions?|sign-?offs?|go-?ahead|confirmation|decisions?"
    r"|direction|directives?|instructions?|guidance|input|feedback|reply|response|answers?|funding"
    r"|funds|budget|payments?|billing|(?:api[\ -]?)?keys?|tokens?|passwords?|secrets?|log-?ins?"
    r"|access|accounts?|clarification|review)"
)
"""What only a person can give."""
_ACT = (
    r"(?:decides?|approves?|provides?|creates?|chooses?|reviews?|confirms?|grants?|signs?|funds?"
    r"|sets?\ up|suppl(?:y|ies)|answers?|repl(?:y|ies)|responds?|sends?|adds?|runs?|enables?"
    r"|publish(?:es)?|logs?\ in|authori[sz]es?|picks?|selects?|tops?\ up|merges?|execut(?:es?|ion)"
    r"|acts?|intervenes?|unblocks?)"
)
"""What a person does to end a wait."""
_NEEDS_PERSON = re.compile(
    rf"""
    (?<![a-z]) (?:
        {_PEOPLE} \ [^.;,]{{0,24}} (?<![a-z])
          (?:(?:must|should|ha(?:s|ve)\ to|needs?\ to|to|can|may|will) \ (?:first\ )? {_ACT}
          |action|execution|approval|decision|direction|sign-?off|input|is\ required)
      | {_PEOPLE}-(?:led|only|gated|blocked|dependent|required)
      | (?:needs?|requir(?:es?|ing)|needed\ from|asks?|from|by|missing|lacks?|without|for)
          \ (?:the\ |an?\ |your\ |explicit\ |manual\ ){{0,2}} {_PEOPLE} (?:'s)? \ {_GIFT}
      | (?:needs?|requir(?:es?|ing)|missing|lack(?:s|ing)?|insufficient|no)
          \ (?:the\ |an?\ |[a-z-]+\ ){{0,2}} (?:approvals?|credentials?|permissions?|sign-?offs?
          |funding|funds|balance|(?:api|access|secret)\ keys?|api\ tokens?|passwords?|log-?in)
      | (?:user|human|manual|owner) \ (?:action|input|decision|approval|intervention|step
          |verification|execution)
      | action \ (?:needed|required) | (?:needs?|requires?) \ (?:an?\ |the\ )? {_PEOPLE}
      | ask(?:ed|ing|s)? \ the \ {_PEOPLE} | manual(?:ly)? \ [^.;,]{{0,30}} \ required
      | requires? \ manual | provide \ direction
    ) (?![a-z])
    | (?<![a-z]) {_PEOPLE} (?:\ tasks?)? \s? [:：]
    | (?:需要?|由|请|等) [^，。；]{{0,6}} (?:{_PERSON_ZH}|手动)
    | {_PERSON_ZH} \s? [^，。；]{{0,8}} (?:手动|操作|决策|决定|回复|指示|确认|提供)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HOLDS = re.compile(
    rf"""
    (?<![a-z]) (?:
        wait(?:s|ed|ing)? (?!\ ?(?:group|state|list|time|loop|command|animation))
      | await(?:s|ing|ed)?
      | on\ hold | hold(?:ing)?\ (?:until|off|for) | stand(?:ing|s)?[\ -]?by
      | blocked | stuck\ on | unanswered | with(?:held|hold)
      | pending \ (?:[a-z@]+\ ){{0,3}} (?:{_GIFT}|{_ACT}|merge|release)
      | paused? \ (?:until|pending|for) | resumes? \ (?:after|once|when|as\ soon)
      | (?:until|once|unless|when|if|after) \ (?:the\ |an?\ )? {_PEOPLE} \ (?:{_ACT}|ha(?:s|ve))
    ) (?![a-z])
    | (?<![a-z]) blockers? \ ? [:(]
    | 等待 | 等候 | 受阻 | 阻塞 | 待(?:定|决策|确认|回复|批准|审批|审核)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MEANWHILE = re.compile(
    r"(?<![a-z])(?:meanwhile|in the meantime|until then|while (?:we )?(?:a?wait|blocked))(?![a-z])"
    rf"|同时|期间|[.;。；]\s*(?:{_WORKS})",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"""
    (?<![a-z]) (?:
        no \ (?:new|open|further|more|remaining|pending|outstanding|active|other|current)
          \ (?:[a-z]+\ ){0,2} (?:issues?|prs?|pull\ requests?|comments?|tasks?|work|activity
          |actions?|items?|messages?|requests?|directives?|steps?|changes?)
      | nothing \ (?:to\ do|new|left|pending|else|remain(?:s|ing)|further)
      | idle | idling | quiet | no\ (?:action|changes?|work) | none
      | not?\ actionable | all \ (?:[a-z]+\ ){0,2} (?:resolved|closed|done|completed?)
    ) (?![a-z])
    | 无(?:新|待|更多) | 没有(?:新|更多) | 空闲
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LABEL = re.compile(r"^\W*(?:[\w ]{1,20}[:：])?\W*")
_FINISHED = re.compile(
    r"""
    (?<![a-z]) (?:
        (?:tasks?|phase|project|work|goal|mission|objectives?|targets?|implementation|tests
          |migration|[a-z]+ing|milestone|everything|coverage|criteria|scope|all)
          (?![a-z]) [^.;:!?\n]{0,60} (?<![a-z])
          (?:completed?|done|finished|achieved|met|delivered|fulfilled)
      | (?:completed?|done|finished|achieved) (?=\ ?(?:[✓✅!.]|$))
      | fully\ (?:complete|implemented|done)
    ) (?![a-z])
    | 完成
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SECOND = re.compile(
    r"(?:(?<![a-z])(?:or|then)|\+) (?:else )?(?:keep |continue )?a?wait.*"
    r"|while (?:we )?a?wait[^,:]{0,60}"
    r"|(?:或者?|然后|\+)\s*(?:继续)?等待?.*|等待[^，。：]{0,20}期间",
    re.IGNORECASE,
)
"""Pattern for a wait that comes after another request, or that leaves the agent working."""
_GOES_ON = re.compile(
    r"""
    ^ (?:(?:option|priority|step|phase) \s* \w* \W+)?
      (?:continu(?:e|ing)|keep|carry\ on|go\ on|further|more|another|iterat(?:e|ing)
       |pick \ (?:another|the\ next|a\ new)) (?![a-z])
    | (?<![a-z]) (?:keep\ [a-z]+ing|(?:add|build|create|write|find)(?:ing)? \ more) (?![a-z])
    | 继续 | 持续 | 更多 | 不断 | 进一步
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ENDLESS = re.compile(
    r"(?<![a-z])(?:improvements?|optimi[sz]ations?|polish(?:ing)?)(?![a-z])|优化|改进|完善|迭代",
    re.IGNORECASE,
)
_OPTIONAL = re.compile(
    r"^\W*(?:if|optional(?:ly)?|consider|could|possible|potential|maybe|future|later"
    r"|low[ -]priority)(?![a-z])|(?<![a-z])(?:if (?:needed|desired|wanted|required)|optional)"
    r"(?![a-z])|可选",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?<![a-z])(?:status|state|background|context|summary|metrics)(?![a-z])|状态|背景|现状",
    re.IGNORECASE,
)
_UNATTENDED = re.compile(
    r"(?<![a-z])(?:autonomous(?:ly)?|unattended)(?![a-z])|自主|自动执行|可推进", re.IGNORECASE
)
_DONE = re.compile(
    r"(?<![a-z])(?:done|completed?|shipped|finished|closed|succeeded|merged|released|deployed"
    r"|what (?:changed|happened))(?![a-z])|完成|已发布|已上线|已合并",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"(?<![a-z])(?:not|after|when|once|until|remaining|to be|if|next|in progress)(?![a-z])"
    r"|未|待|后|剩余|继续|下一步|持续|进行中|开发中",
    re.IGNORECASE,
)
_TICK = re.compile(r"[✅☑✔]|\[[xX✓✔]\]|~~[^~]+~~")
_SENTENCE = re.compile(r"[.!?;](?=\s)|[。！？；]")
_CLAUSE = re.compile(r"[.,;](?=\s)|[，。；]")

# Cached, because most lines stay the same from one relay to the next.
_cached = lru_cache(maxsize=16_384)


@_cached
def is_wait(text: str) -> bool:
    """Return whether a request waits for a person or an event.

    Only the first request in the first sentence counts.
    """
    if _STARTS_WORK.match(text):
        return False
    return bool(_WAITS.search(_SECOND.sub("", _SENTENCE.split(text, maxsplit=1)[0])))


@_cached
def needs_person(text: str) -> bool:
    """Return whether a text says anywhere that a person must act first."""
    return bool(_NEEDS_PERSON.search(text))


@_cached
def mentions_wait(text: str) -> bool:
    """Return whether a text mentions a wait for a person or an event anywhere."""
    if is_wait(text):
        return True
    first = _SECOND.sub("", text)
    return not _STARTS_WORK.match(text) and (bool(_HOLDS.search(first)) or needs_person(first))


def works_meanwhile(text: str) -> bool:
    """Return whether a request to wait also names work for the time until then."""
    return bool(_MEANWHILE.search(text))


@_cached
def is_idle(text: str) -> bool:
    """Return whether a text reports that there is nothing to do."""
    return bool(_IDLE.search(text))


@_cached
def starts_idle(text: str) -> bool:
    """Return whether a text begins with the report that there is nothing to do."""
    idle = _IDLE.search(_LABEL.sub("", text))
    return idle is not None and idle.start() <= 1


@_cached
def reports_finish(text: str) -> bool:
    """Return whether a text reports that a task, a phase or the whole work is finished."""
    return bool(_FINISHED.search(text))


def is_optional(text: str) -> bool:
    """Return whether a request is only a suggestion."""
    return bool(_OPTIONAL.search(text))


def asks_for_more(text: str) -> bool:
    """Return whether a request asks for endless repetition of the same work."""
    return bool(_GOES_ON.search(text))


def is_endless(heading: str) -> bool:
    """Return whether this heading introduces endless repetition of the same work."""
    return asks_for_more(heading) or bool(_ENDLESS.search(heading))


def is_status_label(label: str) -> bool:
    """Return whether this label introduces a description of the current state, not requests."""
    return bool(_ASIDE.search(label))


def is_unattended(label: str) -> bool:
    """Return whether this label introduces work that the agent can do alone."""
    return bool(_UNATTENDED.search(label))


def is_ticked(text: str) -> bool:
    return bool(_TICK.search(text))


@_cached
def says_done(text: str) -> bool:
    """Return whether a text reports something as done, and not only work that remains."""
    return is_ticked(text) or bool(_DONE.search(text) and not _NOT_DONE.search(text))


def split_clauses(text: str) -> list[str]:
    return _CLAUSE.split(text)
