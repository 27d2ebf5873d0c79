"""Classify the last message of any program.

All harnesses use this classifier for messages that are not special to their own CLI. It has three
steps, and the first match counts:

1. Sentences that people read, such as "Rate limit exceeded". Each must start a sentence and, unless
   the text starts as an error, end a clause.
2. Codes that programs read, such as `"type": "rate_limit_error"`. Each must be the value of a
   label, or the class of an exception.
3. An HTTP status in a text that starts as an error.

A program's own work may be about limits and logins. Source code, the output of tests and reports
of work, such as "Login required page added", therefore explain nothing, and a code or status that
is merely mentioned does not match.
"""

import re

from rekindle.harnesses.exit_verdicts import (
    ACCESS,
    FULL,
    LIMIT,
    LOGIN,
    NETWORK,
    OUTAGE,
    SOCKETS,
    UNPAID,
    WITHHELD,
    ExitVerdict,
    VerdictSentences,
    match_sentence,
    match_status,
    normalize_sentence,
)

# All repetitions below are bounded, so that even malicious text is matched in linear time.
_ESCAPES = re.compile(r"\\+(?:[nrt](?![a-z])|u[0-9a-f]{4})?", re.IGNORECASE)
_BEGINS = r"(?:^\W*+|(?:[:;.!()\]·∙⎿⚡–] ?|\b[45]\d\d |- )[\"\[({]{0,3}|[\"'] ?: ?[\"'\[({]{0,3})"
"""Start of a sentence: at the start of the text, or after punctuation, a status or a bracket.

The match does not backtrack before the first word. Otherwise, with thousands of brackets, each
could belong to either repetition, and matching would take quadratic time.
"""
_ENDS = (
    r"(?=$|\W{0,3}$| ?[.,:;!|·∙–()\"'}\]/-]"
    r"| (?:for|on|and|by|your|please|resets?|try|retry\w*|while|provided|because|that|of|before"
    r"|from|set|occurred)\b)"
)
"""End of a clause. In "rate limit exceeded errors", the words are about something else."""
_API = r"(?:the |this |selected )?(?:model|server|service|api|engine|system)"
_ABOUT = (
    r"(?:(?!disk|storage|inode|memory|heap|cpu|test|handl|mock|when|if\b|add\b|fix)[\w.'-]{1,30} )"
)
"""One word before the name of a limit, unless the words are about another limit or about code."""
_WINDOW = (
    r"(?:usage|rate|session|weekly|daily|monthly|hourly|[\w-]{0,9}hour|minute|request|token|message"
    r"|credit|plan|account)s?"
)
_IS = r"(?:(?:has|have|is|was|been|will|be) ){0,3}"
_AFTER = r"(?: after [\w ]{1,30})?"
_SPENT = r"(?:reached|exceeded|exhausted|hit|used up|depleted|spent)\b"
_YOU_SPENT = (
    r"(?:sorry, )?you(?: \([^)]{1,40}\)|r [\w ]{1,20})?(?:'ve| have| has)?"
    r" (?:hit|exceeded|reached|exhausted|used(?: up)?) (?:an?|your|the|all)"
    r"(?: [\w.'()/-]{1,40}){0,5}? (?:limits?|quota|allowance|capacity|usage)\b(?! of \d)"
)
_TOO_LONG = (
    r"(?:your |the )?(?:input|prompt|request)\b.{0,60}\bexceed(?:s|ed)? (?:the |model ){0,2}"
    r"(?:context|token limit|maximum (?:context|number of tokens))"
)
_EXCEEDS = (
    r"(?:this |your )?requests?\b[^.]{0,120}\b(?:would exceed|ha(?:s|ve) exceeded)\b"
    r"[^.]{0,60} (?:rate|usage|token|request|quota) ?limits?"
)
_EXPIRED = (
    r"(?:your |the )?(?:\w{1,30} ){0,2}(?:token|session)\b[^.]{0,60}\b"
    r"(?:expired|revoked|could not be refreshed)"
)

