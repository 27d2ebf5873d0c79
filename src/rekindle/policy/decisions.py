"""The decision ledger: what was decided stays known, whatever becomes of its line in the relay.

A decision that is edited in place is superseded by its new words; one that is gone was dropped, or
trimmed into the archive, where it still holds. Two are the same if they say the same without dates,
cycles and ornaments, and they are about the same if their subjects are equal: what stands before
the reason.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from enum import StrEnum

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Relay
from rekindle.policy import redebate, settings
from rekindle.policy.redebate import Redebate
from rekindle.policy.stall.likeness import likeness

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


class Decision(msgspec.Struct, frozen=True):
    text: str
    """On one line, as it is written."""
    made: date | None
    key: str
    """Its subject, normalised: two with the same key decide the same thing."""
    plain: str
    """All of it, normalised: two with the same are the same decision."""


class Changes(msgspec.Struct, frozen=True):
    """What became of the decisions between two consecutive relays."""

    added: tuple[Decision, ...] = ()
    dropped: tuple[Decision, ...] = ()
    superseded: tuple[tuple[Decision, Decision], ...] = ()
    """What stood there, and what stands in its place."""
    redebated: tuple[Redebate, ...] = ()


class Status(StrEnum):
    IN_FORCE = "in force"
    ARCHIVED = "archived"
    """Trimmed from the relay for its size: nobody has withdrawn it."""
    SUPERSEDED = "superseded"
    DROPPED = "dropped"


class Seen(msgspec.Struct, frozen=True):
    """A relay that has a decision."""

    seq: int
    ts: datetime
    cycle: int = 0


class Revision(msgspec.Struct, frozen=True):
    seen: Seen
    kept: tuple[Decision, ...]
    trimmed: tuple[Decision, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    decision: Decision
    first: Seen | None
    """The first relay that had it; None: nobody looked."""
    last: Seen | None
    status: Status = Status.IN_FORCE
    by: Decision | None = None
    """What took its place."""


def read(relay: Relay) -> tuple[Decision, ...]:
    """The decisions of a relay, each once."""
    found = [_decision(one) for one in relay.decisions]
    return tuple({one.plain: one for one in found if one.plain}.values())


def compare(before: Relay, after: Relay, earlier: Iterable[Decision] = ()) -> Changes:
    """What became of the decisions, and which of them are debated again.

    `earlier`: those that hold although the relay before no longer had them.
    """
    was = read(before)
    found = changes(was, read(after))
    decided_anew = {old.plain for old, _ in found.superseded} | {new.key for new in found.added}
    settled = [
        (one.text, one.made, one.key)
        for one in {one.plain: one for one in (*earlier, *was)}.values()
        if decided_anew.isdisjoint({one.plain, one.key})
    ]
    again = redebate.find(settled, before, after)
    return msgspec.structs.replace(found, redebated=again)


def changes(was: Sequence[Decision], now: Sequence[Decision]) -> Changes:
    gone = [one for one in was if one.plain not in {new.plain for new in now}]
    added = [one for one in now if one.plain not in {old.plain for old in was}]
    pairs: list[tuple[Decision, Decision]] = []
    for is_successor in (_has_same_key, _is_reworded):
        for new in added[: settings.DECISION_MOST]:
            alike = [old for old in gone[: settings.DECISION_MOST] if is_successor(old, new)]
            if alike:
                old = _closest(alike, new)
                pairs.append((old, new))
                gone.remove(old)
                added.remove(new)
    return Changes(tuple(added), tuple(gone), tuple(pairs))


def ledger(revisions: Iterable[Revision]) -> tuple[Entry, ...]:
    """Every decision there ever was, from relays in their order, the oldest decision first."""
    found: dict[str, Entry] = {}
    last: tuple[Decision, ...] = ()
    for revision in revisions:
        differ = changes(last, revision.kept)
        for one in differ.dropped:
            _becomes(found, one, Status.DROPPED)
        for old, new in differ.superseded:
            _becomes(found, old, Status.SUPERSEDED, new)
        for new in differ.added:
            for old in [
                each.decision for each in found.values() if _has_same_key(each.decision, new)
            ]:
                if found[old.plain].status is Status.ARCHIVED and old.plain != new.plain:
                    _becomes(found, old, Status.SUPERSEDED, new)
        for one in revision.trimmed:
            _is_seen(found, one, revision.seen, Status.ARCHIVED)
        for one in revision.kept:
            _is_seen(found, one, revision.seen, Status.IN_FORCE)
        last = revision.kept
    return tuple(found.values())


def search(entries: Iterable[Entry], words: str) -> tuple[Entry, ...]:
    """Those that have every one of these words, in their own text or in what took their place."""
    wanted = words.casefold().split()
    return tuple(
        one
        for one in entries
        if all(
            word in f"{one.decision.text}\n{one.by.text if one.by else ''}".casefold()
            for word in wanted
        )
    )


def _is_seen(found: dict[str, Entry], one: Decision, seen: Seen, status: Status) -> None:
    known = found.get(one.plain)
    found[one.plain] = Entry(one, known.first if known else seen, seen, status)


def _becomes(
    found: dict[str, Entry], one: Decision, status: Status, by: Decision | None = None
) -> None:
    found[one.plain] = msgspec.structs.replace(found[one.plain], status=status, by=by)


def _closest(some: Sequence[Decision], new: Decision) -> Decision:
    return max(some, key=lambda one: likeness(one.plain, new.plain))


def _has_same_key(old: Decision, new: Decision) -> bool:
    return old.key == new.key


def _is_reworded(old: Decision, new: Decision) -> bool:
    return likeness(old.plain, new.plain) >= settings.DECISION_SAME


def _decision(found: relays.Decision) -> Decision:
    plain, subject = _plain(f"{found.text} {found.rationale}"), _plain(found.text)
    # A subject that is only a label or a date says nothing about what was decided.
    key = plain if _LABEL.fullmatch(subject) or not subject else subject
    return Decision(_written(found), found.made, key, plain)


def _written(found: relays.Decision) -> str:
    if found.source.lstrip().startswith("|"):
        said = f"{found.text}: {found.rationale}" if found.rationale else found.text
    else:
        said = _MARK.sub("", found.source, count=1)
    return _DAY.sub("", one_line(_EMPHASIS.sub("", said)))


def _plain(text: str) -> str:
    bare = _EMPHASIS.sub("", _TIMES.sub(" ", text))
    return " ".join(_DECORATION.sub(" ", bare).casefold().split())
