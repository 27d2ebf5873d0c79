"""Decide whether a relay reports that the work is done.

The documented form is `DONE` as the Next Action. Agents also report it in their own words, in
English and Chinese: "None. The task is complete". `reports_all_done` recognizes both. It splits the
Next Action into clauses and compares each with the tables in `end_phrases`.

A relay reports an end if no clause in its Next Action is open, and the first clause

- matches `ENDS` or `BARE`, or
- matches `NOTHING`, and a later clause or Current Phase matches `FINISHED`, or
- reports a result, and a later clause reports that the task is complete or nothing is left.

If in doubt, the work does not count as done: a finished agent then runs one more cycle, but
stopping too early would leave the work unfinished.
"""

import re
from collections.abc import Iterator

from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.policy.relay.end_phrases import (
    ASIDE,
    BARE,
    CLOSING,
    CONJUNCTION,
    DEFECT,
    ENDS,
    FINISHED,
    FRAGMENT,
    HELD,
    LABEL,
    LABELLED,
    LEAD,
    LIMITED,
    NO_DEFECTS,
    NOTHING,
    NOUN_FIRST,
    OPEN,
    READY,
    REMOVED,
    RESULTS,
    SCOPE,
    STATEMENT,
    STILL,
    UNSCOPED,
    VERBS,
)

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_WRAP = re.compile(r"(?<=[a-z,])\n(?=[a-z])")
_BULLET = r"[ \t]*(?:[-+*•]|\d{1,3}[.)、])"
_ITEM = re.compile(rf"{_BULLET}\s+|[ \t]*\|")
_TICKED = re.compile(rf"(?:{_BULLET})\s*(?:\[[xX]\]|✅|☑|✔|~~)")
_UNTICKED = re.compile(rf"{_BULLET}\s*\[ \]")
_LISTED = re.compile(
    r"\b((?:the|its|all|both|our) [\w.-]+(?: [\w.-]+)?),"
    r"(?= (?:the|its|all|both|our) [\w.-]+(?: [\w.-]+)? and )",
    re.IGNORECASE,
)
"""Matches the first noun in a list, with its comma."""
_COMMAND = re.compile(r"`[^`\n ]+ [^`\n]+`")
"""Matches a command in backquotes, which always counts as a noun."""
_BRACKETED = re.compile(r"[(（]([^()（）]*)[)）](?=\s*(?:[.。!！,，;；:：—–-]|$))")
_MARKS = re.compile(r"[*_`#>~\[\]()|\"“”「」]|[^\w\s,.;:!?'/%+&，。；：！？、—–-]")
_REASON = re.compile(r"(?:and|because|since)\s+")
_CLAUSES = re.compile(
    r"(?<=[.!?])\s+|[.!?]$|[;,:](?=\s|$)|(?<=[一-鿿])[;,:.!?]|\s[—–-]+\s|[—–]{1,2}|[。；！？，：]"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
_STRUCK = re.compile(r"~~.*?~~")
_EDGES = " .,;:!?-—–、/+&"


def reports_all_done(relay: Relay) -> bool:
    """Return whether a relay reports that all the work is done."""
    directive = relay.raw_next_action
    clauses = list(_split_clauses(directive))
    if not clauses or any(map(_UNTICKED.match, directive.splitlines())):
        return False
    if any(map(_is_open, clauses)) or _asks_for_end(directive):
        return False
    first = clauses[0]
    if _find_end(first) or BARE.match(first):
        return True
    phase = list(_split_clauses(relay.content(RelayField.CURRENT_PHASE) or ""))[:1]
    if NOTHING.match(first):
        if any(map(_find_end, clauses[1:])):
            return True
        finished = [clause for clause in (*clauses, *phase) if FINISHED.search(clause)]
        return bool(finished) and not any(map(SCOPE.search, finished))
    return _closes_with_end(clauses)


def _asks_for_end(directive: str) -> bool:
    """Return whether a text only asks whether the work is done, as in "Done?"."""
    questions = [text for text in _SENTENCE.findall(directive) if text.endswith(("?", "？"))]
    clauses = [clause for question in questions for clause in _split_clauses(question)]
    return any(_find_end(clause) or BARE.match(clause) for clause in clauses)


def _closes_with_end(clauses: list[str]) -> bool:
    """Return whether the text reports results and then the end of all the work."""
    for clause in clauses:
        if CLOSING.match(clause) and _find_end(clause):
            return True
        if SCOPE.search(clause) or not _reports_result(clause):
            return False
    return False


def _find_end(clause: str) -> re.Match[str] | None:
    """Return the words that report the end of all the work, or None if there are none."""
    end = ENDS.match(clause)
    return None if end is None or SCOPE.search(UNSCOPED.sub("", end[0])) else end


def _split_clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a text without markdown.

    Ticked items are left out. So are items below a line that calls them optional or introduces
    facts.
    """
    is_aside = False
    for line in _WRAP.sub(" ", _FENCE.sub("", text)).splitlines():
        is_item = bool(_ITEM.match(line))
        if _TICKED.match(line) or (is_item and is_aside):
            continue
        bare = _STRUCK.sub(" ", _ITEM.sub("", line, count=1) if is_item else line)
        bare = LABELLED.sub(". ", bare)
        bare = _LISTED.sub(r"\1 and", _BRACKETED.sub(r", \1", _COMMAND.sub(" code ", bare)))
        bare = " ".join(_MARKS.sub(" ", bare).casefold().split()).strip(_EDGES)
        bare = bare[label.end() :] if (label := LABEL.match(bare)) else bare
        clauses = [part for part in (part.strip(_EDGES) for part in _CLAUSES.split(bare)) if part]
        if not clauses:
            continue
        is_aside = not is_item and bool(STATEMENT.search(clauses[-1]))
        for clause in clauses:
            if ASIDE.match(clause):
                is_aside = True
                break  # the rest of the line belongs to the condition
            yield HELD.sub("", STILL.sub("", READY.sub("ready ", clause)).strip())


def _is_open(clause: str) -> bool:
    """Return whether a clause asks for more work, or reports neither an end nor a result."""
    end = _find_end(clause) or BARE.match(clause) or NOTHING.match(clause)
    if not end:
        return not _reports_result(clause)
    rest = clause[end.end() :].strip(_EDGES)
    reason = _REASON.match(rest)
    return not _reports_result(rest[reason.end() :]) if reason else bool(OPEN.search(rest))


def _reports_result(clause: str) -> bool:
    """Return whether a clause only reports good results or describes the product."""
    clause = LEAD.sub("", NO_DEFECTS.sub("green", clause).strip(_EDGES), count=1)
    is_verb = bool(VERBS.match(clause)) and not NOUN_FIRST.match(clause)
    is_defect = bool(DEFECT.search(clause)) and not REMOVED.search(clause)
    if is_verb or is_defect or OPEN.search(clause) or LIMITED.search(clause):
        return False
    if STATEMENT.search(clause):
        return True
    *parts, last = CONJUNCTION.split(clause)
    if not (_find_end(last) or RESULTS.match(last)):
        return False
    return all(_find_end(part) or RESULTS.match(part) or FRAGMENT.match(part) for part in parts)
