"""Two consecutive relays: did the loop take a step between them?

The texts decide, by what they ask; the work beside them, as `policy.progress` counts it, is the
second signal. The first of these that holds:

1. one of them has no directive: progress if there was work, else unusable;
2. the current one waits for a person or an event, and nothing moved beside that: waiting;
3. an open item is done or gone, or something else is named first: progress;
4. both ask to go on without end, in much the same words, and there was no work: treadmill;
5. they do not ask the same: progress;
6. they do, but work was done all the same: progress; else stalled.

Work shows that an unchanged directive is a long task, or a stale one. It does not end a wait: the
person who is waited for has to be told, whatever else was done meanwhile.
"""

from itertools import islice

import msgspec

from rekindle.documents import outline
from rekindle.documents import relay as relays
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Relay
from rekindle.errors import DocumentError
from rekindle.policy import settings
from rekindle.policy.stall import ask, words
from rekindle.policy.stall.ask import Ask, Line
from rekindle.policy.stall.likeness import likeness, swapped
from rekindle.policy.stall.verdict import Kind, Verdict


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """From how much likeness on two texts count as the same: see the settings."""

    same_line: float = settings.STALL_SAME_LINE
    same_head: float = settings.STALL_SAME_HEAD
    same_lead: float = settings.STALL_SAME_LEAD
    same_wait: float = settings.STALL_SAME_WAIT
    treadmill_head: float = settings.STALL_TREADMILL_HEAD
    treadmill_lead: float = settings.STALL_TREADMILL_LEAD


class Reading(msgspec.Struct, frozen=True):
    """A relay, read once for both of the pairs that it stands in."""

    relay: Relay | None
    ask: Ask | None
    problem: str = ""
    """Why there is nothing to compare."""


DEFAULTS = Thresholds()


def compare(
    before: Relay | str,
    after: Relay | str,
    work: str = "",
    thresholds: Thresholds = DEFAULTS,
) -> Verdict:
    """Return what the loop did between two consecutive relays.

    `work` is the progress beside the relays, in words; empty: there was none.
    """
    return judge(read(before), read(after), work, thresholds)


def read(relay: Relay | str) -> Reading:
    try:
        parsed = relays.parse(relay) if isinstance(relay, str) else relay
    except DocumentError as error:
        return Reading(None, None, error.reason)
    found = ask.read(parsed)
    return Reading(parsed, found, "" if found else "has no directive")


def judge(
    before: Reading,
    after: Reading,
    work: str = "",
    thresholds: Thresholds = DEFAULTS,
) -> Verdict:
    """Do the same as `compare` for relays that were read already."""
    problems = [
        f"the {which} relay {reading.problem}"
        for which, reading in (("previous", before), ("current", after))
        if reading.problem
    ]
    if problems or before.ask is None or after.ask is None:
        kind = Kind.PROGRESS if work else Kind.UNUSABLE
        return Verdict(kind, (*problems, f"but there is work: {work}") if work else tuple(problems))
    pair = _Pair(before, before.ask, after, after.ask, work=work, limits=thresholds)
    return pair.verdict()


