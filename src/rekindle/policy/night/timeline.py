"""Tell an agent's events in few lines, in which repeated events share one."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.documents.screens.agent_night import GLYPHS, LineKind, TimelineLine
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.night.night_marks import find_percent, is_crash
from rekindle.policy.night.night_spans import WAIT_ENDS
from rekindle.policy.operator import event_texts
from rekindle.thresholds.screens import MOMENT_CHARACTERS, MOMENT_EXAMPLES


class TimelineMoment(msgspec.Struct, frozen=True):
    """One event in an agent's timeline, or several similar events in a row."""

    at: datetime
    kind: LineKind
    texts: tuple[str, ...]
    key: str = ""
    """Key shared by moments that may be merged; empty if this moment must not be merged."""
    count: int = 1
    first: int = 0
    """Log position of the first event."""
    last: int = 0
    """Log position of the last event."""

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


def make_lines(
    happened: Sequence[AnyEvent | UnknownEvent], now: datetime, zone: tzinfo | None = None
) -> list[TimelineLine]:
    """Return the timeline as lines for a screen."""
    return [
        TimelineLine(
            at=moment.at,
            kind=moment.kind,
            glyph=GLYPHS[moment.kind],
            text=moment.text,
            count=moment.count,
            first=moment.first,
            last=moment.last,
        )
        for moment in make_timeline(happened, now, zone)
    ]


def make_timeline(
    happened: Sequence[AnyEvent | UnknownEvent], now: datetime, zone: tzinfo | None = None
) -> list[TimelineMoment]:
    """Return the timeline for events in log order.

    Repeated moments are merged into one, even if the agent was resumed after each of them.
    """
    moments: list[TimelineMoment] = []
    for moment in _TimelineReader(happened, now, zone).read():
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
    return msgspec.structs.replace(before, texts=texts, count=count, last=moment.last)


def _make_moment(
    event: AnyEvent, kind: LineKind, text: str, key: str = "", *, last: int = 0
) -> TimelineMoment:
    return TimelineMoment(event.ts, kind, (text,), key, first=event.seq, last=last or event.seq)


class _TimelineReader:
    """Turns events into moments, one event at a time."""

    def __init__(
        self, happened: Sequence[AnyEvent | UnknownEvent], now: datetime, zone: tzinfo | None
    ) -> None:
        self._happened, self._now, self._zone = happened, now, zone
        self._spend = _SpendCounter()
        self._exit = ""
        """Kind of exit of the last launch, unless it was clean or another launch followed."""
        self._handoff: events.HandoffTriggered | events.LaunchEnded | None = None
        """Last report of how full the window was before a handoff."""
        self._asked = 0
        """Log position of the last question that was told with the reason for it."""

    def read(self) -> Iterator[TimelineMoment]:
        for place, event in enumerate(self._happened):
            self._spend.add(event)
            match event:
                case events.LaunchStarted():
                    if self._exit and (event.resumes or event.recovery):
                        yield _describe_resume(event)
                    self._exit = ""
                case events.LaunchEnded():
                    yield from self._read_exit(event)
                case events.CycleEnded():
                    yield _make_moment(event, "cycle", _describe_cycle(event, self._spend.take()))
                case events.WaitStarted() if (
                    stop_reasons.find_outcome(event.why).state == "waiting"
                ):
                    ends = (one.ts for one in self._later(place) if isinstance(one, WAIT_ENDS))
                    yield _describe_wait(event, next(ends, None), self._now, self._zone)
                case events.SafeModeEntered() | events.RunEnded():
                    yield self._describe_stop(event, place)
                case _:
                    yield from self._read_other(event)
        if words := self._spend.take():
            yield TimelineMoment(
                self._spend.at,
                "cycle",
                (f"spent {words}",),
                first=self._spend.seq,
                last=self._spend.seq,
            )

    def _later(self, place: int) -> Iterator[AnyEvent | UnknownEvent]:
        return (self._happened[index] for index in range(place + 1, len(self._happened)))

    def _read_exit(self, event: events.LaunchEnded) -> Iterator[TimelineMoment]:
        self._exit = event.exit if event.exit != "clean" else ""
        if stop_reasons.needs_checkpoint(event.exit) and self._handoff is None:
            self._handoff = event
        if is_crash(event):
            text = explain_reasons.explain_reason(event.exit, event.words)
            yield _make_moment(event, "crash", text, text)

    def _describe_stop(
        self, event: events.SafeModeEntered | events.RunEnded, place: int
    ) -> TimelineMoment:
        """Describe the end of a run, or a pause, together with the question about it."""
        text = event_texts.describe_stop(event)
        following = next(self._later(place), None)
        if not isinstance(following, events.QuestionAsked) or following.about != event.why:
            return _make_moment(event, "end", text)
        self._asked = following.seq
        question = "" if following.text in text else f": {following.text}"
        text = f"{text}{question} ({following.question})"
        return _make_moment(event, "end", text, last=following.seq)

    def _read_other(self, event: AnyEvent | UnknownEvent) -> Iterator[TimelineMoment]:
        match event:
            case events.HandoffTriggered():
                self._handoff = event
            case events.HandoffResumed():
                yield _make_moment(event, "handoff", _describe_handoff(event, self._handoff))
                self._handoff = None
            case events.HandoffFailed():
                yield _make_moment(event, "handoff", f"handoff: {event.words}")
            case events.QuestionAsked() if event.seq != self._asked or not event.seq:
                yield _make_moment(event, "question", event_texts.describe_question(event))
            case events.QuestionAnswered() if not event.refused:
                yield _make_moment(event, "you", event_texts.describe_answer(event))
            case _:
                yield from _read_simple(event)


