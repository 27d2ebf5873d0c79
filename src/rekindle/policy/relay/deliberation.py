"""Find options, winners and doubts in a relay.

They are recognized in English and Chinese prose by a line's position and first words. Future work
does not count: a Next Action that asks for a choice has not made one.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats import outline
from rekindle.policy.settings import runtime_settings
from rekindle.policy.stall import directive_words
from rekindle.policy.text.likeness import measure_likeness

_NUMBERED = re.compile(r"( {0,8}|\t)(?:\d{1,3}(?:[.)]\s+|、\s*))(\S.*)")
_MARK = re.compile(r"[\s>]*(?:(?:[-+*•]|\d{1,3}[.)、])\s*(?=\D))?(?:\[[ xX✓✔]\]\s*)?")
_DRESS = re.compile(r"[*_`~#|]+|[^\w\s.,:;!?/()\-+&%'\"“”，。：；！？（）、·]")
_OPTIONS = re.compile(
    r"(?<![a-z])(?:options?|alternatives?|candidates?|ideas?|rank(?:ed|ing)|shortlist|contenders?"
    r"|approaches|proposals|possibilities|choices|ways to)(?![a-z])"
    r"|选项|方案|候选|备选|思路|排名|点子|做法|途径",
    re.IGNORECASE,
)
_IS_OPTION = re.compile(
    r"(?:option|alternative|candidate|idea|plan)\s*[a-z0-9]{0,2}\s*[:.)—–-]"
    r"|(?:方案|选项|候选|备选|思路)\s*[a-z0-9一二三四五六甲乙丙丁]{0,2}\s*[:：.）—–-]",
    re.IGNORECASE,
)
_RANKS_NOTHING = (
    RelayField.WHAT_WE_DID,
    RelayField.KEY_DECISIONS,
    RelayField.FAILED_APPROACHES,
    RelayField.METRICS,
    RelayField.ACTIVE_PROJECTS,
)
_CHOOSES_NOTHING = (
    RelayField.NEXT_ACTION,
    RelayField.OPEN_QUESTIONS,
    RelayField.METRICS,
    RelayField.FAILED_APPROACHES,
)
_WINNER = re.compile(
    r"(?:the\s+)?(?:winner|winning (?:option|idea)|chosen(?: (?:option|one|approach))?"
    r"|selected(?: option)?|(?:final|our) (?:choice|pick|decision)|decision)\b"
    r"(?:\s*\([^)]*\))?(?:\s*[:：—–]\s*|\s+(?:is|-)\s+|\s*$)(.*)"
    r"|(?:胜出(?:者|方案)?|选定(?:方案)?|最终(?:方案|选择|决定)|优胜(?:方案|者)?|赢家|决定)"
    r"(?:\s*[:：—–]\s*|是|为|\s*$)(.*)",
    re.IGNORECASE,
)
_CHOSE = re.compile(
    r"(?:^|(?<![a-z])(?:we|i|and|have|team)\s+)(?:have\s+)?"
    r"(?:chose|picked|selected|settled on|opted for|committed to|went with|(?:are )?going with"
    r"|decided (?:on|for|to (?:use|build|ship|go with)))\s+(.+)"
    r"|(?<![a-z])we (?:choose|pick|select|go with)\s+(.+)"
    r"|^(.{2,80}?)\s+(?:wins|won|is the winner|(?:is|was) (?:chosen|selected|picked))(?![a-z])"
    r"|(?:^|我们|最终|，)(?:选定|选择了|敲定|采纳|决定(?:采用|选择|使用|先?做|用))了?\s*(.+)"
    r"|^(.{1,40}?)(?:胜出|获胜|被选中)",
    re.IGNORECASE,
)
_RATHER = re.compile(
    r"^(.{1,80}?)(?:\s+(?:over|instead of|rather than)\s+|优于|而非|而不是)", re.IGNORECASE
)
_OPEN = re.compile(
    r"(?<![a-z])(?:not|n't|never|no|none|nothing|neither|before|until|if|once|whether|should|could"
    r"|would|to be|undecided|later|yet|pending|tbd)(?![a-z])|未|没有|尚|是否|如果|待|暂",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\s(?:or|vs\.?|versus)\s|或者?|还是", re.IGNORECASE)
_SUBJECT_ENDS = re.compile(
    r"\s*[,:;(（，：；。]|\.(?:\s|$)|\s[—–-]+\s|\s(?:because|since|over|as|for|due|instead|rather)\s"
    r"|因为|由于|优于|而非|而不是",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"(?<![a-z])(?:pre-?\s?mortem|(?:what )?(?:could|can|might|may) (?:go wrong|fail|break|kill)"
    r"|failure modes?|(?:if|when) (?:it|this|that) (?:fails|failed)|how (?:it|this) fails"
    r"|(?:main|biggest|top|key|largest) (?:risks?|dangers?|threats?)|risks?(?=\s*[:：—–])"
    r"|worst case|would kill)(?![a-z])"
    r"|事前验尸|预先验尸|预演失败|失败预演|可能(?:会)?(?:失败|出错|出问题)|失败(?:的)?(?:原因|场景|模式|方式)"
    r"|(?:主要|最大)?风险(?=\s*[:：是为—])|(?:主要|最大)风险|最坏(?:的)?情况|哪里(?:会|可能)出错",
    re.IGNORECASE,
)
_NO_GO = re.compile(
    r"(?<![a-z/])(?<!go or )no-?\s?go(?![a-z])"
    r"|(?<![a-z])(?:decided against|rejected (?:all|every|both)|none of (?:the|these|them)"
    r"(?: options| ideas| candidates)? (?:is|are) worth"
    r"|(?:abandon(?:ed|ing)?|dropp?(?:ed|ing)?|kill(?:ed|ing)?) (?:the|this) (?:idea|topic|project|"
    r"direction|option))(?![a-z])"
    r"|决定不做|不予推进|全部否决|予以否决|放弃(?:该|此|这个|这一)(?:方案|方向|项目|想法|课题)"
    r"|都不(?:采用|可行|值得)",
    re.IGNORECASE,
)
_GO_OR_NOT = re.compile(r"(?<![a-z])go\s*(?:/|or|vs\.?)\s*no-?\s?go", re.IGNORECASE)
_LATER = re.compile(r"\s*(?:yet|pending|tbd|to do|to follow|decision|待|尚)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:[^.!?;。！？；]|[.!?;](?!\s|$))+[.!?;。！？；]*")
_ASKS = ("?", "？")


class ProseLine(msgspec.Struct, frozen=True):
    """A line of prose, with its field and heading."""

    text: str
    """The line's original text."""
    owner: RelayField | None
    title: str
    """Title of the nearest heading above the line."""

    @property
    def bare(self) -> str:
        """Return the line's text without list marks, emphasis and emoji."""
        return _strip_marks(self.text)


