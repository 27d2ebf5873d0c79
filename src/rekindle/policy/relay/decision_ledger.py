"""Keep a ledger of all decisions, even after their lines have left the relay.

A decision that is edited in place is superseded by its new text. A decision that is missing from
the next relay was either dropped, or trimmed into the archive, where it is still valid.

Two decisions are the same if their texts are equal apart from dates, cycles and decoration. They
have the same subject if their texts are equal up to the reason.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from enum import StrEnum

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import Relay
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.relay import redebate
from rekindle.policy.relay.redebate import Redebate
from rekindle.policy.settings import runtime_settings
from rekindle.policy.text.likeness import measure_likeness

_TIMES = re.compile(
    r"(?:(?<![a-z])(?:cycles?|rounds?|sessions?|iterations?)(?![a-z])|周期)[\s#]*\d+"
    r"|第\s*\d+\s*(?:轮|次|个?周期)|\d{4}-\d\d-\d\d",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"[*`]+|~~")
_DECORATION = re.compile(r"[^\w\s./\-+%#$]|_|(?<!\w)[./\-+](?!\w)|[./\-](?=\s|$)")
_MARK = re.compile(r"\s*(?:[-+*]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\]\s*)?")
_DAY = re.compile(r"\s*[(\[（]\s*\d{4}-\d\d-\d\d\s*[)\]）]\s*$")
_LABEL = re.compile(r"(?:decisions?|decided|note|new|决定|决策)\W*", re.IGNORECASE)


class LedgerDecision(msgspec.Struct, frozen=True):
    text: str
    """The decision's original text, on one line."""
    made: date | None
    key: str
    """Normalized subject; decisions with the same subject answer the same question."""
    plain: str
    """Normalized text; decisions with the same text are the same decision."""


class DecisionChanges(msgspec.Struct, frozen=True):
    """Changes to the decisions between two consecutive relays."""

    added: tuple[LedgerDecision, ...] = ()
    dropped: tuple[LedgerDecision, ...] = ()
    superseded: tuple[tuple[LedgerDecision, LedgerDecision], ...] = ()
    """Pairs of an old decision and the one that replaces it."""
    redebated: tuple[Redebate, ...] = ()


class DecisionStatus(StrEnum):
    IN_FORCE = "in force"
    ARCHIVED = "archived"
    """Decision that was trimmed from the relay to save space, but not withdrawn."""
    SUPERSEDED = "superseded"
    DROPPED = "dropped"


class RelayPosition(msgspec.Struct, frozen=True):
    """Position of a relay that contains a decision."""

    seq: int
    ts: datetime
    cycle: int = 0


class LedgerRevision(msgspec.Struct, frozen=True):
    seen: RelayPosition
    kept: tuple[LedgerDecision, ...]
    trimmed: tuple[LedgerDecision, ...] = ()


class LedgerEntry(msgspec.Struct, frozen=True):
    decision: LedgerDecision
    first: RelayPosition | None
    """First relay that contains the decision; None if no relays were searched."""
    last: RelayPosition | None
    status: DecisionStatus = DecisionStatus.IN_FORCE
    by: LedgerDecision | None = None
    """Decision that replaced this one, if any."""


def read_decisions(relay: Relay) -> tuple[LedgerDecision, ...]:
    """Return the decisions in a relay, without duplicates."""
    decisions = [_make_decision(decision) for decision in relay.decisions]
    return tuple({decision.plain: decision for decision in decisions if decision.plain}.values())


def compare_decisions(before: Relay, after: Relay) -> DecisionChanges:
    """Return the changes to the decisions, and the decisions that are debated again."""
    was = read_decisions(before)
    changes = diff_decisions(was, read_decisions(after))
    replaced = {old.plain for old, _ in changes.superseded} | {new.key for new in changes.added}
    settled = [
        (decision.text, decision.made, decision.key)
        for decision in was
        if replaced.isdisjoint({decision.plain, decision.key})
    ]
    redebated = redebate.find_redebates(settled, before, after)
    return msgspec.structs.replace(changes, redebated=redebated)


