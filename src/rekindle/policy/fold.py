"""Fold: what a sequence of events adds up to.

The result depends on the set of events, not on their order or on how often one arrives:
loops are sets of marks, everything else is the latest by time or by place in the log. That is
what lets readers lay the inbox over the log without a lock, and a crashed fold run again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents import event as events
from rekindle.documents.event import AnyEvent, CycleEnded, Unrecognised
from rekindle.documents.state import State
from rekindle.policy import loop, loops, mornings, sessions, settings
from rekindle.policy import run as runs
from rekindle.policy.loop import Answer, Began
from rekindle.policy.loops import Loop, Mark
from rekindle.policy.mornings import Briefed
from rekindle.policy.run import Run
from rekindle.policy.sessions import Attempt, Life
from rekindle.thresholds.running import QUESTIONS_KEPT, REPORTS_KEPT, SAME_START_SECONDS

FromSession = (
    events.SessionStarted
    | events.SessionEnded
    | events.PromptSubmitted
    | events.SessionCompacted
    | events.Heartbeat
)


class Said(msgspec.Struct, frozen=True):
    """The latest word on one key."""

    ts: datetime
    value: Any


class Standing(msgspec.Struct, frozen=True):
    """A document's last commit, as far as readers need it without opening the archive."""

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
    """A person has set it, by a command."""
    session: str = ""
    """Of a checkpoint: the only session that it is for; empty: whoever comes next."""


class Heard(msgspec.Struct, frozen=True, order=True):
    """The last that a session reported, by its place in the log, whatever the clock said."""

    seq: int = 0
    at: float = 0.0
    """In seconds since 1970."""


class Learnt(msgspec.Struct, frozen=True, order=True):
    seq: int
    window: int


class WindowFill(msgspec.Struct, frozen=True, order=True):
    """How full the window of the last session was when it was last measured."""

    seq: int = 0
    tokens: int = 0
    window: int = 0
    """Its size in tokens; 0: unknown."""
    known: str = "unknown"


class Moved(msgspec.Struct, frozen=True, order=True):
    """The last time that another host took the agent over."""

    seq: int = 0
    host: str = ""
    previous: str = ""
    left: str = ""


class Loss(msgspec.Struct, frozen=True):
    """Events that the log once held and that cannot be read any more."""

    after: int
    """Number of the last event before them."""
    before: int = 0
    """Number of the next event that can be read; 0 if the numbers continue without a gap."""


class Projection(msgspec.Struct, frozen=True):
    agent: str
    seq: int = 0
    gen: int = 0
    last_active: datetime | None = None
    loops: dict[str, Loop] = {}
    numbers: dict[str, Said] = {}
    extra: dict[str, Said] = {}
    documents: dict[str, Standing] = {}
    cursors: dict[str, int] = {}
    """How far each inbox segment has been folded into the log."""
    seen: dict[str, datetime] = {}
    """What hooks reported lately: installed twice, they report everything twice."""
    lives: dict[str, Life] = {}
    attempts: dict[str, Attempt] = {}
    cycle: int = 0
    """The last cycle that began."""
    cycle_ended: int = 0
    run: Run = Run()
    heard: Heard = Heard()
    began: Began = Began()
    ended: dict[int, CycleEnded] = {}
    """The last cycles that ended, by their number."""
    answer: Answer = Answer()
    windows: dict[str, dict[str, Learnt]] = {}
    """How large each model's window is, by harness, as its CLI has said last."""
    handoff_asked: int = 0
    """Where in the log somebody has last asked for a handoff."""
    briefed: Briefed = Briefed()
    moved: Moved = Moved()
    workspace: events.WorkspacePushed | None = None
    unpushed: events.WorkspaceKept | None = None
    """Why what it works on is on its host alone; None: it is not."""
    fresh_asked: int = 0
    """Where in the log somebody has last asked for a fresh session."""
    loss: Loss | None = None
    """The last loss of events."""
    questions: dict[str, events.QuestionAsked] = {}
    """The last questions to a person, by their id."""
    answers: dict[str, events.QuestionAnswered] = {}
    """The answer to each of them that counts."""
    window: WindowFill = WindowFill()
    reviewed: loop.Reviewed = loop.Reviewed()

    @property
    def may_miss_stop(self) -> bool:
        """Whether a stop may be among lost events: it is to run, but by no later word."""
        word = max(self.run.wanted, self.run.restarted)
        is_wanted = self.run.desired == "running"
        return is_wanted and self.loss is not None and word <= self.loss.after

    @property
    def is_cycle_open(self) -> bool:
        return self.cycle > self.cycle_ended

    @property
    def cycle_now(self) -> int:
        """The cycle that was begun, or that comes next."""
        return self.cycle if self.is_cycle_open else self.cycle + 1

    @property
    def last_ended(self) -> CycleEnded | None:
        """The last cycle that ended; None: none has."""
        return self.ended[max(self.ended)] if self.ended else None

    @property
    def answers_since(self) -> list[Answer]:
        """What a person has answered since then: no cycle that is over has heeded it."""
        last = self.last_ended
        told = [Answer(one.seq, one.text, one.asked) for one in self.answers.values() if one.text]
        return sorted(one for one in (self.answer, *told) if one.seq > (last.seq if last else 0))