_SENTENCES: VerdictSentences = tuple(
    (verdict, f"{_BEGINS}(?:{sentence})")
    for verdict, sentence in (
        (WITHHELD, r"[\w ]{0,60}: incomplete response returned, reason: content_filter"),
        (FULL, r"prompt is too long|request too large(?= for\b)"),
        (FULL, r"this model's maximum context length(?: is \d{1,9} tokens)?"),
        (FULL, rf"{_TOO_LONG}|input length .{{0,40}}exceed context limit"),
        (FULL, r"(?:\w{1,30} )?ran out of room(?: in the model's context window)?"),
        (
            OUTAGE,
            rf"{_API} (?:is|may be) (?:\w{{1,20}} )?(?:overloaded|at capacity|unavailable)",
        ),
        (OUTAGE, r"(?:repeated 5\d\d )?overloaded(?:_error)?(?: errors)?(?=$|[.,;:!\"'])"),
        (
            OUTAGE,
            rf"(?:(?:we're|we are|{_API} is) )?(?:currently )?experiencing high (?:demand|tr)",
        ),
        (OUTAGE, r"internal server error|(?:service|temporarily) (?:temporarily )?unavailable"),
        (OUTAGE, r"no capacity available|bad gateway|gateway time-?out|failed to get response"),
        (UNPAID, r"you have no quota|payment required|usage is paused"),
        (UNPAID, r"(?:your )?credit balance(?: is)?(?: too low)?"),
        (UNPAID, r"insufficient (?:credits?|balance|funds)"),
        (UNPAID, r"(?:this request requires )?more credits|(?:\w{1,30} )?credits are depleted"),
        (
            UNPAID,
            r"you(?:'re| are|r [\w ]{1,20}is) out of (?:extra )?(?:usage credits|usage|credits?)",
        ),
        (UNPAID, r"you(?:'ve)? hit your (?:spend cap|team's shared budget|extra usage spend)"),
        (UNPAID, r"your [\w' ]{0,30}(?:limit is set to \$0|usage credit cap(?: is reached)?)"),
        (UNPAID, r"your [\w' ]{0,30}usage allocation(?: has been disabled)?"),
        (UNPAID, r"your [\w -]{1,60} has (?:either )?used all available credits(?: or more)?"),
        (UNPAID, r"exceededbudget|to use codex with your chatgpt plan"),
        (LIMIT, rf"{_ABOUT}{{0,4}}?{_WINDOW} limits? {_IS}{_SPENT}{_ENDS}"),
        (LIMIT, rf"{_ABOUT}{{0,4}}?(?:quota|allowance|usage) {_IS}{_SPENT}{_ENDS}"),
        (LIMIT, rf"your [\w ]{{0,20}}(?:quota|limits?) {_IS}(?:refreshed|resets?\b{_AFTER})"),
        (LIMIT, rf"{_YOU_SPENT}|{_EXCEEDS}|[\w –]{{0,40}}100% used, resets(?: [\w ]{{1,30}})?"),
        (LIMIT, r"(?:sorry, )?you(?: have been| are|'re) (?:rate[ -]limited|throttled)"),
        (LIMIT, r"(?:sorry, )?(?:your |the )?request was (?:rate[ -]limited|throttled)"),
        (LIMIT, rf"rate[ -]limited{_ENDS}|(?:we're receiving )?too many (?:requests|tokens)\b"),
        (LIMIT, r"(?:your )?request rate is too high"),
        (LIMIT, r"possible quota limitations?(?: in place or slow response times detected)?"),
        (LIMIT, r"to increase your limit|resource (?:has been )?exhausted"),
        (LIMIT, r"exceeded (?:\w{1,30} ){0,5}(?:rate|usage|token|request|quota) ?limit"),
        (LIMIT, r"maximum [\w. ]{1,100} reached for this (?:month|week|day|hour)"),
        (LIMIT, r"retrying in ~?\d{1,4} ?[hdw]"),
        (LIMIT, r"(?:você|seu|tu)\b[\w ]{0,20} l[ií]mite de (?:uso|mensagens)(?: [\w ]{1,60})?"),
        (ACCESS, r"(?:this|your) organization has (?:been )?disabled(?: \w{1,20}){0,4}?"),
        (LOGIN, r"(?:you are |you're )?not (?:logged|signed) in|unauthorized(?=$|[.,;:!\"'])"),
        (LOGIN, r"invalid (?:(?:x-)?api.key|authentication|access token)|oauth (?:token|error)"),
        (LOGIN, r"(?:your |the )?api key (?:is )?(?:not valid|invalid|expired|missing)"),
        (LOGIN, rf"{_EXPIRED}|failed to (?:authenticate|refresh token)"),
        (LOGIN, r"(?:[\w ]{0,20} )?login (?:expired|required|reached)"),
        (LOGIN, r"please (?:run /login|(?:log out and )?sign in|log ?in\b|re-?authenticate)"),
        (LOGIN, r"please set an auth(?: method in)?"),
        (LOGIN, r"(?:opening )?authentication (?:failed|cancelled|page(?: in)?|type)"),
        (
            LOGIN,
            r"the enforced authentication type(?: is)?|(?:cached )?credentials are (?:not val|exp)",
        ),
    )
)
_LABEL = r"[\"']?(?:type|code|status|reason|error|name|error_code)[\"']? ?[:=]? ?[\"'(]?"
_CLASS = rf"{_BEGINS}(?:\d{{1,2}} )?(?:[a-z_]{{1,40}}\.){{0,5}}"
_CODES: VerdictSentences = tuple(
    (verdict, rf"{_CLASS}(?:{code})\w{{0,20}}(?:: \S| \(|\)|\W{{0,3}}$)|(?:{_LABEL}|\()(?:{code})")
    for verdict, code in (
        (FULL, r"context_length_exceeded"),
        (OUTAGE, r"model_capacity_exhausted|overloaded|server_is_overloaded|overloadederror"),
        (UNPAID, r"billing_disabled|insufficient_credits|billing_\w{1,20}_error"),
        (
            LIMIT,
            r"resource_exhausted|(?:quota|limit|request)\w{0,20}_exceeded|quota_exhausted|insufficient_quota",
        ),
        (LIMIT, r"usage_limit_reached|\w{0,20}usagelimit\w{0,12}|throttl(?:ing|ed)\w{0,12}"),
        (LIMIT, r"\w{0,30}rate_?limit(?:ed|_\w{1,30}|error|exceeded\w{0,9})|too_?many_?requests"),
        (LOGIN, r"authentication_?error|expired_?token(?:_?exception)?|invalid_grant"),
    )
)
_DETAILS: VerdictSentences = (
    (LIMIT, r"[\"']?(?:quotaid|quotametric|retrydelay)[\"']? ?:"),
    (LIMIT, r"\"rate_limit_info\".{0,20}\"status\" ?: ?\"rejected\""),
)
_UNREACHED: VerdictSentences = (
    (NETWORK, rf"{_BEGINS}(?:connection (?:error|failed|refused|reset)|request timed out)"),
    (
        NETWORK,
        rf"{_BEGINS}(?:fetch failed|network error|unable to connect to(?: api)?|socket hang up)",
    ),
    (
        NETWORK,
        rf"{_BEGINS}(?:stream disconnected|error sending request|reconnecting\.\.\.(?: \d/\d)?)",
    ),
    (NETWORK, rf"{_BEGINS}timeout waiting for child process(?: to exit)?"),
    (NETWORK, rf"{_BEGINS}failed to establish a new conn"),
)
"""Sentences that may be around another error, and therefore count last."""
_SOCKET_ERRORS: VerdictSentences = (
    (
        NETWORK,
        rf"{_CLASS}(?:(?:api|new)?connect(?:ion)?error|(?:api|read|connect)timeout\w{{0,5}}): ",
    ),
    (NETWORK, SOCKETS),
)
_CLAUSES, _UNREACHED_CLAUSES = (
    tuple((verdict, rf"{sentence}\w{{0,20}}{_ENDS}") for verdict, sentence in sentences)
    for sentences in (_SENTENCES, _UNREACHED)
)
"""Sentences that end a clause. In "login required page added", the words are about a page."""
_RESETS = re.compile(r"\bresets?\b|\btry again (?:in|at)\b", re.IGNORECASE)

