"""Find the periods of a night: launches, waits, safe mode and open questions."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, Event, UnknownEvent
from rekindle.documents.screens.agent_night import NightSpan, SpanLane
from rekindle.policy.exits import explain_reasons
from rekindle.policy.operator.questions import NEVER_BLOCKING, is_still_relevant
from rekindle.policy.supervision import run_moves
from rekindle.policy.supervision.run_moves import RunState

WAIT_ENDS = (
    events.LaunchStarted,
    events.DesiredSet,
    events.RestartRequested,
    events.QuestionAnswered,
    events.WaitStarted,
    events.SafeModeEntered,
    events.RunEnded,
)
"""Events that end a wait before its time."""


def find_spans(happened: Iterable[AnyEvent | UnknownEvent], now: datetime) -> list[NightSpan]:
    """Return the periods in events that are in log order, by start time."""
    reader = _SpanReader()
    for event in happened:
        reader.add(event)
    return sorted(reader.finish(now), key=lambda span: span.start)


class _SpanReader:
    def __init__(self) -> None:
        self._over: list[NightSpan] = []
        self._open: dict[str, NightSpan] = {}
        """Periods that have not ended, by lane, or by lane and id if there can be several."""
        self._exit: events.LaunchEnded | None = None
        self._run = RunState()
        self._questions: dict[str, events.QuestionAsked] = {}

    def add(self, event: AnyEvent | UnknownEvent) -> None:
        if isinstance(event, UnknownEvent):
            return
        if isinstance(event, WAIT_ENDS):
            self._close("wait", event)
        self._follow_run(event)
        match event:
            case events.LaunchStarted() | events.LaunchEnded():
                self._follow_launch(event)
            case events.SessionStarted() | events.SessionEnded() | events.SessionLost():
                self._follow_session(event)
            case events.WaitStarted():
                self._start_wait(event)
            case events.SafeModeEntered():
                text = explain_reasons.explain_reason(event.why, event.words)
                self._start("safe", _make_span("safe", event, text=text, why=event.why))
            case events.QuestionAsked():
                self._questions[event.question] = event
                span = _make_span("question", event, text=event.text, question=event.question)
                self._start(f"question {event.question}", span)
            case _:
                pass

    def finish(self, now: datetime) -> list[NightSpan]:
        """Return all periods. A wait whose time has passed is over."""
        if (wait := self._open.get("wait")) and wait.until and wait.until <= now:
            self._over.append(msgspec.structs.replace(self._open.pop("wait"), end=wait.until))
        return [*self._over, *self._open.values()]

    def _start(self, key: str, span: NightSpan) -> None:
        self._close_at(key, span.start, span.first)
        self._open[key] = span

    def _close(self, key: str, event: Event) -> None:
        self._close_at(key, event.ts, event.seq)

    def _close_at(self, key: str, at: datetime, seq: int, **fields: object) -> None:
        if span := self._open.pop(key, None):
            # The clock may have been set back, and a wait may have ended on time.
            end = max(span.start, min(at, span.until or at))
            self._over.append(msgspec.structs.replace(span, end=end, last=seq, **fields))

    def _follow_run(self, event: AnyEvent) -> None:
        """Close safe mode and questions that are over, by the same rules as the agent's state."""
        match event:
            case events.DesiredSet():
                self._run = run_moves.apply_desired(self._run, event)
            case events.QuestionAnswered(refused=""):
                self._run = run_moves.apply_answer(self._run, event)
                self._close_question(event.question, event)
            case (
                events.RunStarted()
                | events.RunEnded()
                | events.SafeModeEntered()
                | events.RestartRequested()
                | events.PersonAnswered()
            ):
                self._run = run_moves.apply_event(self._run, event)
            case _:
                return
        if not self._run.is_safe:
            self._close("safe", event)
        for question in [*self._questions.values()]:
            if question.about not in NEVER_BLOCKING and not is_still_relevant(self._run, question):
                self._close_question(question.question, event)

    def _close_question(self, question: str, event: Event) -> None:
        self._questions.pop(question, None)
        self._close(f"question {question}", event)

    def _follow_launch(self, event: events.LaunchStarted | events.LaunchEnded) -> None:
        known = {"launch": event.launch, "session": event.session, "cycle": event.cycle}
        if isinstance(event, events.LaunchStarted):
            self._start("launch", _make_span("session", event, resumes=event.resumes, **known))
            return
        self._exit = event
        launch = self._open.get("launch")
        if launch is None or launch.launch != event.launch:
            # The launch started before the first event.
            self._start("launch", _make_span("session", event, resumes=event.resumes, **known))
        text = explain_reasons.explain_reason(event.exit, event.words)
        session = event.session or self._open["launch"].session
        self._close_at("launch", event.ts, event.seq, exit=event.exit, text=text, session=session)

    def _follow_session(
        self, event: events.SessionStarted | events.SessionEnded | events.SessionLost
    ) -> None:
        """Add a person's own sessions, and the ids of sessions that a supervisor launched."""
        key = f"session {event.session}"
        if not isinstance(event, events.SessionStarted):
            self._close(key, event)
        elif event.launch:
            launch = self._open.get("launch")
            if launch and launch.launch == event.launch and not launch.session:
                self._open["launch"] = msgspec.structs.replace(launch, session=event.session)
        elif not event.visitor and key not in self._open:
            self._open[key] = _make_span("session", event, session=event.session)

    def _start_wait(self, event: events.WaitStarted) -> None:
        text, last = explain_reasons.explain_reason(event.why), self._exit
        words = (last.hint or last.words) if last and last.exit == event.why else ""
        span = _make_span(
            "wait", event, text=text, why=event.why, until=max(event.until, event.ts), words=words
        )
        self._start("wait", span)


def _make_span(lane: SpanLane, event: Event, **fields: object) -> NightSpan:
    return msgspec.structs.replace(
        NightSpan(lane=lane, start=event.ts, first=event.seq, last=event.seq), **fields
    )
