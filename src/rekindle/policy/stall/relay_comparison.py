"""Compare two consecutive relays to decide whether the loop made progress between them.

The requests in the relays are compared first, and then the work outside the relays, which
`policy.progress.work_progress` counts. The first rule that applies decides:

1. one relay has no directive: progress if there was work, otherwise unusable; 2. the current relay
waits for a person or an event, and nothing else moved: waiting; 3. an open item is done or gone, or
something else is named first: progress; 4. both ask for endless work in similar words, and there
was no work: treadmill; 5. they ask for different things: progress; 6. they ask for the same thing:
progress if there was work, otherwise stalled. If there was work, an unchanged directive means a
long task, or the directive is out of date. Work does not end a wait: the person must be notified
even if other work was done in the meantime.
"""

from itertools import islice

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import Relay
from rekindle.errors import DocumentError
from rekindle.formats import outline
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings import runtime_settings
from rekindle.policy.stall import (
    directive,
    directive_words,
)
from rekindle.policy.stall.directive import (
    Directive,
    DirectiveLine,
)
from rekindle.policy.stall.verdict import (
    StallKind,
    StallVerdict,
)
from rekindle.policy.text.likeness import (
    find_swapped_word,
    measure_likeness,
)


class StallThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Similarities, from 0 to 1, at which two texts count as the same."""

    same_line: float = runtime_settings.STALL_SAME_LINE
    same_head: float = runtime_settings.STALL_SAME_HEAD
    same_lead: float = runtime_settings.STALL_SAME_LEAD
    same_wait: float = runtime_settings.STALL_SAME_WAIT
    treadmill_head: float = runtime_settings.STALL_TREADMILL_HEAD
    treadmill_lead: float = runtime_settings.STALL_TREADMILL_LEAD


class RelayReading(msgspec.Struct, frozen=True):
    """A parsed relay, for comparison with the relays before and after it."""

    relay: Relay | None
    ask: Directive | None
    problem: str = ""
    """Reason why the relay cannot be compared; empty if it can."""


def compare_relays(
    before: Relay | str,
    after: Relay | str,
    work: str = "",
) -> StallVerdict:
    """Return the verdict on two consecutive relays.

    `work` describes progress outside the relays, or is "" if there was none.
    """
    return judge_readings(read_relay(before), read_relay(after), work)


def read_relay(relay: Relay | str) -> RelayReading:
    try:
        parsed = relays.parse(relay) if isinstance(relay, str) else relay
    except DocumentError as error:
        return RelayReading(None, None, error.reason)
    parsed_directive = directive.read_directive(parsed)
    return RelayReading(parsed, parsed_directive, "" if parsed_directive else "has no directive")


def judge_readings(before: RelayReading, after: RelayReading, work: str = "") -> StallVerdict:
    """Return the same verdict as `compare_relays` for relays that are already parsed."""
    problems = [
        f"the {which} relay {reading.problem}"
        for which, reading in (("previous", before), ("current", after))
        if reading.problem
    ]
    if problems or before.ask is None or after.ask is None:
        kind = StallKind.PROGRESS if work else StallKind.UNUSABLE
        return StallVerdict(
            kind, (*problems, f"but there was work: {work}") if work else tuple(problems)
        )
    pair = _Pair(before, before.ask, after, after.ask, work=work, limits=StallThresholds())
    return pair.verdict()


class _Pair:
    """Two directives, their similarity, and the verdict on them."""

    def __init__(
        self,
        before: RelayReading,
        was: Directive,
        after: RelayReading,
        now: Directive,
        *,
        work: str,
        limits: StallThresholds,
    ) -> None:
        self.before, self.after = before, after
        self.was, self.now, self.work, self.limits = was, now, work, limits
        self.about = _shorten_text(now.head.text)
        self.head = measure_likeness(was.head.plain, now.head.plain)
        self.lead = _measure_carried_share(was.open, now.open)
        self.gone = _select_unmatched(was.open, now.open, limits.same_line)
        self.new = _select_unmatched(now.open, was.open, limits.same_line)
        texts = [[line.plain for line in directive_read.open] for directive_read in (was, now)]
        self.is_equal = texts[0] == texts[1] and was.names == now.names

    def verdict(self) -> StallVerdict:
        about = self.about
        if waited := self._find_wait():
            about, kind, reason = waited, StallKind.WAITING, waited
        elif step := self._find_step():
            kind, reason = StallKind.PROGRESS, step
        elif self._is_more_of_the_same():
            kind, reason = self._judge_with_work(StallKind.TREADMILL, "asks for more of the same")
        elif not self._is_same():
            kind, reason = StallKind.PROGRESS, f"asks for different work: {self.about}"
        elif reported := self._find_reported_task():
            kind, reason = StallKind.PROGRESS, f"asks for the same work, but reports: {reported}"
        else:
            how = "word for word" if self.is_equal else f"{self.lead:.0%} alike"
            kind, reason = self._judge_with_work(
                StallKind.STALLED, f"asks for the same work, {how}"
            )
        return StallVerdict(kind, (reason,), about, self.is_equal)

    def _find_wait(self) -> str:
        """Return the request to wait if it comes first and nothing else changed, otherwise ""."""
        if directive_words.is_wait(self.now.head.text):
            was_waiting = directive_words.is_wait(self.was.head.text)
            return "" if was_waiting and self._has_moved_beside_wait() else self.about
        # Ignore a new wait below a heading, because the heading itself may be new work.
        for line in () if self.now.asks_to_continue else self.now.open[1:2]:
            if directive_words.is_wait(line.text) and any(
                directive_words.is_wait(old.text)
                and measure_likeness(line.plain, old.plain) >= self.limits.same_wait
                for old in self.was.open
            ):
                return _shorten_text(line.text)
        return ""

    def _has_moved_beside_wait(self) -> bool:
        """Return whether more than the wait changed: a done item, a new task or own work."""
        is_new_task = not self.was.tasks.issuperset(directive.find_tasks(self.now.head.text))
        return is_new_task or self._find_ticked() is not None or self._find_own_part() is not None

    def _find_own_part(self) -> DirectiveLine | None:
        """Return the first new request for unattended work, if there were such requests before."""
        if not self.was.unattended:
            return None
        return next((line for line in self.new if line in self.now.unattended), None)

    def _find_step(self) -> str:
        """Describe the progress between two similar directives, or return "" if there was none."""
        if done := self._find_ticked():
            return f"done: {_shorten_text(done.text)}"
        if own := self._find_own_part():
            return f"asks the agent for other unattended work: {_shorten_text(own.text)}"
        if names := self._find_other_names():
            return f"names another task: {', '.join(dict.fromkeys(names[:3]))}"
        word = find_swapped_word(self.was.head.plain, self.now.head.plain)
        if word and not (self.was.asks_to_continue and self.now.asks_to_continue):
            return f"asks for the same work on another subject: {word}"
        dropped_lines = [line for line in self.gone if not directive_words.is_wait(line.text)]
        if dropped_lines and not self.new and len(self.now.open) < len(self.was.open):
            return f"no longer requested: {_shorten_text(dropped_lines[0].text)}"
        return ""

    def _find_ticked(self) -> DirectiveLine | None:
        """Return an item that was open before and is done now, or None."""
        for done in _select_unequal(self.now.done, self.was.done):
            if any(
                measure_likeness(done.plain, line.plain) >= self.limits.same_line
                for line in self.gone
            ):
                return done
        return None

    def _find_other_names(self) -> list[str]:
        """Return the tasks that the directive now names first, but did not before."""
        was, now = self.was.names, self.now.names
        if not was and self.was.asks_to_continue and self.now.asks_to_continue:
            return []  # the endless work just has a name now
        new = [name for name in now if name not in was]
        return new or (now[:1] if was[:1] != now[:1] and was and now else [])

    def _is_more_of_the_same(self) -> bool:
        if self.was.is_open_ended and self.now.is_open_ended:
            return True
        return (
            self.was.asks_to_continue
            and self.now.asks_to_continue
            and self.head >= self.limits.treadmill_head
            and self.lead >= self.limits.treadmill_lead
        )

    def _is_same(self) -> bool:
        return self.head >= self.limits.same_head and self.lead >= self.limits.same_lead

    def _judge_with_work(self, kind: StallKind, words: str) -> tuple[StallKind, str]:
        """Return the verdict on an unchanged directive and its reason, based on the work done."""
        if self.work:
            return StallKind.PROGRESS, f"{words}, but there was work: {self.work}"
        return kind, f"{words}: {self.about}"

    def _find_reported_task(self) -> str:
        """Return a task that is newly reported as done below an unchanged directive, or ""."""
        if not self.is_equal:
            return ""
        done_before = {name for name, _ in _find_done_tasks(self.before)}
        done = (line for name, line in _find_done_tasks(self.after) if name not in done_before)
        return _shorten_text(next(done, "").lstrip("#>*- "))


def _measure_carried_share(was: tuple[DirectiveLine, ...], now: tuple[DirectiveLine, ...]) -> float:
    """Return the share of the first requests that the previous directive had, in any order."""
    previous = {line.plain for line in was}
    lead = now[: runtime_settings.STALL_LEAD_LINES]
    return sum(
        1.0
        if line.plain in previous
        else max(measure_likeness(line.plain, old.plain) for old in was)
        for line in lead
    ) / len(lead)


def _select_unmatched(
    lines: tuple[DirectiveLine, ...], others: tuple[DirectiveLine, ...], same: float
) -> list[DirectiveLine]:
    """Return the lines that are not among the others, not even in different words."""
    candidates = _select_unequal(others, lines)
    return [
        line
        for line in _select_unequal(lines, others)
        if not any(measure_likeness(line.plain, other.plain) >= same for other in candidates)
    ]


def _select_unequal(
    lines: tuple[DirectiveLine, ...], others: tuple[DirectiveLine, ...]
) -> list[DirectiveLine]:
    """Return the first lines that are not among the others, up to a limit."""
    plain_others = {line.plain for line in others}
    unlike = (line for line in lines if line.plain not in plain_others)
    return list(islice(unlike, runtime_settings.STALL_MOST_LINES))


def _find_done_tasks(reading: RelayReading) -> list[tuple[str, str]]:
    """Return the tasks that any section of a relay reports as done, each with its line."""
    text = relays.render(reading.relay) if reading.relay else ""
    return [
        (name, line)
        for line in outline.split_lines(text)
        if directive_words.says_done(line)
        for clause in directive_words.split_clauses(line)
        if directive_words.says_done(clause)
        for name in directive.find_tasks(clause)
    ]


def _shorten_text(text: str) -> str:
    return to_one_line(text, runtime_settings.HEADLINE_CHARACTERS)