class _Pair:
    """What two asks have in common, and the verdict by it."""

    def __init__(
        self,
        before: Reading,
        was: Ask,
        after: Reading,
        now: Ask,
        *,
        work: str,
        limits: Thresholds,
    ) -> None:
        self.before, self.after = before, after
        self.was, self.now, self.work, self.limits = was, now, work, limits
        self.about = _short(now.head.text)
        self.head = likeness(was.head.plain, now.head.plain)
        self.lead = _carried_over(was.open, now.open)
        self.gone = _without(was.open, now.open, limits.same_line)
        self.new = _without(now.open, was.open, limits.same_line)
        said = [[line.plain for line in one.open] for one in (was, now)]
        self.is_equal = said[0] == said[1] and was.names == now.names

    def verdict(self) -> Verdict:
        about = self.about
        if waited := self._waited_for():
            about, kind, reason = waited, Kind.WAITING, f"waits: {waited}"
        elif step := self._step():
            kind, reason = Kind.PROGRESS, step
        elif self._is_more_of_the_same():
            kind, reason = self._with_work(Kind.TREADMILL, "asks for more of the same")
        elif not self._is_same():
            kind, reason = Kind.PROGRESS, f"asks for something else: {self.about}"
        elif reported := self._reported():
            kind, reason = Kind.PROGRESS, f"asks for the same, but reports: {reported}"
        else:
            how = "word for word" if self.is_equal else f"{self.lead:.0%} alike"
            kind, reason = self._with_work(Kind.STALLED, f"asks for the same, {how}")
        return Verdict(kind, (reason,), about, self.is_equal)

    def _waited_for(self) -> str:
        """What is waited for, where that is the first thing; empty where nothing is."""
        if words.waits(self.now.head.text):
            was_waiting = words.waits(self.was.head.text)
            return "" if was_waiting and self._moved_beside_the_wait() else self.about
        # Below a title it counts only where it stood before: else the title may be new work.
        for line in () if self.now.goes_on else self.now.open[1:2]:
            if words.waits(line.text) and any(
                words.waits(old.text) and likeness(line.plain, old.plain) >= self.limits.same_wait
                for old in self.was.open
            ):
                return _short(line.text)
        return ""

    def _moved_beside_the_wait(self) -> bool:
        """Whether an item is done, another task waited for, or the agent's own part another."""
        is_new_task = not self.was.tasks.issuperset(ask.tasks(self.now.head.text))
        return is_new_task or self._ticked() is not None or self._own_part() is not None

    def _own_part(self) -> Line | None:
        """What the agent is to do alone now, where it was to do something else alone before."""
        if not self.was.unattended:
            return None
        return next((line for line in self.new if line in self.now.unattended), None)

    def _step(self) -> str:
        """Which step was taken, though the rest looks alike; empty where none was."""
        if done := self._ticked():
            return f"done: {_short(done.text)}"
        if own := self._own_part():
            return f"asks the agent itself for something else: {_short(own.text)}"
        if names := self._other_names():
            return f"names another task: {', '.join(dict.fromkeys(names[:3]))}"
        word = swapped(self.was.head.plain, self.now.head.plain)
        if word and not (self.was.goes_on and self.now.goes_on):
            return f"asks the same of something else: {word}"
        gone = [line for line in self.gone if not words.waits(line.text)]
        if gone and not self.new and len(self.now.open) < len(self.was.open):
            return f"no longer asked for: {_short(gone[0].text)}"
        return ""

    def _ticked(self) -> Line | None:
        """An item that was open and is done."""
        for done in _unlike(self.now.done, self.was.done):
            if any(likeness(done.plain, line.plain) >= self.limits.same_line for line in self.gone):
                return done
        return None

    def _other_names(self) -> list[str]:
        """The tasks that are named first now and were not before."""
        was, now = self.was.names, self.now.names
        if not was and self.was.goes_on and self.now.goes_on:
            return []  # what goes on anyway has only been given its name
        new = [name for name in now if name not in was]
        return new or (now[:1] if was[:1] != now[:1] and was and now else [])

    def _is_more_of_the_same(self) -> bool:
        if self.was.is_a_theme and self.now.is_a_theme:
            return True
        return (
            self.was.goes_on
            and self.now.goes_on
            and self.head >= self.limits.treadmill_head
            and self.lead >= self.limits.treadmill_lead
        )

    def _is_same(self) -> bool:
        return self.head >= self.limits.same_head and self.lead >= self.limits.same_lead

    def _with_work(self, kind: Kind, words: str) -> tuple[Kind, str]:
        """Return the verdict on a directive that stayed, and its reason."""
        if self.work:
            return Kind.PROGRESS, f"{words}, but there is work: {self.work}"
        return kind, f"{words}: {self.about}"

    def _reported(self) -> str:
        """Return a task that the relay newly reports as done though the directive stayed."""
        if not self.is_equal:
            return ""
        known = {name for name, _ in _done_tasks(self.before)}
        done = (line for name, line in _done_tasks(self.after) if name not in known)
        return _short(next(done, "").lstrip("#>*- "))


def _carried_over(was: tuple[Line, ...], now: tuple[Line, ...]) -> float:
    """How much of what is asked for first was asked for before, in whatever order."""
    known = {line.plain for line in was}
    lead = now[: settings.STALL_LEAD_LINES]
    return sum(
        1.0 if line.plain in known else max(likeness(line.plain, old.plain) for old in was)
        for line in lead
    ) / len(lead)


def _without(lines: tuple[Line, ...], others: tuple[Line, ...], same: float) -> list[Line]:
    """The lines that have no counterpart among the others, be it in other words."""
    left = _unlike(others, lines)
    return [
        line
        for line in _unlike(lines, others)
        if not any(likeness(line.plain, one.plain) >= same for one in left)
    ]


def _unlike(lines: tuple[Line, ...], others: tuple[Line, ...]) -> list[Line]:
    """The first lines that none of the others equals: each is held against each after this."""
    known = {line.plain for line in others}
    unlike = (line for line in lines if line.plain not in known)
    return list(islice(unlike, settings.STALL_MOST_LINES))


def _done_tasks(reading: Reading) -> list[tuple[str, str]]:
    """The tasks that a relay, in whichever section, reports as done, with the line that does."""
    text = relays.render(reading.relay) if reading.relay else ""
    return [
        (name, line)
        for line in outline.lines(text)
        if words.says_done(line)
        for clause in words.clauses(line)
        if words.says_done(clause)
        for name in ask.tasks(clause)
    ]


def _short(text: str) -> str:
    return one_line(text, settings.HEADLINE_CHARACTERS)
