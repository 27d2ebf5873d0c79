"""Check that a topic converges: it starts with options, settles on one, and then leads to work.

Cycles in the log are counted per topic. `find_topic` decides which cycles have the same topic.

    cycle on the topic   required result
    first                brainstorm: ranked options
    second               decide: one winner and what could go wrong with it, or a no-go
    later                ship: a changed file that is neither the relay nor a log
"""

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import assert_never

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.events import CycleEnded
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats import outline
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.progress.artefacts import is_artefact
from rekindle.policy.progress.work_progress import make_artefact_name
from rekindle.policy.relay import deliberation
from rekindle.policy.settings.runtime_settings import (
    CONVERGENCE_OPTIONS,
    HEADLINE_CHARACTERS,
)

_BESIDE = re.compile(r"current phase[*_` ]*[:：—–-]\s*(\S.*)$", re.IGNORECASE)
_TIMES = re.compile(
    r"(?:(?<![a-z])(?:cycles?|rounds?|days?|weeks?|iterations?|sessions?)(?![a-z])|周期)"
    r"[\s#]*\d+(?:\s*(?:[-–/]|of)\s*\d+)?|第\s*[\d一二三四五六七八九十]+\s*(?:轮|次|个?周期|天|周|批)"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?|\b\d{1,2}:\d\d\b|\d{4}年\d{1,2}月\d{1,2}日",
    re.IGNORECASE,
)
_COUNT = re.compile(
    # A number after a word such as "phase" or "task" is part of the name.
    r"(?<!phase )(?<!step )(?<!stage )(?<!part )(?<!sprint )(?<!milestone )(?<!task )(?<!阶段)"
    r"(?<![\w.,#-])[~$]?\d[\d,]*(?:\.\d+)?(?:[+%]|/\d+)?(?![\w.])"
)
_STATUS = re.compile(
    r"(?<![a-z])(?:in progress|ongoing|underway|continu(?:ed|ing|es)|started|starting|completed?"
    r"|done|finished|wip|active|blocked|almost|nearly|now|still|again|new)(?![a-z])"
    r"|进行中|持续进行|继续|完成|已完成|待启动|已启动|开始",
    re.IGNORECASE,
)
_PART = re.compile(r"\s+[-–—]+\s+|[—–]+|[:：]\s*|\s*[→|]\s*|[.;](?=\s|$)|[。；]")
_STAGE_WORDS = re.compile(
    r"(?:brainstorm(?:ing|ed)?|ideation|options?|decid(?:e|ing|ed)|decisions?|choos(?:e|ing)"
    r"|select(?:ing|ion)|ship(?:ping|ped)?|converg(?:e|ing|ence)|头脑风暴|决策|选择|交付|发布)",
    re.IGNORECASE,
)
_DECORATION = re.compile(r"[^\w\s.,/+&%'#-]|_")
_EDGES = " .,:;-–—#/&+，。、"


class TopicStage(StrEnum):
    BRAINSTORM = "brainstorm"
    DECIDE = "decide"
    SHIP = "ship"


class StageResult(msgspec.Struct, frozen=True):
    """Whether a cycle produced the result that its stage requires."""

    ok: bool
    words: str
    """Description of the result, or of what is missing."""


def find_topic(relay: Relay) -> str:
    """Return a relay's topic without counts, dates and decoration, or "" if it has none.

    The topic is the beginning of Current Phase, up to a dash or a colon. The text after that
    describes progress. If that part only names one of Rekindle's stages, the next part is the
    topic.
    """
    places = relay.places(RelayField.CURRENT_PHASE)
    if not places:
        return ""
    beside = _BESIDE.search(relay.outline.sections[places[0]].title)
    body = [beside[1]] if beside else []
    content = outline.mark_prose(relay.outline.content(places[0]))
    body += [
        line for line, is_prose in content if is_prose and not line.lstrip().startswith("<!--")
    ]
    for line in body:
        if relays.is_placeholder(line):
            continue
        parts = [
            plain for part in _PART.split(_strip_dates(line)) if (plain := _normalize_topic(part))
        ]
        about = [part for part in parts if not _STAGE_WORDS.fullmatch(part)]
        if parts:
            return to_one_line((about or parts)[0], HEADLINE_CHARACTERS)
    return ""


def choose_stage(cycles_on_topic: int) -> TopicStage:
    """Return the stage of the nth cycle on a topic, counting from 1."""
    stages = list(TopicStage)
    return stages[min(max(cycles_on_topic, 1), len(stages)) - 1]


def choose_next_stage(ended: Mapping[int, CycleEnded], topic: str) -> TopicStage:
    """Return the stage of the next cycle on a topic."""
    return choose_stage(1 + sum(cycle.topic == topic for cycle in ended.values()))


