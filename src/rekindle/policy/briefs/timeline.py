"""Summarize an agent's events between two mornings as a short timeline."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Literal

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.stop_reasons import REACTIONS
from rekindle.thresholds.screens import MOMENT_CHARACTERS, MOMENT_EXAMPLES

_ENDS_WAIT = (
    events.LaunchStarted,
    events.DesiredSet,
    events.RestartRequested,
    events.QuestionAnswered,
    events.WaitStarted,
    events.SafeModeEntered,
    events.RunEnded,
)
MomentKind = Literal["crash", "resume", "handoff", "wait", "refused", "cycle", "you", "end"]


class TimelineMoment(msgspec.Struct, frozen=True):
    """One event in an agent's timeline, or several similar events in a row."""

    at: datetime
    kind: MomentKind
    texts: tuple[str, ...]
    key: str = ""
    """Key shared by moments that may be merged; empty if this moment must not be merged."""
    count: int = 1

    @property
    def text(self) -> str:
        """Return the moment as one line."""
        if self.kind == "refused":
            return _describe_refused(self.texts, self.count)
        times, last = f" {self.count} times" if self.count > 1 else "", self.texts[-1]
        text = {
            "crash": f"crashed{times}: {last}",
            "resume": f"{last}{times}",
            "wait": f"waited{times}{', the last time' if times else ''} {last}"
            if self.key
            else last,
        }.get(self.kind, last)
        return to_one_line(text, MOMENT_CHARACTERS)


def make_timeline(
    happened: Sequence[AnyEvent | UnknownEvent], now: datetime, zone: tzinfo | None = None
) -> list[TimelineMoment]:
    """Return the timeline for events in log order.

    Repeated moments are merged into one, even if the agent was resumed after each of them.
    """
    moments: list[TimelineMoment] = []
    for moment in _read_moments(happened, now, zone):
        is_resumed = len(moments) > 1 and moments[-1].kind == "resume"
        for place in (-1, -2) if is_resumed else (-1,):
            if moments and moment.key and moments[place].key == moment.key:
                moments[place] = _merge_moments(moments[place], moment)
                break
        else:
            moments.append(moment)
    return sorted(moments, key=lambda moment: moment.at)


def _merge_moments(before: TimelineMoment, moment: TimelineMoment) -> TimelineMoment:
    texts, count = (*before.texts, *moment.texts), before.count + moment.count
    return msgspec.structs.replace(before, texts=texts, count=count)


def _read_moments(
    happened: Sequence[AnyEvent | UnknownEvent], now: datetime, zone: tzinfo | None
) -> Iterator[TimelineMoment]:
    spend = _SpendCounter()
    ended = ""
    for place, event in enumerate(happened):
        spend.add(event)
        match event:
            case events.LaunchStarted():
                if ended and (event.resumes or event.recovery):
                    yield _describe_resume(event)
                ended = ""
            case events.LaunchEnded():
                is_crash = (
                    event.exit == "lost" or REACTIONS[stop_reasons.find_reaction(event.exit)].counts
                )
                ended = event.exit if event.exit != "clean" else ""
                if is_crash:
                    text = explain_reasons.explain_reason(event.exit, event.words)
                    yield TimelineMoment(event.ts, "crash", (text,), text)
            case events.CycleEnded():
                yield TimelineMoment(event.ts, "cycle", (_describe_cycle(event, spend.take()),))
            case events.WaitStarted() if stop_reasons.find_outcome(event.why).state == "waiting":
                later = (happened[index] for index in range(place + 1, len(happened)))
                end = next(
                    (
                        event_after.ts
                        for event_after in later
                        if isinstance(event_after, _ENDS_WAIT)
                    ),
                    None,
                )
                yield _describe_wait(event, end, now, zone)
            case _:
                yield from _read_other(event)
    if words := spend.take():
        yield TimelineMoment(spend.at, "cycle", (f"spent {words}",))


def _describe_resume(event: events.LaunchStarted) -> TimelineMoment:
    how = "the same session resumed" if event.resumes else "a fresh session took over"
    return TimelineMoment(event.ts, "resume", (how,), how)


def _describe_wait(
    event: events.WaitStarted, end: datetime | None, now: datetime, zone: tzinfo | None
) -> TimelineMoment:
    """Describe a finished wait with its duration, or a current wait with its planned end."""
    cause = explain_reasons.explain_reason(event.why)
    if end is None and now < event.until:
        until = explain_reasons.render_until(event.until, now, zone)
        return TimelineMoment(event.ts, "wait", (f"waits until {until}: {cause}",))
    seconds = (min(end or event.until, event.until) - event.ts).total_seconds()
    return TimelineMoment(event.ts, "wait", (f"{_render_duration(seconds)}: {cause}",), cause)


def _read_other(event: AnyEvent | UnknownEvent) -> Iterator[TimelineMoment]:
    match event:
        case events.HandoffResumed():
            text = (
                f"window full: handed off to a fresh session ({event.count} in cycle {event.cycle})"
            )
            yield TimelineMoment(event.ts, "handoff", (text,))
        case events.CallRefused():
            yield TimelineMoment(
                event.ts, "refused", (f"{event.tool} {event.about}".strip(),), "refused"
            )
        case events.SafeModeEntered() | events.RunEnded():
            outcome = stop_reasons.find_outcome(event.why).words
            text = f"{outcome}: {explain_reasons.explain_reason(event.why, event.words)}"
            yield TimelineMoment(event.ts, "end", (text,))
        case events.DesiredSet() if event.desired == "stopped":
            yield TimelineMoment(event.ts, "you", ("you stopped it",))
        case events.QuestionAnswered() if not event.refused:
            by = event.by or "its deadline"
            text = f"{event.question} answered by {by}: {event.choice or event.text}"
            yield TimelineMoment(event.ts, "you", (text,))
        case _:
            pass


class _SpendCounter:
    """Counts the money and tokens spent since the last call to `take`."""

    def __init__(self) -> None:
        self._usd, self._tokens = 0.0, 0
        self.at = datetime.min.replace(tzinfo=UTC)

    def add(self, event: AnyEvent | UnknownEvent) -> None:
        if isinstance(event, events.LaunchEnded | events.SummaryMade):
            self._usd += event.usd or 0.0
            self._tokens += event.tokens or 0
            self.at = event.ts

    def take(self) -> str:
        parts = [f"${self._usd:.2f}"] if self._usd else []
        parts += [render_count(self._tokens, "token")] if self._tokens else []
        self._usd, self._tokens = 0.0, 0
        return ", ".join(parts)


def _describe_cycle(event: events.CycleEnded, spent: str) -> str:
    until = {"passed": "`until:` passed", "failed": "`until:` failed"}.get(event.until, "")
    verdict = "" if event.verdict in {"", "progress"} else event.verdict
    facts = ", ".join(filter(None, (verdict, until, spent)))
    return f"cycle {event.cycle} ended{f': {facts}' if facts else ''}"


def _describe_refused(texts: tuple[str, ...], count: int) -> str:
    examples = [to_one_line(text, MOMENT_CHARACTERS) for text in dict.fromkeys(texts)][
        :MOMENT_EXAMPLES
    ]
    more = f" and {count - len(examples)} more" if count > len(examples) else ""
    calls = "a tool call was" if count == 1 else f"{count} tool calls were"
    return f"{calls} refused, no permission: {', '.join(examples)}{more}"


def _render_duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{rest} min"
