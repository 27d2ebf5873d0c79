"""Fold a sequence of events into a projection.

The result depends only on the set of events, not on their order or on duplicates: loops are sets of
marks, and every other value is the latest one, by time or log position. So readers can add the
inbox to the log without a lock, and a crashed fold can be repeated.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.projection import (
    open_loops,
    proposals,
    sessions,
)
from rekindle.policy.projection.hook_reports import make_report_key
from rekindle.policy.projection.open_loops import LoopMark
from rekindle.policy.projection.projection import (
    CommittedDocument,
    KnownWindow,
    LastActivity,
    OwnerMove,
    Projection,
    ProjectionFields,
    TimedValue,
    WindowFill,
)
from rekindle.policy.stall import stall_response
from rekindle.policy.stall.stall_response import CycleBeginning, LastAnswer
from rekindle.policy.supervision import run_moves as runs

SessionEvent = (
    events.SessionStarted
    | events.SessionEnded
    | events.PromptSubmitted
    | events.SessionCompacted
    | events.Heartbeat
)
PersonEvent = (
    events.QuestionAsked
    | events.QuestionAnswered
    | events.PersonAnswered
    | events.MessageSent
    | events.MessageDelivered
    | events.CallPermitted
)
MessageT = TypeVar("MessageT", events.MessageSent, events.MessageDelivered)


def fold_events(before: Projection, happened: Iterable[AnyEvent | UnknownEvent]) -> Projection:
    """Return the projection after applying the events."""
    now = _start_building(before)
    for event in happened:
        if isinstance(event, events.AgentReceived) and event.seq >= now.seq:
            # This event contains the whole projection up to its position.
            now = _start_building(msgspec.convert(event.known, Projection, str_keys=True))
        now.apply(event)
    return Projection(*msgspec.structs.astuple(now))


def _start_building(before: Projection) -> "_ProjectionBuilder":
    """Return a mutable copy, so that dictionaries are copied once instead of for every event."""
    values: list[Any] = [
        dict(value) if isinstance(value, dict) else value
        for value in msgspec.structs.astuple(before)
    ]
    return _ProjectionBuilder(*values)


class _ProjectionBuilder(ProjectionFields):
    """A projection under construction."""

    def apply(self, event: AnyEvent | UnknownEvent) -> None:
        self._advance_position(event)
        if isinstance(event, events.HOOK_REPORTS):
            self._apply_session(event)
            return
        match event:
            case events.LoopAdded():
                self._add_mark(
                    event.id, LoopMark(event.ts, event.text, added=event.added, by=event.by)
                )
            case events.LoopResolved():
                self._add_mark(event.id, LoopMark(event.ts, event.reason, closes=True, by=event.by))
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

    def _apply_person(self, event: PersonEvent) -> None:
        """Store the first question with each id and its first answer, by log position."""
        match event:
            case events.CallPermitted():
                self.permitted[event.question] = event.seq
            case events.MessageSent():
                _keep_first(self.messages, event)
            case events.MessageDelivered():
                _keep_first(self.deliveries, event)
            case events.QuestionAsked():
                question = self.questions.get(event.question)
                if question is None or 0 < event.seq < question.seq:
                    self.questions[event.question] = event
            case events.QuestionAnswered(refused=""):
                answer = self.answers.get(event.question)
                if answer is None or 0 < event.seq < answer.seq:
                    self.answers[event.question] = event
                if event.seq or answer is None:  # only the first answer in the inbox counts
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

    def _apply_cycle(
        self, event: events.CycleStarted | events.ReviewMade | events.CycleEnded
    ) -> None:
        match event:
            case events.CycleStarted():
                self.cycle = max(self.cycle, event.cycle)
                self.began = max(
                    self.began,
                    CycleBeginning(
                        event.seq, event.cycle, event.ts.timestamp(), event.relay, event.head
                    ),
                )
            case events.ReviewMade():
                self.reviewed = max(self.reviewed, stall_response.record_review(event))
                self.run = runs.apply_event(self.run, event)
            case events.CycleEnded():
                self.cycle_ended = max(self.cycle_ended, event.cycle)
                stall_response.remember_cycle_end(self.ended, event)

    def _apply_run(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case events.SessionLost():
                sessions.record_session_end(self.lives, event)
            case (
                events.OwnerChanged()
                | events.WorkspacePushed()
                | events.WorkspacePushFailed()
                | events.WorkRewound()
            ):
                self._apply_place(event)
            case events.CycleStarted() | events.ReviewMade() | events.CycleEnded():
                self._apply_cycle(event)
            case events.LaunchStarted():
                sessions.record_launch_start(self.attempts, event)
            case events.LaunchEnded() | events.SpendRecorded():
                self._apply_spending(event)
            case events.DesiredSet():
                self.run = runs.apply_desired(self.run, event)
            case events.RestartRequested(fresh=True):
                self.fresh_asked = max(self.fresh_asked, event.seq)
                self.run = runs.apply_event(self.run, event)
            case events.ProposalMade():
                proposals.record_proposal(self.proposals, event)
            case _ if isinstance(event, PersonEvent):
                self._apply_person(event)
            case _:
                self.run = runs.apply_event(self.run, event)

    def _apply_spending(self, event: events.LaunchEnded | events.SpendRecorded) -> None:
        if isinstance(event, events.LaunchEnded):
            sessions.record_launch_end(self.attempts, event)
            self._apply_measurement(event)
        sessions.record_cost(self.lives, event)
        self.run = runs.apply_event(self.run, event)

    def _apply_place(
        self,
        event: events.OwnerChanged
        | events.WorkspacePushed
        | events.WorkspacePushFailed
        | events.WorkRewound,
    ) -> None:
        """Store the agent's latest host and workspace, by log position."""
        pushed = self.workspace.seq if self.workspace else 0
        unpushed = self.unpushed.seq if self.unpushed else 0
        match event:
            case events.OwnerChanged():
                now = OwnerMove(event.seq, event.host, event.previous, event.left)
                self.moved = max(self.moved, now)
            case events.WorkspacePushed() if event.seq > pushed:
                self.workspace = event
                self.unpushed = self.unpushed if unpushed > event.seq else None
            case events.WorkspacePushFailed() if event.seq > max(pushed, unpushed):
                self.unpushed = event
            case events.WorkRewound() if self.rewound is None or event.seq > self.rewound.seq:
                self.rewound = event
                self.fresh_asked = max(self.fresh_asked, event.seq)
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
                self.run = runs.apply_event(self.run, event)
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
            # A session that a person runs separately is not a sign of life and is never recovered.
            return
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
        if event.document == "relay" and event.by in proposals.MERGING_AUTHORS:
            self.merged = max(self.merged, event.seq)
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


def _keep_first(known: dict[str, MessageT], event: MessageT) -> None:
    """Store the first event about a message, by log position."""
    before = known.get(event.message)
    if before is None or 0 < event.seq < before.seq:
        known[event.message] = event


def _keep_latest(values: dict[str, TimedValue], new: dict[str, Any], ts: datetime) -> None:
    for key, value in new.items():
        before = values.get(key)
        if before is None or _order_value(ts, value) > _order_value(before.ts, before.value):
            values[key] = TimedValue(ts, value)


def _order_value(ts: datetime, value: Any) -> tuple[datetime, bytes]:
    """Return a sort key by time and content, so that the order of arrival does not matter."""
    return ts, open_loops.encode_value(value)
