"""Fold a sequence of events into a projection.

The result depends only on the set of events, not on their order or on duplicates: loops are sets of
marks, everything else is the latest by time or by position in the log. Therefore readers can add
the inbox to the log without a lock, and a crashed fold can be repeated.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    CycleEnded,
    UnknownEvent,
)
from rekindle.documents.state import State
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.briefs.brief_schedule import BriefState
from rekindle.policy.projection import (
    open_loops,
    sessions,
)
from rekindle.policy.projection.open_loops import (
    Loop,
    LoopMark,
)
from rekindle.policy.projection.sessions import (
    LaunchRecord,
    SessionRecord,
)
from rekindle.policy.settings import runtime_settings
from rekindle.policy.stall import ladder
from rekindle.policy.stall.ladder import (
    CycleBeginning,
    LastAnswer,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.policy.supervision.run_moves import RunState
from rekindle.thresholds.supervision import (
    QUESTIONS_KEPT,
    REPORTS_KEPT,
    SAME_START_SECONDS,
)

SessionEvent = (
    events.SessionStarted
    | events.SessionEnded
    | events.PromptSubmitted
    | events.SessionCompacted
    | events.Heartbeat
)


class TimedValue(msgspec.Struct, frozen=True):
    """The latest value of one key."""

    ts: datetime
    value: Any


class CommittedDocument(msgspec.Struct, frozen=True):
    """The last commit of a document, with the details that readers need without the archive."""

    seq: int
    ts: datetime
    sha256: str
    previous: str
    path: str
    by: str
    tokens: int
    headline: str
    trimmed: str = ""
    over_cap: bool = False
    is_said: bool = False
    """Whether a person set it with a command."""
    session: str = ""
    """For a checkpoint, the only session that may use it; empty for any."""


class LastActivity(msgspec.Struct, frozen=True, order=True):
    """The last report of a session, by its position in the log, regardless of the clock."""

    seq: int = 0
    at: float = 0.0
    """Unix time."""


class KnownWindow(msgspec.Struct, frozen=True, order=True):
    seq: int
    window: int


class WindowFill(msgspec.Struct, frozen=True, order=True):
    """How full the window of the last session was when it was last measured."""

    seq: int = 0
    tokens: int = 0
    window: int = 0
    """Size in tokens; 0 if unknown."""
    known: str = "unknown"


class OwnerMove(msgspec.Struct, frozen=True, order=True):
    """The last time that another host took over the agent."""

    seq: int = 0
    host: str = ""
    previous: str = ""
    left: str = ""


class LostEvents(msgspec.Struct, frozen=True):
    """Events that were in the log and can no longer be read."""

    after: int
    """Sequence number of the last event before them."""
    before: int = 0
    """Sequence number of the next readable event; 0 if there is no gap in the numbers."""


class Projection(msgspec.Struct, frozen=True):
    agent: str
    seq: int = 0
    gen: int = 0
    last_active: datetime | None = None
    loops: dict[str, Loop] = {}
    numbers: dict[str, TimedValue] = {}
    extra: dict[str, TimedValue] = {}
    documents: dict[str, CommittedDocument] = {}
    cursors: dict[str, int] = {}
    """Offset up to which each inbox segment was folded into the log."""
    seen: dict[str, datetime] = {}
    """Recent reports of hooks, with their times. Hooks that are installed twice report everything
    twice.
    """
    lives: dict[str, SessionRecord] = {}
    attempts: dict[str, LaunchRecord] = {}
    cycle: int = 0
    """The last started cycle."""
    cycle_ended: int = 0
    run: RunState = RunState()
    heard: LastActivity = LastActivity()
    began: CycleBeginning = CycleBeginning()
    ended: dict[int, CycleEnded] = {}
    """The last ended cycles, by number."""
    answer: LastAnswer = LastAnswer()
    windows: dict[str, dict[str, KnownWindow]] = {}
    """Window size of each model, by harness, as its CLI last reported."""
    handoff_asked: int = 0
    """Log position of the last request for a handoff."""
    briefed: BriefState = BriefState()
    moved: OwnerMove = OwnerMove()
    workspace: events.WorkspacePushed | None = None
    unpushed: events.WorkspacePushFailed | None = None
    """Why the current work exists only on its host; None if it was pushed."""
    fresh_asked: int = 0
    """Log position of the last request for a fresh session."""
    loss: LostEvents | None = None
    """The last loss of events."""
    questions: dict[str, events.QuestionAsked] = {}
    """The last questions to a person, by id."""
    answers: dict[str, events.QuestionAnswered] = {}
    """The valid answer to each question, by id."""
    window: WindowFill = WindowFill()
    reviewed: ladder.LastReview = ladder.LastReview()

    @property
    def may_miss_stop(self) -> bool:
        """Whether the agent should run, but lost events may contain a later stop."""
        word = max(self.run.wanted, self.run.restarted)
        is_wanted = self.run.desired == "running"
        return is_wanted and self.loss is not None and word <= self.loss.after

    @property
    def is_cycle_open(self) -> bool:
        return self.cycle > self.cycle_ended

    @property
    def current_cycle(self) -> int:
        """The open cycle, or the next one."""
        return self.cycle if self.is_cycle_open else self.cycle + 1

    @property
    def last_ended_cycle(self) -> CycleEnded | None:
        """The last ended cycle, or None."""
        return self.ended[max(self.ended)] if self.ended else None

    @property
    def new_answers(self) -> list[LastAnswer]:
        """Answers of a person since the last ended cycle, which no cycle has used yet."""
        last = self.last_ended_cycle
        recorded = [
            LastAnswer(answer.seq, answer.text, answer.asked)
            for answer in self.answers.values()
            if answer.text
        ]
        return sorted(
            answer for answer in (self.answer, *recorded) if answer.seq > (last.seq if last else 0)
        )


def fold_events(before: Projection, happened: Iterable[AnyEvent | UnknownEvent]) -> Projection:
    now = _ProjectionBuilder(before)
    for event in happened:
        if isinstance(event, events.AgentReceived) and event.seq >= now.seq:
            # The event contains everything before it.
            now = _ProjectionBuilder(msgspec.convert(event.known, Projection, str_keys=True))
        now.take(event)
    return now.projection()


def make_report_key(event: AnyEvent | UnknownEvent) -> str:  # noqa: PLR0911 - one for each kind of report
    """Return the key that identical reports of hooks share; empty if every report counts."""
    match event:
        case events.Heartbeat() if event.call:
            return f"call {event.session} {event.call}"
        case events.PromptSubmitted() if event.call:
            return f"prompt {event.session} {event.call}"
        case events.SessionStarted() if event.process or event.source == "compact":
            return f"start {event.session} {event.source} {event.process}"
        case events.SessionCompacted():
            return f"compacted {event.session} {event.trigger}"
        case events.SessionEnded():
            return f"end {event.session} {event.reason}"
        case events.PrimerGiven():
            return f"primer {event.session} {event.source}"
        case _:
            return ""


def is_repeated(seen: Mapping[str, datetime], event: AnyEvent | UnknownEvent) -> bool:
    """Return whether another hook has reported the same event; hooks may exist at three levels.

    A session can be compacted, and end after a resume, more than once. For these, only reports
    within moments of each other are the same.
    """
    before = seen.get(make_report_key(event))
    if before is None:
        return False
    is_close = abs((event.ts - before).total_seconds()) < SAME_START_SECONDS
    match event:
        case events.SessionStarted(source="compact") | events.SessionCompacted():
            return is_close
        case events.SessionEnded():
            starts = f"start {event.session} "
            resumed = any(at > before for key, at in seen.items() if key.startswith(starts))
            return is_close and not resumed
        case _:
            return True


def keep_newest_reports(seen: dict[str, datetime], most: int = REPORTS_KEPT) -> dict[str, datetime]:
    """Return the newest reports. Duplicates arrive within moments, so older ones are not needed."""
    newest = sorted(seen.items(), key=lambda item: (item[1], item[0]))[-most:]
    return dict(newest)


def prune_projection(projection: Projection) -> Projection:
    """Return the projection for a snapshot, without old entries."""
    return msgspec.structs.replace(
        projection,
        seen=keep_newest_reports(projection.seen),
        lives=sessions.prune_sessions(projection.lives),
        attempts=sessions.prune_launches(projection.attempts),
        briefed=brief_schedule.prune_brief_state(projection.briefed),
        questions=(newest := _prune_questions(projection)),
        answers={name: answer for name, answer in projection.answers.items() if name in newest},
    )


def _prune_questions(projection: Projection) -> dict[str, events.QuestionAsked]:
    newest = sorted(projection.questions.values(), key=lambda question: question.seq)
    return {question.question: question for question in newest[-QUESTIONS_KEPT:]}


def make_state(
    projection: Projection, now: datetime, limits: runtime_settings.LoopSettings
) -> State:
    """Return the projection as readers of state.json see it."""
    return State(
        agent=projection.agent,
        seq=projection.seq,
        last_active=projection.last_active,
        open_loops=open_loops.list_open_loops(projection.loops, now, limits),
        resolved=open_loops.list_recently_resolved(projection.loops, now, limits),
        numbers={key: entry.value for key, entry in projection.numbers.items()},
        extra={key: entry.value for key, entry in projection.extra.items()},
    )


def adopt_state(projection: Projection, edited: State, now: datetime) -> events.StateAdopted | None:
    """Return the event that adopts an edit of state.json; None if nothing changed.

    `projection` is the one that the file was written from. With a newer one, every change since
    would look like an edit that undoes it.
    """
    adopted_loops = open_loops.adopt_loops(projection.loops, edited, now)
    numbers = _find_changed_values(projection.numbers, edited.numbers)
    extra = _find_changed_values(projection.extra, edited.extra)
    replaced = [
        known[key].ts
        for known, news in ((projection.numbers, numbers), (projection.extra, extra))
        for key in news
        if key in known
    ]
    adopted = msgspec.structs.replace(
        adopted_loops,
        ts=open_loops.stamp_after(adopted_loops.ts, *replaced),
        numbers=numbers,
        extra=extra,
        last_active=edited.last_active,
    )
    is_later = edited.last_active is not None and (
        projection.last_active is None or edited.last_active > projection.last_active
    )
    has_loops = adopted.open_loops or adopted.resolved or adopted.corrections
    return adopted if has_loops or adopted.numbers or adopted.extra or is_later else None


def _find_changed_values(known: dict[str, TimedValue], said: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in said.items()
        if key not in known
        or open_loops.encode_value(known[key].value) != open_loops.encode_value(value)
    }


class _ProjectionBuilder:
    """A projection under construction; dictionaries are copied once, not per event."""

    def __init__(self, before: Projection) -> None:
        self._before = before
        self.agent = before.agent
        self.seq = before.seq
        self.gen = before.gen
        self.last_active = before.last_active
        self.loops = dict(before.loops)
        self.numbers = dict(before.numbers)
        self.extra = dict(before.extra)
        self.documents = dict(before.documents)
        self.cursors = dict(before.cursors)
        self.seen = dict(before.seen)
        self.lives = dict(before.lives)
        self.attempts = dict(before.attempts)
        self.cycle = before.cycle
        self.cycle_ended = before.cycle_ended
        self.run = before.run
        self.heard = before.heard
        self.began = before.began
        self.ended = dict(before.ended)
        self.answer = before.answer
        self.windows = dict(before.windows)
        self.handoff_asked = before.handoff_asked
        self.briefed = before.briefed
        self.moved = before.moved
        self.workspace = before.workspace
        self.unpushed = before.unpushed
        self.fresh_asked = before.fresh_asked
        self.loss = before.loss
        self.questions = dict(before.questions)
        self.answers = dict(before.answers)
        self.window = before.window
        self.reviewed = before.reviewed

    def projection(self) -> Projection:
        return Projection(
            self.agent,
            self.seq,
            self.gen,
            self.last_active,
            self.loops,
            self.numbers,
            self.extra,
            self.documents,
            self.cursors,
            self.seen,
            self.lives,
            self.attempts,
            self.cycle,
            self.cycle_ended,
            self.run,
            self.heard,
            self.began,
            self.ended,
            self.answer,
            self.windows,
            self.handoff_asked,
            self.briefed,
            self.moved,
            self.workspace,
            self.unpushed,
            self.fresh_asked,
            self.loss,
            self.questions,
            self.answers,
            self.window,
            self.reviewed,
        )

    def take(self, event: AnyEvent | UnknownEvent) -> None:
        self._advance_position(event)
        if isinstance(event, events.HOOK_REPORTS):
            self._apply_session(event)
            return
        match event:
            case events.LoopAdded():
                self._add_mark(event.id, LoopMark(event.ts, event.text, added=event.added))
            case events.LoopResolved():
                self._add_mark(event.id, LoopMark(event.ts, event.reason, closes=True))
            case events.StateAdopted():
                self._apply_adopted(event)
            case events.RelayCommitted():
                self._apply_commit(event, trimmed=event.trimmed, over_cap=event.over_cap)
            case events.CheckpointCommitted():
                self._apply_commit(event, session=event.session)
            case events.BriefCommitted():
                self._apply_commit(event)
            case (
                events.HandoffTriggered()
                | events.HandoffResumed()
                | events.HandoffRequested()
                | events.WindowSizeReported()
                | events.WindowMeasured()
            ):
                self._apply_handoff(event)
            case events.BriefMade():
                self.briefed = brief_schedule.record_brief(self.briefed, event)
                self._record_activity(event.last_active)
                _keep_latest(self.numbers, event.numbers, event.ts)
            case _:
                self._apply_run(event)

    def _apply_question(
        self, event: events.QuestionAsked | events.QuestionAnswered | events.PersonAnswered
    ) -> None:
        """Store the first question of an id and its first answer, by position in the log."""
        match event:
            case events.QuestionAsked():
                asked = self.questions.get(event.question)
                if asked is None or 0 < event.seq < asked.seq:
                    self.questions[event.question] = event
            case events.QuestionAnswered(refused=""):
                answer = self.answers.get(event.question)
                if answer is None or 0 < event.seq < answer.seq:
                    self.answers[event.question] = event
                if event.seq or answer is None:  # of several answers in the inbox, use the first
                    self.run = runs.apply_answer(self.run, event)
            case events.PersonAnswered():
                self.answer = max(self.answer, LastAnswer(event.seq, event.text, event.asked))
                self.run = runs.apply_event(self.run, event)

    def _advance_position(self, event: AnyEvent | UnknownEvent) -> None:
        self.seq = max(self.seq, event.seq)
        self.gen = max(self.gen, event.gen)
        if event.at:
            segment, _, offset = event.at.rpartition(":")
            if offset.isdecimal():
                self.cursors[segment] = max(self.cursors.get(segment, 0), int(offset))
        if key := make_report_key(event):
            self.seen[key] = max(event.ts, self.seen.get(key, event.ts))

    def _cycle(self, event: events.CycleStarted | events.ReviewMade | events.CycleEnded) -> None:
        match event:
            case events.CycleStarted():
                self.cycle = max(self.cycle, event.cycle)
                self.began = max(self.began, ladder.read_cycle_beginning(event))
            case events.ReviewMade():
                self.reviewed = max(self.reviewed, ladder.record_review(event))
                self.run = runs.apply_event(self.run, event)
            case events.CycleEnded():
                self.cycle_ended = max(self.cycle_ended, event.cycle)
                ladder.remember_cycle_end(self.ended, event)

    def _apply_run(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case events.SessionLost():
                sessions.record_session_end(self.lives, event)
            case events.OwnerChanged() | events.WorkspacePushed() | events.WorkspacePushFailed():
                self._apply_place(event)
            case events.CycleStarted() | events.ReviewMade() | events.CycleEnded():
                self._cycle(event)
            case events.LaunchStarted():
                sessions.record_launch_start(self.attempts, event)
            case events.LaunchEnded():
                sessions.record_launch_end(self.attempts, event)
                self._apply_measurement(event)
                self.run = runs.apply_event(self.run, event)
            case events.DesiredSet():
                self.run = runs.apply_desired(self.run, event)
            case events.RestartRequested(fresh=True):
                self.fresh_asked = max(self.fresh_asked, event.seq)
                self.run = runs.apply_event(self.run, event)
            case events.QuestionAsked() | events.QuestionAnswered() | events.PersonAnswered():
                self._apply_question(event)
            case _:
                self.run = runs.apply_event(self.run, event)

    def _apply_place(
        self, event: events.OwnerChanged | events.WorkspacePushed | events.WorkspacePushFailed
    ) -> None:
        """Apply the agent's host and workspace, each by position in the log."""
        pushed = self.workspace.seq if self.workspace else 0
        kept = self.unpushed.seq if self.unpushed else 0
        match event:
            case events.OwnerChanged():
                now = OwnerMove(event.seq, event.host, event.previous, event.left)
                self.moved = max(self.moved, now)
            case events.WorkspacePushed() if event.seq > pushed:
                self.workspace = event
                self.unpushed = self.unpushed if kept > event.seq else None
            case events.WorkspacePushFailed() if event.seq > max(pushed, kept):
                self.unpushed = event
            case _:
                pass

    def _apply_handoff(
        self,
        event: events.HandoffTriggered
        | events.HandoffResumed
        | events.HandoffRequested
        | events.WindowSizeReported
        | events.WindowMeasured,
    ) -> None:
        match event:
            case events.HandoffTriggered():
                sessions.record_handoff(self.attempts, event)
            case events.HandoffResumed():
                sessions.record_handoff_resume(self.attempts, event)
            case events.HandoffRequested():
                self.handoff_asked = max(self.handoff_asked, event.seq or sessions.NOT_IN_LOG)
            case events.WindowSizeReported():
                self._apply_window_size(event)
            case events.WindowMeasured():
                self._apply_measurement(event)

    def _apply_window_size(self, event: events.WindowSizeReported) -> None:
        sizes = self.windows.get(event.harness, {})
        reported = KnownWindow(event.seq, event.window)
        newest = max(sizes.get(event.model, reported), reported)
        self.windows[event.harness] = {**sizes, event.model: newest}

    def _apply_measurement(self, event: events.WindowMeasured | events.LaunchEnded) -> None:
        if event.tokens is not None:
            source = event.known or ("reported" if event.window else "unknown")
            measured = WindowFill(event.seq, event.tokens, event.window or 0, source)
            self.window = max(self.window, measured)

    def _apply_session(self, event: SessionEvent) -> None:
        if event.visitor:
            return  # a person's separate session: not a sign of life, and never recovered
        match event:
            case events.SessionStarted():
                sessions.record_session_start(self.lives, event)
            case events.SessionEnded():
                sessions.record_session_end(self.lives, event)
                return
            case events.PromptSubmitted():
                sessions.record_prompt(self.lives, event)
            case _:
                pass
        self._record_activity(event.ts)
        position = event.seq or sessions.NOT_IN_LOG
        self.heard = max(self.heard, LastActivity(position, event.ts.timestamp()))

    def _record_activity(self, ts: datetime | None) -> None:
        if ts is not None and (self.last_active is None or ts > self.last_active):
            self.last_active = ts

    def _add_mark(self, identity: str, mark: LoopMark) -> None:
        open_loops.add_mark(self.loops, identity, mark)

    def _apply_adopted(self, event: events.StateAdopted) -> None:
        self._record_activity(event.last_active)
        for loop in event.open_loops:
            self._add_mark(
                loop.id, LoopMark(event.ts, loop.text, added=loop.added, extra=loop.extra)
            )
        for item in event.resolved:
            self._add_mark(item.id, LoopMark(event.ts, item.reason, closes=True, extra=item.extra))
        for correction in event.corrections:
            self._add_mark(
                correction.id,
                LoopMark(
                    correction.ts,
                    correction.text,
                    closes=correction.closes,
                    corrects=event.ts,
                    added=correction.added,
                    extra=correction.extra,
                ),
            )
        _keep_latest(self.numbers, event.numbers, event.ts)
        _keep_latest(self.extra, event.extra, event.ts)

    def _apply_commit(
        self,
        event: events.DocumentCommitted,
        *,
        trimmed: str = "",
        over_cap: bool = False,
        session: str = "",
    ) -> None:
        committed = self.documents.get(event.document)
        if committed is None or event.seq > committed.seq:
            self.documents[event.document] = CommittedDocument(
                event.seq,
                event.ts,
                event.sha256,
                event.previous,
                event.path,
                event.by,
                event.tokens,
                event.headline,
                trimmed,
                over_cap,
                bool(event.at),
                session,
            )


def _keep_latest(known: dict[str, TimedValue], said: dict[str, Any], ts: datetime) -> None:
    for key, value in said.items():
        before = known.get(key)
        if before is None or _order_value(ts, value) > _order_value(before.ts, before.value):
            known[key] = TimedValue(ts, value)


def _order_value(ts: datetime, value: Any) -> tuple[datetime, bytes]:
    """Return the order of a value: by time, then by content, so that arrival never decides."""
    return ts, open_loops.encode_value(value)