def fold(before: Projection, happened: Iterable[AnyEvent | Unrecognised]) -> Projection:
    now = _Working(before)
    for event in happened:
        if isinstance(event, events.AgentReceived) and event.seq >= now.seq:
            # What stood before it is in it.
            now = _Working(msgspec.convert(event.known, Projection, str_keys=True))
        now.take(event)
    return now.projection()


def key_of(event: AnyEvent | Unrecognised) -> str:  # noqa: PLR0911 - one for each kind of report
    """What makes a hook's report the same as another; empty where each one counts."""
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


def is_repeated(seen: Mapping[str, datetime], event: AnyEvent | Unrecognised) -> bool:
    """Return whether another hook has reported the same event: there may be hooks at three levels.

    A session can be compacted, and end after a resume, more than once: of these, reports within
    moments of each other are the same.
    """
    before = seen.get(key_of(event))
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


def lately(seen: dict[str, datetime], most: int = REPORTS_KEPT) -> dict[str, datetime]:
    """The newest reports: a second hook reports within moments of the first."""
    newest = sorted(seen.items(), key=lambda item: (item[1], item[0]))[-most:]
    return dict(newest)


def pruned(projection: Projection) -> Projection:
    """What is kept where the log itself is not: what is long past is left out."""
    return msgspec.structs.replace(
        projection,
        seen=lately(projection.seen),
        lives=sessions.newest_lives(projection.lives),
        attempts=sessions.newest_attempts(projection.attempts),
        briefed=mornings.newest(projection.briefed),
        questions=(newest := _newest_questions(projection)),
        answers={name: one for name, one in projection.answers.items() if name in newest},
    )


def _newest_questions(projection: Projection) -> dict[str, events.QuestionAsked]:
    newest = sorted(projection.questions.values(), key=lambda one: one.seq)
    return {one.question: one for one in newest[-QUESTIONS_KEPT:]}


def state_of(projection: Projection, now: datetime, limits: settings.Loops) -> State:
    """The projection as readers of state.json see it."""
    return State(
        agent=projection.agent,
        seq=projection.seq,
        last_active=projection.last_active,
        open_loops=loops.open_now(projection.loops, now, limits),
        resolved=loops.resolved_lately(projection.loops, now, limits),
        numbers={key: said.value for key, said in projection.numbers.items()},
        extra={key: said.value for key, said in projection.extra.items()},
    )


def adopt(projection: Projection, edited: State, now: datetime) -> events.StateAdopted | None:
    """The event that takes over what somebody wrote into state.json; None: nothing new.

    `projection` is what the file was made from. Held against what is known now, everything that has
    happened since would look like an edit that undoes it.
    """
    found = loops.adopt(projection.loops, edited, now)
    numbers = _news(projection.numbers, edited.numbers)
    extra = _news(projection.extra, edited.extra)
    replaced = [
        known[key].ts
        for known, news in ((projection.numbers, numbers), (projection.extra, extra))
        for key in news
        if key in known
    ]
    adopted = msgspec.structs.replace(
        found,
        ts=loops.later(found.ts, *replaced),
        numbers=numbers,
        extra=extra,
        last_active=edited.last_active,
    )
    is_later = edited.last_active is not None and (
        projection.last_active is None or edited.last_active > projection.last_active
    )
    says = adopted.open_loops or adopted.resolved or adopted.corrections
    return adopted if says or adopted.numbers or adopted.extra or is_later else None