def diff_decisions(was: Sequence[LedgerDecision], now: Sequence[LedgerDecision]) -> DecisionChanges:
    removed = [decision for decision in was if decision.plain not in {new.plain for new in now}]
    added = [decision for decision in now if decision.plain not in {old.plain for old in was}]
    pairs: list[tuple[LedgerDecision, LedgerDecision]] = []
    for is_successor in (_has_same_key, _is_reworded):
        for new in added[: runtime_settings.DECISION_MOST]:
            candidates = [
                old for old in removed[: runtime_settings.DECISION_MOST] if is_successor(old, new)
            ]
            if candidates:
                old = max(
                    candidates, key=lambda candidate: measure_likeness(candidate.plain, new.plain)
                )
                pairs.append((old, new))
                removed.remove(old)
                added.remove(new)
    return DecisionChanges(tuple(added), tuple(removed), tuple(pairs))


def build_ledger(revisions: Iterable[LedgerRevision]) -> tuple[LedgerEntry, ...]:
    """Return every decision in a sequence of relays, oldest first."""
    entries: dict[str, LedgerEntry] = {}
    last: tuple[LedgerDecision, ...] = ()
    for revision in revisions:
        differ = diff_decisions(last, revision.kept)
        for decision in differ.dropped:
            _set_status(entries, decision, DecisionStatus.DROPPED)
        for old, new in differ.superseded:
            _set_status(entries, old, DecisionStatus.SUPERSEDED, new)
        for new in differ.added:
            for old in [
                entry.decision for entry in entries.values() if _has_same_key(entry.decision, new)
            ]:
                if entries[old.plain].status is DecisionStatus.ARCHIVED and old.plain != new.plain:
                    _set_status(entries, old, DecisionStatus.SUPERSEDED, new)
        for decision in revision.trimmed:
            _record_sighting(entries, decision, revision.seen, DecisionStatus.ARCHIVED)
        for decision in revision.kept:
            _record_sighting(entries, decision, revision.seen, DecisionStatus.IN_FORCE)
        last = revision.kept
    return tuple(entries.values())


def search_ledger(entries: Iterable[LedgerEntry], words: str) -> tuple[LedgerEntry, ...]:
    """Return the entries whose text, or whose replacement's text, contains all these words."""
    search_words = words.casefold().split()
    return tuple(
        entry
        for entry in entries
        if all(
            word in f"{entry.decision.text}\n{entry.by.text if entry.by else ''}".casefold()
            for word in search_words
        )
    )


def _record_sighting(
    entries: dict[str, LedgerEntry],
    decision: LedgerDecision,
    position: RelayPosition,
    status: DecisionStatus,
) -> None:
    earlier = entries.get(decision.plain)
    entries[decision.plain] = LedgerEntry(
        decision, earlier.first if earlier else position, position, status
    )


def _set_status(
    entries: dict[str, LedgerEntry],
    decision: LedgerDecision,
    status: DecisionStatus,
    by: LedgerDecision | None = None,
) -> None:
    entries[decision.plain] = msgspec.structs.replace(entries[decision.plain], status=status, by=by)


def _has_same_key(old: LedgerDecision, new: LedgerDecision) -> bool:
    return old.key == new.key


def _is_reworded(old: LedgerDecision, new: LedgerDecision) -> bool:
    return measure_likeness(old.plain, new.plain) >= runtime_settings.DECISION_SAME


def _make_decision(source: relays.RelayDecision) -> LedgerDecision:
    plain, subject = (
        _normalize_text(f"{source.text} {source.rationale}"),
        _normalize_text(source.text),
    )
    # A label or a date alone does not identify the subject.
    key = plain if _LABEL.fullmatch(subject) or not subject else subject
    return LedgerDecision(_render_decision(source), source.made, key, plain)


def _render_decision(source: relays.RelayDecision) -> str:
    if source.source.lstrip().startswith("|"):
        text = f"{source.text}: {source.rationale}" if source.rationale else source.text
    else:
        text = _MARK.sub("", source.source, count=1)
    return _DAY.sub("", to_one_line(_EMPHASIS.sub("", text)))


def _normalize_text(text: str) -> str:
    bare = _EMPHASIS.sub("", _TIMES.sub(" ", text))
    return " ".join(_DECORATION.sub(" ", bare).casefold().split())