_NOTHING = ProseLine("", None, "")


def find_options(relay: Relay, before: Relay | None = None) -> tuple[str, ...]:
    """Return the longest numbered list of options, ignoring lists of steps and reports.

    A list without a label counts only if it is not in the previous relay, because rules and plans
    are carried over from cycle to cycle.
    """
    old_lines = _list_known_lines(before)
    return max(_find_ranked_lists(_read_prose_lines(relay), old_lines), key=len, default=())


def find_option_lists(relay: Relay) -> tuple[tuple[str, ...], ...]:
    """Return all lists that are labelled as options."""
    lines = _read_prose_lines(relay)
    old_lines = frozenset(line.bare for line in lines)  # only labelled lists count
    return tuple(options for options in _find_ranked_lists(lines, old_lines) if options)


def find_winners(relay: Relay, before: Relay | None = None) -> tuple[str, ...]:
    """Return the chosen options, without duplicates. "A or B" counts as two options.

    If a line is labelled as the winner, only labelled lines count. Decisions accumulate in a relay,
    so if there are several winners, only those that are not in the previous relay count.
    """
    lines = _read_prose_lines(relay)
    winners = _deduplicate_texts(_find_labelled_winners(lines)) or _deduplicate_texts(
        _find_stated_winners(lines)
    )
    if len(winners) > 1 and (old_lines := _list_known_lines(before)):
        new = [line for line in lines if line.bare not in old_lines]
        winners = (
            _deduplicate_texts(_find_labelled_winners(new))
            or _deduplicate_texts(_find_stated_winners(new))
            or winners
        )
    return tuple(winners)


def names_doubts(relay: Relay) -> bool:
    """Return whether a relay says what could go wrong."""
    lines = [line for line in _read_prose_lines(relay) if line.owner is not RelayField.NEXT_ACTION]
    return any(
        _explains_failure(line, below) for line, below in pairwise([*lines, _NOTHING])
    ) or any(_WRONG.search(line.title) and _is_statement(line.bare) for line in lines)


def rejects_topic(relay: Relay, before: Relay | None = None) -> bool:
    """Return whether a new line in the relay rejects the topic."""
    old_lines = _list_known_lines(before)
    return any(
        _rejects_topic(_GO_OR_NOT.sub("", sentence))
        for line in _read_prose_lines(relay)
        if line.owner not in {RelayField.NEXT_ACTION, RelayField.OPEN_QUESTIONS}
        and line.bare not in old_lines
        for sentence in _SENTENCE.findall(line.bare)
    )


def _rejects_topic(sentence: str) -> bool:
    match = _NO_GO.search(sentence)
    if not match or sentence.rstrip().endswith(_ASKS):
        return False
    return not _is_open(sentence[: match.start()]) and not _LATER.match(sentence, match.end())


def _list_known_lines(before: Relay | None) -> frozenset[str]:
    return frozenset(line.bare for line in _read_prose_lines(before)) if before else frozenset()


def _read_prose_lines(relay: Relay) -> list[ProseLine]:
    parsed = relay.outline
    lines = [ProseLine(text, None, "") for text in _split_prose(parsed.head)]
    for section, owner in zip(parsed.sections, relay.owners, strict=True):
        # A heading may contain the whole statement: `### Winner: flat price`.
        if relays.match_field(section.title) is None:
            lines.append(ProseLine(section.title, owner, ""))
        lines += [ProseLine(text, owner, section.title) for text in _split_prose(section.body)]
    return lines