def _news(known: dict[str, Said], said: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in said.items()
        if key not in known or loops.as_written(known[key].value) != loops.as_written(value)
    }


class _Working:
    """A projection while events are added to it: dictionaries are copied once, not per event."""

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

    def take(self, event: AnyEvent | Unrecognised) -> None:
        self._count(event)
        if isinstance(event, events.HOOK_REPORTS):
            self._session(event)
            return
        match event:
            case events.LoopAdded():
                self._mark(event.id, Mark(event.ts, event.text, added=event.added))
            case events.LoopResolved():
                self._mark(event.id, Mark(event.ts, event.reason, closes=True))
            case events.StateAdopted():
                self._adopted(event)
            case events.RelayCommitted():
                self._stands(event, trimmed=event.trimmed, over_cap=event.over_cap)
            case events.CheckpointCommitted():
                self._stands(event, session=event.session)
            case events.BriefCommitted():
                self._stands(event)
            case (
                events.HandoffTriggered()
                | events.HandoffResumed()
                | events.HandoffAsked()
                | events.WindowLearnt()
                | events.WindowMeasured()
            ):
                self._handoff(event)
            case events.BriefMade():
                self.briefed = mornings.made(self.briefed, event)
                self._active(event.last_active)
                _latest(self.numbers, event.numbers, event.ts)
            case _:
                self._run(event)

    def _question(
        self, event: events.QuestionAsked | events.QuestionAnswered | events.Answered
    ) -> None:
        """Keep the first question of an id, and the first answer to it, by their place."""
        match event:
            case events.QuestionAsked():
                asked = self.questions.get(event.question)
                if asked is None or 0 < event.seq < asked.seq:
                    self.questions[event.question] = event
            case events.QuestionAnswered(refused=""):
                answer = self.answers.get(event.question)
                if answer is None or 0 < event.seq < answer.seq:
                    self.answers[event.question] = event
                if event.seq or answer is None:  # of several that wait in the inbox, the first
                    self.run = runs.answered(self.run, event)
            case events.Answered():
                self.answer = max(self.answer, Answer(event.seq, event.text, event.asked))
                self.run = runs.happened(self.run, event)

    def _count(self, event: AnyEvent | Unrecognised) -> None:
        self.seq = max(self.seq, event.seq)
        self.gen = max(self.gen, event.gen)
        if event.at:
            segment, _, offset = event.at.rpartition(":")
            if offset.isdecimal():
                self.cursors[segment] = max(self.cursors.get(segment, 0), int(offset))
        if key := key_of(event):
            self.seen[key] = max(event.ts, self.seen.get(key, event.ts))

    def _cycle(self, event: events.CycleStarted | events.ReviewMade | events.CycleEnded) -> None:
        match event:
            case events.CycleStarted():
                self.cycle = max(self.cycle, event.cycle)
                self.began = max(self.began, loop.began(event))
            case events.ReviewMade():
                self.reviewed = max(self.reviewed, loop.reviewed(event))
                self.run = runs.happened(self.run, event)
            case events.CycleEnded():
                self.cycle_ended = max(self.cycle_ended, event.cycle)
                loop.ended(self.ended, event)

    def _run(self, event: AnyEvent | Unrecognised) -> None:
        match event:
            case events.SessionLost():
                sessions.ended(self.lives, event)
            case events.OwnerChanged() | events.WorkspacePushed() | events.WorkspaceKept():
                self._place(event)
            case events.CycleStarted() | events.ReviewMade() | events.CycleEnded():
                self._cycle(event)
            case events.LaunchStarted():
                sessions.launched(self.attempts, event)
            case events.LaunchEnded():
                sessions.over(self.attempts, event)
                self._measured(event)
                self.run = runs.happened(self.run, event)
            case events.DesiredSaid():
                self.run = runs.said(self.run, event)
            case events.RestartAsked(fresh=True):
                self.fresh_asked = max(self.fresh_asked, event.seq)
                self.run = runs.happened(self.run, event)
            case events.QuestionAsked() | events.QuestionAnswered() | events.Answered():
                self._question(event)
            case _:
                self.run = runs.happened(self.run, event)

    def _place(
        self, event: events.OwnerChanged | events.WorkspacePushed | events.WorkspaceKept
    ) -> None:
        """Where it is, and what it works on; each by its place in the log."""
        pushed = self.workspace.seq if self.workspace else 0
        kept = self.unpushed.seq if self.unpushed else 0
        match event:
            case events.OwnerChanged():
                now = Moved(event.seq, event.host, event.previous, event.left)
                self.moved = max(self.moved, now)
            case events.WorkspacePushed() if event.seq > pushed:
                self.workspace = event
                self.unpushed = self.unpushed if kept > event.seq else None
            case events.WorkspaceKept() if event.seq > max(pushed, kept):
                self.unpushed = event
            case _:
                pass

    def _handoff(
        self,
        event: events.HandoffTriggered
        | events.HandoffResumed
        | events.HandoffAsked
        | events.WindowLearnt
        | events.WindowMeasured,
    ) -> None:
        match event:
            case events.HandoffTriggered():
                sessions.handed(self.attempts, event)
            case events.HandoffResumed():
                sessions.resumed(self.attempts, event)
            case events.HandoffAsked():
                self.handoff_asked = max(self.handoff_asked, event.seq or sessions.NOT_YET)
            case events.WindowLearnt():
                self._learnt(event)
            case events.WindowMeasured():
                self._measured(event)

    def _learnt(self, event: events.WindowLearnt) -> None:
        known = self.windows.get(event.harness, {})
        found = Learnt(event.seq, event.window)
        newest = max(known.get(event.model, found), found)
        self.windows[event.harness] = {**known, event.model: newest}

    def _measured(self, event: events.WindowMeasured | events.LaunchEnded) -> None:
        if event.tokens is not None:
            known = event.known or ("reported" if event.window else "unknown")
            found = WindowFill(event.seq, event.tokens, event.window or 0, known)
            self.window = max(self.window, found)

    def _session(self, event: FromSession) -> None:
        if event.visitor:
            return  # a person's own, beside ours: neither a sign of life nor ever to be recovered
        match event:
            case events.SessionStarted():
                sessions.started(self.lives, event)
            case events.SessionEnded():
                sessions.ended(self.lives, event)
                return
            case events.PromptSubmitted():
                sessions.asked(self.lives, event)
            case _:
                pass
        self._active(event.ts)
        place = event.seq or sessions.NOT_YET
        self.heard = max(self.heard, Heard(place, event.ts.timestamp()))

    def _active(self, ts: datetime | None) -> None:
        if ts is not None and (self.last_active is None or ts > self.last_active):
            self.last_active = ts

    def _mark(self, identity: str, mark: Mark) -> None:
        loops.merge(self.loops, identity, mark)

    def _adopted(self, event: events.StateAdopted) -> None:
        self._active(event.last_active)
        for one in event.open_loops:
            self._mark(one.id, Mark(event.ts, one.text, added=one.added, extra=one.extra))
        for item in event.resolved:
            self._mark(item.id, Mark(event.ts, item.reason, closes=True, extra=item.extra))
        for other in event.corrections:
            self._mark(
                other.id,
                Mark(
                    other.ts,
                    other.text,
                    closes=other.closes,
                    corrects=event.ts,
                    added=other.added,
                    extra=other.extra,
                ),
            )
        _latest(self.numbers, event.numbers, event.ts)
        _latest(self.extra, event.extra, event.ts)

    def _stands(
        self,
        event: events.Committed,
        *,
        trimmed: str = "",
        over_cap: bool = False,
        session: str = "",
    ) -> None:
        known = self.documents.get(event.document)
        if known is None or event.seq > known.seq:
            self.documents[event.document] = Standing(
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


def _latest(known: dict[str, Said], said: dict[str, Any], ts: datetime) -> None:
    for key, value in said.items():
        before = known.get(key)
        if before is None or _rank(ts, value) > _rank(before.ts, before.value):
            known[key] = Said(ts, value)


def _rank(ts: datetime, value: Any) -> tuple[datetime, bytes]:
    """By time, and at the same instant by content, so that the order of arrival never decides."""
    return ts, loops.as_written(value)