_OF_WORK = re.compile(
    r"\bassert(?:ion|[_(.])|\bexpected:|\bexpected\b.{1,80}\b(?:got|to|received|actual|but)\b|[!=]=|›|\b(?:Key|Name|Import|Attribute|ModuleNotFound|Reference)Error\b"
    r"|^\W*(?:(?:FAILED|ERROR) \S{1,200}(?:::|\.\w{1,4}\b)|--- FAIL"
    r"|not ok \d|test \S{1,80} \.\.\.)"
    r"|^(?:[+>-] ?|\W{0,4}\d{1,6}[:|] )?\s*(?:except|class|raise|throw|catch|if|elif|import|from"
    r"|def|return|const|let|var|fn|func|function|async|await|case|it\(|test\(|describe\(|#|//|/\*)(?=\W)",
    re.IGNORECASE,
)
"""Pattern for source code and failed tests, whose texts are about the code."""
_REPORTED_WORK = re.compile(
    r"\b(?:added|implemented|documented|refactored|cover(?:ed|s)|handle[ds]|fixed|tested|updated"
    r"|written|moved|renamed|done)\b",
    re.IGNORECASE,
)
"""Words for work on code, which count unless the text starts as an error."""
_LOOPBACK = re.compile(
    r"(?<![\w.:])(127(\.\d{1,3}){3}|localhost|\[?::1\]?)(?![\w.])", re.IGNORECASE
)
"""Address on this host. If a service there fails, the API is not the cause."""
_LED = re.compile(
    r"\W*(?:[^\s:]{1,60} ){0,5}?[\w.\[]{0,60}(?:error|exception|fail(?:ed|ure)|fatal|status)\b"
    r"(?=$|[^\w ]| [^\w ]| (?:code|status|from|with|occurred|calling|while|in)\b| \d)",
    re.IGNORECASE,
)
"""Start of a text that reports an error."""
_COUNTED = r" (?:of|more|other|ms|(?-i:(?!status )[a-z]{3,16}s)|\w{1,16} (?:failed|passed|found))\b"
"""What follows a number that counts something."""
_LABELED_STATUS = re.compile(
    r"(?:\bstatus(?:[ _]?code)?|\bcode|\bhttp|error|rejected)[\"')]{0,2}[ :=(]{1,4}[\"'(]?"
    rf"([45]\d\d)(?![\w.]|[:,-]\d|{_COUNTED})",
    re.IGNORECASE,
)
_FIRST_STATUS = re.compile(
    rf"\W*(?:error:? )?(?:http |status )?([45]\d\d)(?::| \{{|(?-i:(?= [\"'A-Z])))(?!{_COUNTED})",
    re.IGNORECASE,
)
_TOO_MANY = re.compile(rf"(?<![\w.:/#$@,'\"-])(?<!line )(429)(?!\w|%|[.,:/-]\d|{_COUNTED})")
"""The status 429 where it is neither a line, a count, an amount nor part of a path."""