def render_stage_notice(
    ended: Mapping[int, CycleEnded], last: CycleEnded | None, relay: Relay | None
) -> str:
    """Return a notice about the next cycle's required result and the last cycle's missing one."""
    missed = f"The last cycle {last.owed}.\n" if last and last.owed else ""
    return missed + describe_stage(choose_next_stage(ended, find_topic(relay) if relay else ""))


def describe_stage(stage: TopicStage) -> str:
    """Return the instruction for the next cycle at this stage."""
    match stage:
        case TopicStage.BRAINSTORM:
            return (
                "This is the first cycle on this topic: open it. Write a numbered list of"
                f" {CONVERGENCE_OPTIONS} or more options, the best first, below a heading `Options`"
                " in the relay. Nothing has to be chosen yet."
            )
        case TopicStage.DECIDE:
            return (
                "This is the second cycle on this topic: settle it. Name exactly one option in a"
                " line `Winner: …`, and say in a line `Pre-mortem: …` what could make it fail. If"
                " none is worth doing, write `No-go: …` with the reason instead."
            )
        case TopicStage.SHIP:
            return (
                "This topic is settled: only work counts now. Leave at least one changed"
                " or committed file behind; the relay, notes on progress and logs do not count. Do"
                " not discuss the options again."
            )
    assert_never(stage)


def check_stage(
    stage: TopicStage,
    relay: Relay,
    files: Sequence[str],
    before: Relay | None = None,
    constant: Collection[str] = (),
) -> StageResult:
    """Return whether a cycle produced the result that its stage requires.

    `files` are the changed files, and `constant` names the artefacts that every cycle changes.
    `before` is the previous relay, used to tell new lines from old ones.
    """
    match stage:
        case TopicStage.BRAINSTORM:
            return _check_brainstorm(relay, before)
        case TopicStage.DECIDE:
            return _check_decision(relay, before)
        case TopicStage.SHIP:
            return _check_artefacts(files, constant)
    assert_never(stage)


def _check_brainstorm(relay: Relay, before: Relay | None) -> StageResult:
    options = deliberation.find_options(relay, before)
    if len(options) >= CONVERGENCE_OPTIONS:
        return StageResult(
            ok=True, words=f"ranks {len(options)} options, first: {_shorten_text(options[0])}"
        )
    if options:
        return StageResult(ok=False, words=f"names only one option: {_shorten_text(options[0])}")
    return StageResult(
        ok=False, words="ranks no options: the relay has no numbered list of options"
    )


def _check_decision(relay: Relay, before: Relay | None) -> StageResult:
    if deliberation.rejects_topic(relay, before):
        return StageResult(ok=True, words="rejects the topic")
    winners = deliberation.find_winners(relay, before)
    is_doubted = deliberation.names_doubts(relay)
    if len(winners) == 1 and is_doubted:
        return StageResult(
            ok=True, words=f"chose {_shorten_text(winners[0])}, and says what could go wrong"
        )
    missing = []
    if not winners:
        missing.append("names no winner")
    elif len(winners) > 1:
        named = "; ".join(_shorten_text(winner) for winner in winners[:3])
        missing.append(f"names {len(winners)} winners instead of one ({named})")
    if not is_doubted:
        missing.append("has no pre-mortem: nothing about what could go wrong")
    return StageResult(ok=False, words=", and ".join(missing))


def _check_artefacts(files: Sequence[str], constant: Collection[str]) -> StageResult:
    artefacts = [path for path in files if is_artefact(path)]
    new = [path for path in artefacts if make_artefact_name(path) not in constant]
    if new:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        return StageResult(ok=True, words=f"changed {_shorten_text(new[0])}{more}")
    if artefacts:
        only = _shorten_text(artefacts[0])
        return StageResult(
            ok=False, words=f"changed only files that every cycle changes, such as {only}"
        )
    if files:
        only = _shorten_text(files[0])
        return StageResult(ok=False, words=f"changed only the relay and logs, such as {only}")
    return StageResult(ok=False, words="changed no file")


def _strip_dates(line: str) -> str:
    bare = " ".join(line.split()).lstrip("#>*+-_ \t").replace("*", "").replace("`", "")
    return _TIMES.sub(" ", bare)


def _normalize_topic(part: str) -> str:
    lower = " ".join(_DECORATION.sub(" ", part).casefold().split())
    plain = " ".join(_STATUS.sub(" ", _COUNT.sub(" ", lower)).split())
    return (plain or lower).strip(_EDGES)


def _shorten_text(text: str) -> str:
    return to_one_line(text, HEADLINE_CHARACTERS)