def _split_prose(text: str) -> Iterator[str]:
    return (
        line.rstrip() for line, is_prose in outline.mark_prose(text) if is_prose and line.strip()
    )


def _find_ranked_lists(
    lines: list[ProseLine], old_lines: frozenset[str]
) -> Iterator[tuple[str, ...]]:
    """Yield every numbered list that ranks options."""
    label = ""
    items: list[ProseLine] = []
    for line in [*lines, _NOTHING]:
        item = _NUMBERED.match(line.text)
        if item and (not items or line.title == items[0].title):
            items.append(line)
        elif items and line.text[:1] in {" ", "\t"} and line.title == items[0].title:
            continue  # details of the option above them
        else:
            yield _read_options(items, label, old_lines)
            items = [line] if item else []
            label = label if item else line.text
    yield _read_options(items, label, old_lines)


def _read_options(items: list[ProseLine], label: str, old_lines: frozenset[str]) -> tuple[str, ...]:
    texts = [_strip_marks(item.text) for item in items]
    texts = [text for text in dict.fromkeys(texts) if not relays.is_placeholder(text)]
    if not texts:
        return ()
    owner, title = items[0].owner, items[0].title
    is_labelled = (
        _OPTIONS.search(label)
        or (_OPTIONS.search(title) and relays.match_field(title) is None)
        or sum(bool(_IS_OPTION.match(text)) for text in texts) > 1
    )
    is_question = any(text.endswith(_ASKS) for text in texts)
    is_steps = owner is RelayField.NEXT_ACTION or owner in _RANKS_NOTHING or is_question
    is_report = all(directive_words.is_ticked(item.text) for item in items)
    is_new = old_lines.isdisjoint(texts)
    return tuple(texts) if is_labelled or (is_new and not is_steps and not is_report) else ()


def _find_labelled_winners(lines: list[ProseLine]) -> Iterator[str]:
    """Yield the text after `Winner:`, or below a heading with that label."""
    for place, line in enumerate(lines):
        if line.owner in {RelayField.NEXT_ACTION, RelayField.OPEN_QUESTIONS}:
            continue
        match = _WINNER.match(line.bare)
        if not match:
            continue
        text = next(filter(None, match.groups()), "")
        below = lines[place + 1 : place + 2]
        if not text and below and (line.title != below[0].title or line.bare.endswith((":", "："))):
            text = below[0].bare
        if text and not relays.is_placeholder(text) and not _is_open(_find_subject(text)):
            yield _find_subject(text)


def _find_stated_winners(lines: list[ProseLine]) -> Iterator[str]:
    for line in lines:
        if line.owner in _CHOOSES_NOTHING:
            continue
        for sentence in _SENTENCE.findall(line.bare):
            match = _CHOSE.search(sentence.strip())
            if not match and line.owner is RelayField.KEY_DECISIONS:
                match = _RATHER.search(sentence.strip())
            if match and not sentence.rstrip().endswith(_ASKS):
                subject = _find_subject(next(filter(None, match.groups())))
                # A negation after the subject is part of the reason.
                if not _is_open(match.string[: match.start()]) and not _is_open(subject):
                    yield subject


def _deduplicate_texts(texts: Iterator[str]) -> list[str]:
    unique: list[str] = []
    for subject in islice(texts, runtime_settings.STALL_MOST_LINES):
        for name in _BOTH.split(subject):
            if name.strip() and not any(_is_same(name, other) for other in unique):
                unique.append(name.strip())
    return unique


def _find_subject(text: str) -> str:
    return _SUBJECT_ENDS.split(text.strip(), maxsplit=1)[0].strip(" .\"'“”") or text


def _is_same(text: str, other: str) -> bool:
    a, b = text.casefold().strip(), other.casefold().strip()
    return a in b or b in a or measure_likeness(a, b) >= runtime_settings.CONVERGENCE_SAME_WINNER


def _explains_failure(line: ProseLine, below: ProseLine) -> bool:
    """Return whether a line about failure, or the line after it, explains the failure."""
    match = _WRONG.search(line.bare)
    if not match or line.bare.endswith(_ASKS) or _is_open(line.bare[: match.start()]):
        return False
    rest = line.bare[match.end() :].strip(" :：—–-.。")
    if rest or line.bare[: match.start()].strip():
        return _is_statement(rest or line.bare)
    return _is_statement(below.bare)


def _is_statement(text: str) -> bool:
    return not relays.is_placeholder(text) and not _LATER.match(text)


def _is_open(text: str) -> bool:
    return bool(_OPEN.search(text)) or text.rstrip().endswith(_ASKS)


@lru_cache(maxsize=16_384)  # most lines stay the same from one relay to the next
def _strip_marks(text: str) -> str:
    return " ".join(_DRESS.sub(" ", _MARK.sub("", text, count=1)).split())