def find_verdict(
    text: str, status: int | None = None, *, is_error: bool = False
) -> ExitVerdict | None:
    """Return the verdict for a program's last message, or None if it explains nothing.

    `is_error` is true if the program itself reported the text as its error.
    """
    words = normalize_sentence(_ESCAPES.sub(" ", text))
    if not is_error and _OF_WORK.search(words):
        return match_status(status)
    is_led = is_error or bool(_LED.match(words))
    if not is_led and _REPORTED_WORK.search(words):
        return match_status(status)
    verdict = (
        match_sentence(words, _SENTENCES if is_led else _CLAUSES)
        or match_sentence(words, _CODES)
        or match_sentence(words, _DETAILS)
        or match_status(status or _find_status(words, is_led=is_led))
        or match_sentence(words, _UNREACHED if is_led else _UNREACHED_CLAUSES)
        or match_sentence(words, _SOCKET_ERRORS)
    )
    if verdict in {NETWORK, OUTAGE} and not is_error and _LOOPBACK.search(words):
        return None
    # A person must pay, unless the message says that the limit resets.
    return LIMIT if verdict == UNPAID and _RESETS.search(words) else verdict


def starts_as_error(text: str) -> bool:
    """Return whether a line of ordinary output starts as an error or with a known sentence."""
    words = normalize_sentence(_ESCAPES.sub(" ", text))
    return bool(
        _LED.match(words)
        or _FIRST_STATUS.match(words)
        or words.startswith("{")
        or any(
            re.match(sentence, words, re.IGNORECASE)
            for _, sentence in (*_CLAUSES, *_CODES, *_UNREACHED_CLAUSES, *_SOCKET_ERRORS)
        )
    )


def _find_status(words: str, *, is_led: bool) -> int | None:
    if first := _FIRST_STATUS.match(words):
        return int(first[1])
    if not is_led:
        return None
    found = _LABELED_STATUS.search(words) or _TOO_MANY.search(words)
    return int(found[1]) if found else None
