"""Find the events of a night to mark on a timeline."""

from collections.abc import Iterable

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.screens.agent_night import NightMark
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.stop_reasons import REACTIONS
from rekindle.thresholds.screens import MOMENT_CHARACTERS


def is_crash(event: events.LaunchEnded) -> bool:
    """Return whether a launch ended with a failure that Rekindle answers with a restart."""
    return event.exit == "lost" or REACTIONS[stop_reasons.find_reaction(event.exit)].counts


def find_percent(event: events.HandoffTriggered | events.LaunchEnded) -> float | None:
    """Return the context-window usage in percent, or None if it is unknown."""
    if not event.tokens or not event.window:
        return None
    return round(100 * event.tokens / event.window, 1)


def find_marks(happened: Iterable[AnyEvent | UnknownEvent]) -> list[NightMark]:
    """Return the marks of events, by time."""
    marks = [mark for event in happened if (mark := _make_mark(event))]
    return sorted(marks, key=lambda mark: mark.at)


def _make_mark(event: AnyEvent | UnknownEvent) -> NightMark | None:  # noqa: PLR0911 - one return per kind
    at, seq = event.ts, event.seq
    match event:
        case events.LaunchEnded():
            return _mark_exit(event)
        case events.HandoffTriggered():
            return NightMark(at, seq, "handoff", percent=find_percent(event), by=event.by)
        case events.HangDetected() | events.RepetitionDetected():
            is_hang = isinstance(event, events.HangDetected)
            return NightMark(at, seq, "hang" if is_hang else "repeat", text=_cut(event.words))
        case events.SessionCompacted(visitor=False):
            return NightMark(at, seq, "compaction", text=event.trigger)
        case events.RelayCommitted():
            return NightMark(at, seq, "relay", text=_cut(event.headline), by=event.by)
        case events.CycleEnded():
            text = f"cycle {event.cycle}{f': {event.words}' if event.words else ''}"
            return NightMark(at, seq, "cycle", text=_cut(text), verdict=event.verdict)
        case events.QuestionAsked():
            text, question = _cut(event.text), event.question
            return NightMark(at, seq, "question", text=text, question=question)
        case events.QuestionAnswered() if not event.refused:
            text, by = _cut(event.choice or event.text), event.by or event.origin
            return NightMark(at, seq, "answer", text=text, by=by, question=event.question)
        case events.CallRefused():
            return NightMark(at, seq, "refused", text=_cut(f"{event.tool} {event.about}"))
        case _:
            return None


def _mark_exit(event: events.LaunchEnded) -> NightMark | None:
    text = _cut(explain_reasons.explain_reason(event.exit, event.words))
    if is_crash(event):
        return NightMark(event.ts, event.seq, "crash", text=text)
    if event.exit == "limit":
        return NightMark(event.ts, event.seq, "limit", text=text)
    if event.exit == "context-full":
        percent = find_percent(event)
        return NightMark(event.ts, event.seq, "handoff", percent=percent, by="cli")
    return None


def _cut(text: str) -> str:
    return to_one_line(text.strip(), MOMENT_CHARACTERS)
