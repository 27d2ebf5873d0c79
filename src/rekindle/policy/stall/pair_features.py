"""Measure what changed between two consecutive relays, as numbers that `stall_weights` weighs.

Every feature is between 0 and about 1, and is computed from the texts alone. Evidence of work does
not change the verdict: stuck agents change files too. It decides how Rekindle reacts to the verdict
(`stall_response`).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.relay import Relay, RelayField
from rekindle.errors import DocumentError
from rekindle.formats import outline
from rekindle.policy.relay.claimed_end import reports_all_done
from rekindle.policy.settings.runtime_settings import (
    STALL_LEAD_LINES,
    STALL_MOST_LINES,
    STALL_SAME_LINE,
)
from rekindle.policy.stall import directive_words
from rekindle.policy.stall.directive import (
    Directive,
    DirectiveLine,
    find_tasks,
    read_directive,
    read_free_text,
    read_lines,
)
from rekindle.policy.text.likeness import find_swapped_word, measure_likeness


class RelayReading(msgspec.Struct, frozen=True):
    """A parsed relay, for comparison with the relays before and after it."""

    relay: Relay | None
    ask: Directive | None
    problem: str = ""
    """Reason why the relay has no directive to compare; empty if it has one."""
    lines: tuple[tuple[str, DirectiveLine], ...] = ()
    """All lines of the relay, as written and parsed."""


def read_relay(relay: Relay | str) -> RelayReading:
    try:
        parsed = relays.parse(relay) if isinstance(relay, str) else relay
    except DocumentError as error:
        return RelayReading(None, None, error.reason)
    texts = (text.rstrip("\r\n") for text in outline.split_lines(relays.render(parsed)))
    lines = tuple(read_lines(texts))
    ask = read_directive(parsed)
    is_finished = any(directive_words.reports_finish(text) for text, _ in lines[:STALL_LEAD_LINES])
    if ask is None and (is_finished or not parsed.places(RelayField.NEXT_ACTION)):
        # Notes have no heading for a directive, and a finished relay asks for nothing.
        ask = read_free_text(lines)
    return RelayReading(parsed, ask, "" if ask else "has no directive", lines)


class RelayPair:
    """Two consecutive relays, their requests, and the lines that differ between them."""

    def __init__(self, before: RelayReading, after: RelayReading) -> None:
        was, now = before.ask, after.ask
        if was is None or now is None:
            raise ValueError("a relay without a directive cannot be compared")
        if was.is_free != now.is_free:  # compare like with like
            was = read_free_text(before.lines) or was
            now = read_free_text(after.lines) or now
        self.before, self.after, self.was, self.now = before, after, was, now
        self.gone = _select_unmatched(was.open, now.open)
        self.new = _select_unmatched(now.open, was.open)
        self.done = _select_unequal(now.done, was.done)
        known = {line.plain for _, line in before.lines}
        self.new_lines = [line for _, line in after.lines if line.plain not in known]
        written = {text for text, _ in before.lines}
        self.rewritten = [(text, line) for text, line in after.lines if text not in written]
        self.recounted = sum(line.plain in known for _, line in self.rewritten)
        self.bodies = [" ".join(line.plain for line in ask.open) for ask in (was, now)]

    @property
    def is_equal(self) -> bool:
        """Return whether both relays ask for the same work in the same words."""
        if self.now.is_free and self.new_lines:
            return False  # the new lines may be the request
        return self.bodies[0] == self.bodies[1] and self.was.names == self.now.names

    @property
    def is_reworded(self) -> bool:
        """Return whether the relay says nothing new: each line is similar to an earlier one."""
        if self.done or self.gone or len(self.new_lines) > STALL_LEAD_LINES:
            return False
        earlier = [line for _, line in self.before.lines]
        is_known = all(_is_among(line, earlier) for line in self.new_lines)
        return is_known and not self.reported_task

    @property
    def has_moved_while_waiting(self) -> bool:
        """Return whether more than a wait changed: a done item, another task or own work."""
        is_new = not self.was.tasks.issuperset(find_tasks(self.now.head.text))
        waits_for_more = is_new and directive_words.is_wait(self.was.head.text)
        own = self.was.unattended and any(line in self.now.unattended for line in self.new)
        return waits_for_more or bool(own) or self.ticked is not None

    @cached_property
    def likeness(self) -> float:
        """Return how similar the two requests are, from 0 to 1."""
        return measure_likeness(*self.bodies)

    @property
    def lead(self) -> tuple[DirectiveLine, ...]:
        """Return the open lines that count as the request's subject."""
        return self.now.open[:STALL_LEAD_LINES]

    @cached_property
    def other_names(self) -> list[str]:
        """Return the tasks that the directive now names first, but did not before."""
        was, now = self.was.names, self.now.names
        if not was and self.was.asks_to_continue and self.now.asks_to_continue:
            return []  # the endless work just has a name now
        new = [name for name in now if name not in was]
        return new or (now[:1] if was[:1] != now[:1] and was and now else [])

    @cached_property
    def swapped_word(self) -> str:
        """Return the word that names another subject in the same request, or ""."""
        if self.was.asks_to_continue and self.now.asks_to_continue:
            return ""
        return find_swapped_word(self.was.head.plain, self.now.head.plain)

    @cached_property
    def reported_task(self) -> str:
        """Return the line that newly reports a task as done, or ""."""
        known = {name for name, _ in _find_done_tasks(self.before)}
        done = (line for name, line in _find_done_tasks(self.after) if name not in known)
        return next(done, "")

    @cached_property
    def ticked(self) -> DirectiveLine | None:
        """Return an item that was open before and is done now, or None."""
        return next((done for done in self.done if _is_among(done, self.gone)), None)

    @cached_property
    def wait(self) -> DirectiveLine | None:
        """Return the first line that waits for a person or an event, or None."""
        waits = [line for line in self.lead if directive_words.mentions_wait(line.text)]
        idles = [line for line in self.lead[:1] if directive_words.starts_idle(line.text)]
        return next(iter((*waits, *idles)), None)

    @property
    def waits_explicitly(self) -> bool:
        """Return whether the request itself is to wait, instead of only mentioning a person."""
        head = self.now.head.text
        return directive_words.is_wait(head) or directive_words.starts_idle(head)

    @cached_property
    def lists_own_work(self) -> bool:
        """Return whether the relay asks for work that needs no one else."""
        return any(
            not line.is_label
            and (
                not directive_words.mentions_wait(line.text)
                or directive_words.works_meanwhile(line.text)
            )
            and not directive_words.is_idle(line.text)
            and not directive_words.reports_finish(line.text)
            and not directive_words.is_optional(line.text)
            for line in self.now.open
        )

    @cached_property
    def reports_finish(self) -> bool:
        """Return whether the relay reports the end of all the work, or that nothing is left."""
        if self.after.relay is not None and reports_all_done(self.after.relay):
            return True
        return self._says_at_top(directive_words.reports_finish) and any(
            directive_words.is_idle(line.text) for line in self.lead
        )

    def _says_at_top(self, check: Callable[[str], bool]) -> bool:
        return any(check(line.text) for _, line in self.after.lines[:STALL_LEAD_LINES])

    def measure(self) -> dict[str, float]:
        """Return the features by name."""
        was, now = self.was, self.now
        more = [directive_words.asks_for_more(ask.head.text) for ask in (was, now)]
        done_lines = sum(directive_words.says_done(text) for text, _ in self.rewritten)
        is_shorter = bool(self.gone) and not self.new and len(now.open) < len(was.open)
        return {
            "same_head": measure_likeness(was.head.plain, now.head.plain),
            "same_body": self.likeness,
            "is_equal": float(self.bodies[0] == self.bodies[1]),
            "new_name": float(bool(self.other_names)),
            "reported": float(bool(self.reported_task)),
            "shorter": float(is_shorter),
            "gone": len(self.gone) / len(was.open),
            "ticked": float(self.ticked is not None),
            "done_lines": min(done_lines, STALL_LEAD_LINES) / STALL_LEAD_LINES,
            "recounted": self.recounted / max(1, len(self.rewritten)),
            "more": float(more[1]),
            "more_again": float(all(more)),
            "endless": float(was.is_open_ended and now.is_open_ended),
            "waits_first": float(directive_words.is_wait(now.head.text)),
            "waits": float(any(directive_words.is_wait(line.text) for line in self.lead)),
            "holds": float(any(directive_words.mentions_wait(line.text) for line in self.lead)),
            "needs_person": float(self._says_at_top(directive_words.needs_person)),
            "finished": float(self.reports_finish),
        }


def _is_among(line: DirectiveLine, others: Sequence[DirectiveLine]) -> bool:
    return any(measure_likeness(line.plain, other.plain) >= STALL_SAME_LINE for other in others)


def _select_unmatched(
    lines: tuple[DirectiveLine, ...], others: tuple[DirectiveLine, ...]
) -> list[DirectiveLine]:
    """Return the lines that are not among the others, not even in different words."""
    candidates = _select_unequal(others, lines)
    return [line for line in _select_unequal(lines, others) if not _is_among(line, candidates)]


def _select_unequal(
    lines: tuple[DirectiveLine, ...], others: tuple[DirectiveLine, ...]
) -> list[DirectiveLine]:
    """Return the first lines that are not among the others, up to a limit."""
    plain_others = {line.plain for line in others}
    return list(islice((x for x in lines if x.plain not in plain_others), STALL_MOST_LINES))


def _find_done_tasks(reading: RelayReading) -> list[tuple[str, str]]:
    """Return the tasks that any section of a relay reports as done, each with its line."""
    return [
        (name, text)
        for text, _ in reading.lines
        if directive_words.says_done(text)
        for clause in directive_words.split_clauses(text)
        if directive_words.says_done(clause)
        for name in find_tasks(clause)
    ]
