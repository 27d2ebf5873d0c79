"""An agent's state, computed from its log."""

from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents import events
from rekindle.documents.events import CycleEnded
from rekindle.documents.events.operator_events import DEADLINE
from rekindle.policy.briefs import brief_schedule
from rekindle.policy.briefs.brief_schedule import BriefState
from rekindle.policy.projection import sessions
from rekindle.policy.projection.hook_reports import keep_newest_reports
from rekindle.policy.projection.open_loops import Loop
from rekindle.policy.projection.proposals import list_new_notes, prune_proposals
from rekindle.policy.projection.sessions import LaunchRecord, SessionRecord
from rekindle.policy.stall import stall_response
from rekindle.policy.stall.stall_response import CycleBeginning, LastAnswer
from rekindle.policy.supervision.run_moves import RunState
from rekindle.thresholds.message_limits import MESSAGES_KEPT
from rekindle.thresholds.supervision import QUESTIONS_KEPT


class TimedValue(msgspec.Struct, frozen=True):
    """The latest value for a key, and its time."""

    ts: datetime
    value: Any


class CommittedDocument(msgspec.Struct, frozen=True):
    """A document's last commit, with enough details to avoid reading the archive."""

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
    """Whether a person set the document with a command."""
    session: str = ""
    """The only session that may use the checkpoint; empty if any session may."""


class LastActivity(msgspec.Struct, frozen=True, order=True):
    """The last report from a session, by log position rather than by clock."""

    seq: int = 0
    at: float = 0.0
    """Unix time in seconds."""


class KnownWindow(msgspec.Struct, frozen=True, order=True):
    seq: int
    window: int


class WindowFill(msgspec.Struct, frozen=True, order=True):
    """Context window usage at the last measurement."""

    seq: int = 0
    tokens: int = 0
    window: int = 0
    """Window size in tokens; 0 if unknown."""
    known: str = "unknown"


class OwnerMove(msgspec.Struct, frozen=True, order=True):
    """The last time that another host took over the agent."""

    seq: int = 0
    host: str = ""
    previous: str = ""
    left: str = ""


class LostEvents(msgspec.Struct, frozen=True):
    """Events that were in the log but can no longer be read."""

    after: int
    """Sequence number of the last event before the lost ones."""
    before: int = 0
    """Sequence number of the first readable event after the lost ones; 0 if there is no gap."""


