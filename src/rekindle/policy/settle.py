"""What a summarizer's answer does to the open loops.

It may open a loop, put one into other words, and have one closed or reopened; never more than the
turns bear out. What it leaves out stays as it is. A loop is closed where the answer names its id, a
reason, and a turn in which the person or the agent says, in their own words, that it is done, and
none later in which they speak of it otherwise; without such a turn it stays open, and a person is
told what was claimed. One that is resolved and listed once more is repeated, not open: only a turn
after its resolution, in which they speak of it as open, opens it again. So neither a careless
answer nor what a tool has said can lose a loop, or bring one back.

A loop is known again by its id, or by a text that is nearly the same. Where the two disagree the
text decides: words that belong to another loop are that loop's, and words that have nothing in
common with what the id stands for are a loop of their own.
"""

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.day import Day, Said
from rekindle.documents.event import LoopAdded, LoopResolved
from rekindle.documents.identity import STABLE_ID, derived_id
from rekindle.documents.jsontext import fingerprint
from rekindle.documents.state import moment
from rekindle.documents.summary import unquoted
from rekindle.documents.transcript import Turn
from rekindle.policy import loops as policy
from rekindle.policy.attribution import Heard, is_data
from rekindle.policy.evidence import Named, Spoken, core, name, share, spoken
from rekindle.policy.loops import Loop, Loops
from rekindle.policy.settings import LOOP_NAMED, LOOP_SAME
from rekindle.policy.stall.likeness import likeness, significant, swapped
from rekindle.thresholds.texts import ITEM_CHARACTERS

_NUMBERED = re.compile(r"\w*\d[\w.-]*")
_WORDS = re.compile(r"[^\w\s]|_")


class Settled(msgspec.Struct, frozen=True):
    events: tuple[LoopAdded | LoopResolved, ...] = ()
    claimed: dict[str, str] = {}
    """Loops that stay open although they are called resolved, with the reason that was given."""


class Shown(msgspec.Struct, frozen=True):
    """What the answer is about."""

    turns: Mapping[int, Turn]
    heard: Heard
    texts: Mapping[str, str]
    """The open loops as the summarizer was shown them: what a person has since reworded stays."""


def settle(loops: Loops, day: Day, shown: Shown, now: datetime) -> Settled:
    """The events that follow from an answer, given the loops as they are now."""
    return _Settling(loops, shown, now).of(day)


