"""Keep a ledger of decisions, independent of what happens to their lines in the relay.

A decision that is edited in place is superseded by its new text. One that is gone was dropped, or
was trimmed into the archive, where it is still valid. Two decisions are the same if their texts are
equal without dates, cycles and decoration. They have the same subject if the parts before the
reason are equal.
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
    """Text as written, on one line."""
    made: date | None
    key: str
    """Normalized subject; decisions with the same key decide the same question."""
    plain: str
    """Normalized text; decisions with the same text are the same."""


class DecisionChanges(msgspec.Struct, frozen=True):
    """Changes of the decisions between two consecutive relays."""

    added: tuple[LedgerDecision, ...] = ()
    dropped: tuple[LedgerDecision, ...] = ()
    superseded: tuple[tuple[LedgerDecision, LedgerDecision], ...] = ()
    """Pairs of the old decision and the one that replaces it."""
    redebated: tuple[Redebate, ...] = ()


class DecisionStatus(StrEnum):
    IN_FORCE = "in force"
    ARCHIVED = "archived"
    """Trimmed from the relay for its size, but not withdrawn."""
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
    """First relay that contains it; None if no relays were searched."""
    last: RelayPosition | None
    status: DecisionStatus = DecisionStatus.IN_FORCE
    by: LedgerDecision | None = None
    """Decision that replaced it."""


def read_decisions(relay: Relay) -> tuple[LedgerDecision, ...]:
    """Return the decisions of a relay, without duplicates."""
    found = [_make_decision(one) for one in relay.decisions]
    return tuple({one.plain: one for one in found if one.plain}.values())


def compare_decisions(
    before: Relay, after: Relay, earlier: Iterable[LedgerDecision] = ()
) -> DecisionChanges:
    """Return how the decisions changed, and which of them are debated again.

    `earlier` are decisions that are still valid although the previous relay does not contain them.
    """
    was = read_decisions(before)
    found = diff_decisions(was, read_decisions(after))
    decided_anew = {old.plain for old, _ in found.superseded} | {new.key for new in found.added}
    settled = [
        (one.text, one.made, one.key)
        for one in {one.plain: one for one in (*earlier, *was)}.values()
        if decided_anew.isdisjoint({one.plain, one.key})
    ]
    again = redebate.find_redebates(settled, before, after)
    return msgspec.structs.replace(found, redebated=again)


def diff_decisions(was: Sequence[LedgerDecision], now: Sequence[LedgerDecision]) -> DecisionChanges:
    gone = [one for one in was if one.plain not in {new.plain for new in now}]
    added = [one for one in now if one.plain not in {old.plain for old in was}]
    pairs: list[tuple[LedgerDecision, LedgerDecision]] = []
    for is_successor in (_has_same_key, _is_reworded):
        for new in added[: runtime_settings.DECISION_MOST]:
            alike = [
                old for old in gone[: runtime_settings.DECISION_MOST] if is_successor(old, new)
            ]
            if alike:
                old = _find_closest(alike, new)
                pairs.append((old, new))
                gone.remove(old)
                added.remove(new)
    return DecisionChanges(tuple(added), tuple(gone), tuple(pairs))


def build_ledger(revisions: Iterable[LedgerRevision]) -> tuple[LedgerEntry, ...]:
    """Return every decision of a sequence of relays, the oldest decision first."""
    found: dict[str, LedgerEntry] = {}
    last: tuple[LedgerDecision, ...] = ()
    for revision in revisions:
        differ = diff_decisions(last, revision.kept)
        for one in differ.dropped:
            _set_status(found, one, DecisionStatus.DROPPED)
        for old, new in differ.superseded:
            _set_status(found, old, DecisionStatus.SUPERSEDED, new)
        for new in differ.added:
            for old in [
                each.decision for each in found.values() if _has_same_key(each.decision, new)
            ]:
                if found[old.plain].status is DecisionStatus.ARCHIVED and old.plain != new.plain:
                    _set_status(found, old, DecisionStatus.SUPERSEDED, new)
        for one in revision.trimmed:
            _record_sighting(found, one, revision.seen, DecisionStatus.ARCHIVED)
        for one in revision.kept:
            _record_sighting(found, one, revision.seen, DecisionStatus.IN_FORCE)
        last = revision.kept
    return tuple(found.values())


def search_ledger(entries: Iterable[LedgerEntry], words: str) -> tuple[LedgerEntry, ...]:
    """Return the entries whose text, or that of their replacement, contains all these words."""
    wanted = words.casefold().split()
    return tuple(
        one
        for one in entries
        if all(
            word in f"{one.decision.text}\n{one.by.text if one.by else ''}".casefold()
            for word in wanted
        )
    )


def _record_sighting(
    found: dict[str, LedgerEntry], one: LedgerDecision, seen: RelayPosition, status: DecisionStatus
) -> None:
    known = found.get(one.plain)
    found[one.plain] = LedgerEntry(one, known.first if known else seen, seen, status)


def _set_status(
    found: dict[str, LedgerEntry],
    one: LedgerDecision,
    status: DecisionStatus,
    by: LedgerDecision | None = None,
) -> None:
    found[one.plain] = msgspec.structs.replace(found[one.plain], status=status, by=by)


def _find_closest(some: Sequence[LedgerDecision], new: LedgerDecision) -> LedgerDecision:
    return max(some, key=lambda one: measure_likeness(one.plain, new.plain))


def _has_same_key(old: LedgerDecision, new: LedgerDecision) -> bool:
    return old.key == new.key


def _is_reworded(old: LedgerDecision, new: LedgerDecision) -> bool:
    return measure_likeness(old.plain, new.plain) >= runtime_settings.DECISION_SAME


def _make_decision(found: relays.RelayDecision) -> LedgerDecision:
    plain, subject = _normalize(f"{found.text} {found.rationale}"), _normalize(found.text)
    # A label or a date alone does not identify the subject.
    key = plain if _LABEL.fullmatch(subject) or not subject else subject
    return LedgerDecision(_render_decision(found), found.made, key, plain)


def _render_decision(found: relays.RelayDecision) -> str:
    if found.source.lstrip().startswith("|"):
        said = f"{found.text}: {found.rationale}" if found.rationale else found.text
    else:
        said = _MARK.sub("", found.source, count=1)
    return _DAY.sub("", to_one_line(_EMPHASIS.sub("", said)))


def _normalize(text: str) -> str:
    bare = _EMPHASIS.sub("", _TIMES.sub(" ", text))
    return " ".join(_DECORATION.sub(" ", bare).casefold().split())