class ProjectionFields(msgspec.Struct):
    """Fields that a projection shares with the mutable copy used for folding."""

    agent: str
    seq: int = 0
    gen: int = 0
    last_active: datetime | None = None
    loops: dict[str, Loop] = {}
    numbers: dict[str, TimedValue] = {}
    extra: dict[str, TimedValue] = {}
    documents: dict[str, CommittedDocument] = {}
    cursors: dict[str, int] = {}
    """Offset up to which each inbox segment has been added to the log."""
    seen: dict[str, datetime] = {}
    """Times of recent hook reports, by report key.

    Hooks that are installed twice report every event twice.
    """
    lives: dict[str, SessionRecord] = {}
    attempts: dict[str, LaunchRecord] = {}
    cycle: int = 0
    """Number of the last cycle that was started."""
    cycle_ended: int = 0
    run: RunState = RunState()
    heard: LastActivity = LastActivity()
    began: CycleBeginning = CycleBeginning()
    ended: dict[int, CycleEnded] = {}
    """The most recently ended cycles, by number."""
    answer: LastAnswer = LastAnswer()
    windows: dict[str, dict[str, KnownWindow]] = {}
    """Window sizes that each CLI last reported, by harness and model."""
    handoff_asked: int = 0
    """Log position of the last request for a handoff."""
    briefed: BriefState = BriefState()
    moved: OwnerMove = OwnerMove()
    workspace: events.WorkspacePushed | None = None
    unpushed: events.WorkspacePushFailed | None = None
    """The failed push, if the current work exists only on its host; None after a successful push.
    """
    fresh_asked: int = 0
    """Log position of the last request for a fresh session."""
    loss: LostEvents | None = None
    """The most recently lost events; None if no events were lost."""
    questions: dict[str, events.QuestionAsked] = {}
    """The most recent questions to a person, by id."""
    answers: dict[str, events.QuestionAnswered] = {}
    """The valid answer to each question, by question id."""
    messages: dict[str, events.MessageSent] = {}
    """The most recent messages from people, by id."""
    deliveries: dict[str, events.MessageDelivered] = {}
    """The delivery of each message, by message id."""
    permitted: dict[str, int] = {}
    """Log positions at which approvals of waiting calls were used, by question id."""
    window: WindowFill = WindowFill()
    reviewed: stall_response.LastReview = stall_response.LastReview()
    rewound: events.WorkRewound | None = None
    """The last rewind of the work tree; None if there was none."""
    proposals: dict[str, events.ProposalMade] = {}
    """The agent's proposals, by kind and text."""
    merged: int = 0
    """Log position of the last relay that took up the agent's notes."""

    @property
    def may_miss_stop(self) -> bool:
        """Return whether the agent should run, though the lost events may include a later stop."""
        word = max(self.run.wanted, self.run.restarted)
        is_wanted = self.run.desired == "running"
        return is_wanted and self.loss is not None and word <= self.loss.after

    @property
    def run_name(self) -> str:
        """Return a name for the run's work on the current host; empty if no run has started.

        The log positions of two runs may be equal, because an agent's folder can be created again.
        """
        began_at = self.run.began_at
        return f"{began_at.isoformat()}/{self.moved.seq}" if began_at else ""

    @property
    def is_cycle_open(self) -> bool:
        return self.cycle > self.cycle_ended

    @property
    def current_cycle(self) -> int:
        """Return the number of the open cycle, or of the next one if no cycle is open."""
        return self.cycle if self.is_cycle_open else self.cycle + 1

    @property
    def last_ended_cycle(self) -> CycleEnded | None:
        """Return the cycle that ended last, or None if no cycle has ended."""
        return self.ended[max(self.ended)] if self.ended else None

    @property
    def new_notes(self) -> list[events.ProposalMade]:
        """Return the agent's decisions and failed approaches that no relay contains yet."""
        return list_new_notes(self.proposals, self.merged)

    @property
    def new_answers(self) -> list[LastAnswer]:
        """Return the answers that no ended cycle has received yet.

        A cycle receives the answers that were recorded before its last fresh session started.
        """
        last = self.last_ended_cycle
        launches = sessions.select_cycle_launches(self.attempts, last.cycle) if last else {}
        fresh = [launch.seq for launch in launches.values() if not launch.resumes]
        received = max(fresh, default=last.seq if last else 0)
        recorded = [
            LastAnswer(answer.seq, answer.text, answer.asked)
            for answer in self.answers.values()
            if answer.text and answer.question not in self.permitted
        ]
        return sorted(answer for answer in (self.answer, *recorded) if answer.seq > received)

    @property
    def waiting_messages(self) -> list[events.MessageSent]:
        """Return the messages that the agent has not received yet, oldest first."""
        waiting = (sent for name, sent in self.messages.items() if name not in self.deliveries)
        return sorted(waiting, key=lambda sent: (sent.seq or sessions.NOT_IN_LOG, sent.ts))


class Projection(ProjectionFields, frozen=True):  # type: ignore[misc]  # msgspec permits it
    """An agent's state at one position in its log."""


def prune_projection(projection: Projection) -> Projection:
    """Return the projection without old entries, for storage in a snapshot."""
    return msgspec.structs.replace(
        projection,
        seen=keep_newest_reports(projection.seen),
        lives=sessions.prune_sessions(projection.lives),
        attempts=sessions.prune_launches(projection.attempts),
        briefed=brief_schedule.prune_brief_state(projection.briefed),
        questions=(newest := _prune_questions(projection)),
        answers={name: answer for name, answer in projection.answers.items() if name in newest},
        proposals=prune_proposals(projection.proposals, projection.loops, projection.merged),
        messages=(kept := _prune_messages(projection)),
        deliveries={name: end for name, end in projection.deliveries.items() if name in kept},
        permitted={name: seq for name, seq in projection.permitted.items() if name in newest},
    )


def _prune_questions(projection: Projection) -> dict[str, events.QuestionAsked]:
    newest = sorted(projection.questions.values(), key=lambda question: question.seq)
    # A failed login is asked about again and again, which must not displace other questions.
    retried = [question.question for question in newest if _is_retried(projection, question)]
    kept = [question for question in newest if question.question not in retried[:-1]]
    return {question.question: question for question in kept[-QUESTIONS_KEPT:]}


def _is_retried(projection: Projection, question: events.QuestionAsked) -> bool:
    """Return whether the question's default started the agent again."""
    answer = projection.answers.get(question.question)
    return answer is not None and (answer.origin, answer.effect) == (DEADLINE, "restart")


def _prune_messages(projection: Projection) -> dict[str, events.MessageSent]:
    """Return the messages that are not delivered yet, and the newest of the others."""
    newest = sorted(projection.messages.values(), key=lambda sent: sent.seq)[-MESSAGES_KEPT:]
    return {sent.message: sent for sent in [*projection.waiting_messages, *newest]}