def _read_simple(event: AnyEvent | UnknownEvent) -> Iterator[TimelineMoment]:
    """Yield the moment for an event that no other event changes."""
    match event:
        case events.CallRefused():
            yield _make_moment(event, "refused", f"{event.tool} {event.about}".strip(), "refused")
        case events.HangDetected(ended=False):
            yield _make_moment(event, "hang", event.words)
        case events.RepetitionDetected():
            yield _make_moment(event, "repeat", event.words)
        case events.SessionCompacted(visitor=False):
            yield _make_moment(event, "compaction", "the conversation was compacted")
        case events.RelayCommitted():
            yield _make_moment(event, "relay", f"new relay by {event.by}: {event.headline}")
        case _ if isinstance(event, event_texts.OperatorAction):
            if text := event_texts.describe_action(event):
                yield _make_moment(event, "you", text)
        case _:
            pass


def _describe_resume(event: events.LaunchStarted) -> TimelineMoment:
    how = "the same session resumed" if event.resumes else "a fresh session took over"
    return _make_moment(event, "resume", how, how)


def _describe_wait(
    event: events.WaitStarted, end: datetime | None, now: datetime, zone: tzinfo | None
) -> TimelineMoment:
    """Describe a finished wait with its duration, or a current wait with its planned end."""
    cause = explain_reasons.explain_reason(event.why) + (f": {event.words}" if event.words else "")
    if end is None and now < event.until:
        until = explain_reasons.render_until(event.until, now, zone)
        return _make_moment(event, "wait", f"waits until {until}: {cause}")
    over = min(end or event.until, event.until)
    duration = _render_duration((over - event.ts).total_seconds())
    until = explain_reasons.render_until(over, now, zone)
    return _make_moment(event, "wait", f"{duration}, until {until}: {cause}", cause)


_HANDOFF_CAUSES = {"person": "you asked for a handoff", "repetition": "it repeated itself"}


def _describe_handoff(
    event: events.HandoffResumed, before: events.HandoffTriggered | events.LaunchEnded | None
) -> str:
    cause = "window full"
    if isinstance(before, events.HandoffTriggered):
        cause = _HANDOFF_CAUSES.get(before.by, cause)
    fill = ""
    if before and before.tokens:
        percent = find_percent(before)
        share = f"{percent:.0f} % of " if percent else ""
        mark = "~" if before.known == "estimated" else ""
        fill = f" at {mark}{share}{before.window or before.tokens:,} tokens"
    return f"{cause}{fill}: handed off to a fresh session ({event.count} in cycle {event.cycle})"


class _SpendCounter:
    """Counts the money and tokens spent since the last call to `take`.

    The log records the totals of each run. The first total shows only where the count starts,
    unless the run started in the same events.
    """

    def __init__(self) -> None:
        self._total: tuple[float, int] | None = None
        self._usd, self._tokens = 0.0, 0
        self._is_estimated = False
        self.at = datetime.min.replace(tzinfo=UTC)
        self.seq = 0

    def add(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case events.RunStarted():
                self._total = (0.0, 0)
            case events.SummaryMade(run_usd=None):
                self._usd, self._tokens = self._usd + event.usd, self._tokens + event.tokens
            case events.SummaryMade() | events.LaunchEnded() | events.ReviewMade():
                self._is_estimated = event.is_estimated is True
                own = (event.run_usd or 0.0) - (event.usd or 0.0)
                self._follow(event.run_usd or 0.0, event.run_tokens or 0, own)
            case events.SpendRecorded():
                self._is_estimated = True
                self._follow(event.usd, event.tokens, event.usd)
            case _:
                return
        self.at, self.seq = event.ts, event.seq

    def _follow(self, usd: float, tokens: int, start: float) -> None:
        """Count up to a new total. `start` is the amount before the first event with a total."""
        before = self._total or (start, tokens)
        self._usd += max(0.0, usd - before[0])
        self._tokens += max(0, tokens - before[1])
        self._total = (usd, tokens)

    def take(self) -> str:
        mark = "~" if self._is_estimated else ""
        parts = [f"{mark}${self._usd:.2f}"] if self._usd else []
        parts += [render_count(self._tokens, "token")] if self._tokens else []
        self._usd, self._tokens = 0.0, 0
        return ", ".join(parts)


def _describe_cycle(event: events.CycleEnded, spent: str) -> str:
    until = {"passed": "`until:` passed", "failed": "`until:` failed"}.get(event.until, "")
    reason = f" ({event.words})" if event.verdict and event.words else event.words
    verdict = f"{event.verdict}{reason}"
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