class _Settling:
    def __init__(self, loops: Loops, shown: Shown, now: datetime) -> None:
        self._loops, self._shown, self._now = loops, shown, now
        self._plain = {identity: plain_of(loop.text) for identity, loop in loops.items()}
        self._named = [Named(identity, loop.text) for identity, loop in loops.items()]
        self._new: dict[str, str] = {}

    def of(self, day: Day) -> Settled:
        closed: dict[str, LoopResolved] = {}
        claimed: dict[str, str] = {}
        for said in day.resolved:
            known = self._loops.get(said.id)
            if known is None or not known.is_open or not said.text or said.id in closed:
                continue
            if self._is_done(known, said):
                reason = self._shown.heard.claim(said.text, said.turns)
                event = policy.resolve(self._loops, said.id, reason, self._now)
                closed |= {said.id: event} if event else {}
            elif not self._shown.heard.is_hearsay(said.text):
                claimed.setdefault(said.id, self._shown.heard.claim(said.text, said.turns))
        opened: dict[str, LoopAdded] = {}
        for said in day.open:
            event_of = self._opened(said, set(opened) | set(closed))
            if event_of is not None:
                opened.setdefault(event_of.id, event_of)
        for identity in closed:
            claimed.pop(identity, None)
        return Settled((*opened.values(), *closed.values()), claimed)

    def _is_done(self, loop: Loop, said: Said) -> bool:
        """Whether somebody says so in a turn that is named, and nobody takes it back later."""
        named = Named(loop.id, loop.text)
        done = [
            number
            for number in said.turns
            if self._is_after(number, loop.opened_at) and self._spoken(named, number) == "done"
        ]
        return bool(done) and not any(
            number > max(done) and self._spoken(named, number) == "open"
            for number in self._shown.turns
        )

    def _speaks_since(self, of: Named, said: Said, then: datetime) -> bool:
        """Whether somebody speaks of it as open, in a turn that is named, after a moment."""
        return any(
            self._is_after(number, then) and self._spoken(of, number) == "open"
            for number in said.turns
        )

    def _spoken(self, of: Named, number: int) -> Spoken:
        rivals = [one for one in self._named if one.id != of.id]
        return spoken(self._shown.turns[number], of, rivals, self._shown.heard)

    def _is_after(self, number: int, then: datetime) -> bool:
        """Whether a turn came after a moment; one that does not tell its time, after none."""
        at = moment(self._shown.turns[number].at)
        return at is not None and at > then

    def _opened(self, said: Said, taken: set[str]) -> LoopAdded | None:
        """The event for what is said to be open; None: it is known so, or nothing bears it out."""
        known = self._known(said)
        text = self._shown.heard.instruction(said.text, said.turns)
        if known is None:
            return self._unknown(said, text)
        if known.id in taken:
            return None
        if not known.is_open:
            is_again = self._speaks_since(Named(known.id, known.text), said, known.marks[-1].ts)
            return policy.opened(known, known.text, self._now) if is_again else None
        return policy.opened(known, text, self._now) if self._may_reword(known, said) else None

    def _may_reword(self, known: Loop, said: Said) -> bool:
        """Whether these words may stand for it: ours, and without leaving out what it is about."""
        is_as_shown = self._shown.texts.get(known.id, known.text) == known.text
        is_short = len(known.text) <= ITEM_CHARACTERS
        names_it = name(Named(known.id, known.text)) <= significant(plain_of(said.text))
        is_own = self._is_own(said, also="" if is_data(known.text) else known.text)
        return bool(said.text) and is_as_shown and is_short and names_it and is_own

    def _is_own(self, said: Said, also: str = "") -> bool:
        """Whether neither a copy nor a paraphrase of what was only read."""
        heard = self._shown.heard
        is_copy = heard.is_hearsay(said.text)
        return not is_copy and not heard.data_behind(said.text, said.turns, also)

    def _unknown(self, said: Said, text: str) -> LoopAdded | None:
        """A new loop, or one that was resolved and is listed in other words."""
        repeated = [
            (share(said.text, Named(loop.id, loop.text)), loop.id)
            for loop in self._loops.values()
            if not loop.is_open and share(said.text, Named(loop.id, loop.text)) >= LOOP_NAMED
        ]
        for _, identity in sorted(repeated, reverse=True):
            loop = self._loops[identity]
            if self._speaks_since(Named(identity, loop.text), said, loop.marks[-1].ts):
                return policy.opened(loop, loop.text, self._now)
        latest = [self._loops[identity].marks[-1].ts for _, identity in repeated]
        if latest and not self._speaks_since(Named(said.id, said.text), said, max(latest)):
            return None
        return self._added(said, text)

    def _added(self, said: Said, text: str) -> LoopAdded | None:
        plain = plain_of(said.text)
        if not plain or any(is_same(plain, other) for other in self._new.values()):
            return None
        identity = self._new_id(said)
        if identity in self._loops or identity in self._new:
            return None
        self._new[identity] = plain
        return policy.add(self._loops, identity, text, self._now)

    def _new_id(self, said: Said) -> str:
        """What it is called, if that is free; words that were only read make no name."""
        heard, is_own = self._shown.heard, self._is_own(said)
        is_free = said.id not in self._loops and said.id not in self._new and is_own
        if is_free and STABLE_ID.match(said.id) and not heard.is_hearsay(said.id.replace("-", " ")):
            return said.id
        if not is_own:
            return f"read-{fingerprint(said.text.encode('utf-8', 'replace'))[:8]}"
        return derived_id(said.text)

    def _known(self, said: Said) -> Loop | None:
        """The loop that this is about."""
        plain = plain_of(said.text)
        named = self._loops.get(said.id)
        like = self._most_like(plain)
        if named is None or named.id == like:
            return self._loops.get(like)
        if like and not is_same(plain, self._plain[named.id]):
            return self._loops[like]
        is_alien = share(said.text, Named(named.id, named.text)) < LOOP_NAMED
        is_kin = swapped(plain, self._plain[named.id])
        return None if plain and (is_alien or is_kin) else named

    def _most_like(self, plain: str) -> str:
        """The loop with nearly the same text, an open one before one that is closed."""
        found = [
            (loop.is_open, likeness(plain, self._plain[identity]), identity)
            for identity, loop in self._loops.items()
            if plain and is_same(plain, self._plain[identity])
        ]
        return max(found)[-1] if found else ""


def plain_of(text: str) -> str:
    return " ".join(_WORDS.sub(" ", unquoted(text).casefold()).split())


def is_same(one: str, other: str) -> bool:
    """Whether two plain texts are one, put differently.

    Where a word has taken another's place, or each has a word of its own, or their numbers differ,
    it is another of its kind.
    """
    if one == other:
        return True
    mine, theirs = core(one), core(other)
    if not (mine <= theirs or theirs <= mine) or not mine:
        return False
    if set(_NUMBERED.findall(one)) != set(_NUMBERED.findall(other)) or swapped(one, other):
        return False
    return mine == theirs or likeness(one, other) >= LOOP_SAME
