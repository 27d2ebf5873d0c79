"""Sessions and launches recorded in the log, and whether each is open or lost.

Like every projection, these records depend only on the set of events, not on their order. The log
position decides which event is last, because the clock may have been set back.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.route import Route
from rekindle.thresholds.supervision import SESSIONS_KEPT

NOT_IN_LOG = 2**62
"""Position of events that are not in the log yet. They sort after all others."""


class SubmittedPrompt(msgspec.Struct, frozen=True):
    """The last prompt that was submitted to a session."""

    ts: datetime
    text: str
    call: str = ""
    """The prompt's id, which may occur in the transcript; empty if the prompt has no id."""
    seq: int = 0


class SessionRecord(msgspec.Struct, frozen=True):
    """A session: when it last started or resumed, and when it ended."""

    started: datetime | None = None
    started_seq: int = 0
    ended: datetime | None = None
    ended_seq: int = 0
    process: str = ""
    launch: str = ""
    transcript: str = ""
    transcript_seq: int = 0
    asked: SubmittedPrompt | None = None
    usd: float = 0.0
    """Cost that the CLI has reported for the session, in dollars."""

    @property
    def is_open(self) -> bool:
        """Return whether the session has no recorded end, because it is running or was killed."""
        if self.started is None or self.ended is None:
            return self.started is not None
        return (self.ended_seq, self.ended) < (self.started_seq, self.started)


class LaunchRecord(msgspec.Struct, frozen=True):
    """A launch: one process that runs a session."""

    cycle: int
    session: str
    resumes: bool
    harness: str = ""
    account: str = ""
    began: datetime | None = None
    seq: int = 0
    boot: str = ""
    uptime: float = 0.0
    exit: str = ""
    """Kind of exit; empty if the launch is running or its supervisor was lost."""
    ended: datetime | None = None
    started: bool = True
    opened: bool = False
    words: str = ""
    resets_at: int | None = None
    is_held: bool = False
    seconds: float = 0.0
    ended_seq: int = 0
    swept: tuple[str, ...] = ()
    """Commands of background processes that were ended together with the launch."""
    handed_by: str = ""
    """Cause of the handoff, such as `threshold`; empty if there was no handoff."""
    percent: float | None = None
    """Percentage of the window that was full at the handoff; None if unknown."""
    first_percent: float | None = None
    """Percentage of the window that was full after the session's first turn; None if unknown."""
    work: str = ""
    """Fingerprint of the visible work. Two equal fingerprints mean that no work was done."""
    continued: bool = False
    """Whether the launch began with the previous launch's checkpoint."""
    head: str = ""
    """Commit that was checked out when the launch began; empty if unknown."""
    run_usd: float = 0.0
    """The run's total spending, in US dollars, when the launch ended."""
    billed: bool | None = None
    signs: events.WorkSigns | None = None
    fruitless: float | None = None
    """Seconds between the launch's last progress and its end; None if there was no progress."""
    messages: tuple[str, ...] = ()
    """Ids of the persons' messages in its prompt."""
    origin: str = ""
    """Origin of a session that Rekindle did not launch here, such as `person`."""

    @property
    def route(self) -> Route:
        return Route(self.harness, self.account)


_START_FIELDS = ("process", "launch")
"""Fields that are set from a session's start event."""
SessionRecords = Mapping[str, SessionRecord]
LaunchRecords = Mapping[str, LaunchRecord]


def record_session_start(lives: dict[str, SessionRecord], event: events.SessionStarted) -> None:
    record = lives.get(event.session, SessionRecord())
    fields = {name: getattr(event, name) for name in _START_FIELDS}
    position, before = event.seq or NOT_IN_LOG, (getattr(record, name) for name in _START_FIELDS)
    key = (position, event.ts, *fields.values())
    if record.started is None or key > (record.started_seq, record.started, *before):
        lives[event.session] = msgspec.structs.replace(
            record, started=event.ts, started_seq=position, **fields
        )
    # The transcript is stored separately, because a resume may not report it and must not clear it.
    record = lives.get(event.session, record)
    if event.transcript and (position, event.transcript) > (
        record.transcript_seq,
        record.transcript,
    ):
        lives[event.session] = msgspec.structs.replace(
            record, transcript=event.transcript, transcript_seq=position
        )


def record_session_end(
    lives: dict[str, SessionRecord], event: events.SessionEnded | events.SessionLost
) -> None:
    record, position = lives.get(event.session, SessionRecord()), event.seq or NOT_IN_LOG
    if record.ended is None or (position, event.ts) > (record.ended_seq, record.ended):
        lives[event.session] = msgspec.structs.replace(record, ended=event.ts, ended_seq=position)


def record_prompt(lives: dict[str, SessionRecord], event: events.PromptSubmitted) -> None:
    record = lives.get(event.session, SessionRecord())
    prompt = SubmittedPrompt(event.ts, event.text, event.call, event.seq or NOT_IN_LOG)
    if record.asked is None or _order_prompt(prompt) > _order_prompt(record.asked):
        lives[event.session] = msgspec.structs.replace(record, asked=prompt)


def record_cost(
    lives: dict[str, SessionRecord], event: events.SpendRecorded | events.LaunchEnded
) -> None:
    """Record a session's cost, so that its next launch counts only what is new."""
    if event.session and event.session_usd:
        record = lives.get(event.session, SessionRecord())
        usd = max(record.usd, event.session_usd)
        lives[event.session] = msgspec.structs.replace(record, usd=usd)


def _order_prompt(prompt: SubmittedPrompt) -> tuple[object, ...]:
    return prompt.seq, prompt.ts, prompt.text, prompt.call


def record_launch_start(attempts: dict[str, LaunchRecord], event: events.LaunchStarted) -> None:
    record = attempts.get(event.launch) or LaunchRecord(event.cycle, event.session, event.resumes)
    if event.seq > record.seq:
        attempts[event.launch] = msgspec.structs.replace(
            record,
            harness=event.harness,
            account=event.account,
            began=event.ts,
            seq=event.seq,
            boot=event.boot,
            uptime=event.uptime,
            head=event.head,
            messages=event.messages,
            origin=event.origin,
        )


def record_launch_end(attempts: dict[str, LaunchRecord], event: events.LaunchEnded) -> None:
    record = attempts.get(event.launch) or LaunchRecord(event.cycle, event.session, event.resumes)
    ended = msgspec.structs.replace(
        record,
        # A CLI that chooses its own session names reports the name only while it is running.
        session=record.session or event.session,
        exit=event.exit,
        ended=event.ts,
        started=event.started,
        opened=event.opened,
        words=event.words,
        resets_at=event.resets_at,
        is_held=event.is_held,
        seconds=event.seconds,
        ended_seq=event.seq,
        run_usd=event.run_usd,
        billed=event.billed,
        signs=event.signs,
        fruitless=event.fruitless,
        swept=event.ended,
    )
    if record.ended is None or _order_end(ended) > _order_end(record):
        attempts[event.launch] = ended


def _order_end(record: LaunchRecord) -> tuple[object, ...]:
    """Return the sort key for a launch's end, so that the order of duplicates does not matter."""
    return (
        record.ended,
        record.exit,
        record.words,
        record.resets_at or 0,
        record.seconds,
        record.started,
        record.opened,
        record.ended_seq,
        record.swept,
    )


def record_handoff(attempts: dict[str, LaunchRecord], event: events.HandoffTriggered) -> None:
    record = attempts.get(event.launch) or LaunchRecord(event.cycle, event.session, resumes=False)

    def of_window(tokens: int | None) -> float | None:
        return tokens * 100 / event.window if tokens is not None and event.window else None

    attempts[event.launch] = msgspec.structs.replace(
        record,
        handed_by=event.by,
        percent=of_window(event.tokens),
        first_percent=of_window(event.first),
        work=event.work,
    )


def record_handoff_resume(attempts: dict[str, LaunchRecord], event: events.HandoffResumed) -> None:
    record = attempts.get(event.launch) or LaunchRecord(event.cycle, "", resumes=False)
    attempts[event.launch] = msgspec.structs.replace(record, continued=True)


def select_cycle_launches(attempts: LaunchRecords, cycle: int) -> dict[str, LaunchRecord]:
    """Return a cycle's launches, oldest first."""
    launches = {launch: record for launch, record in attempts.items() if record.cycle == cycle}
    return dict(sorted(launches.items(), key=lambda item: item[1].seq))


def find_newest_launch(attempts: LaunchRecords) -> LaunchRecord | None:
    return max(attempts.values(), key=lambda record: record.seq, default=None)


def find_launched_session(lives: SessionRecords, launch: str) -> str:
    """Return the session that a launch's hooks reported, or "" if they reported none."""
    candidates = [
        (life.started_seq, str(life.started), name)
        for name, life in lives.items()
        if life.launch == launch
    ]
    return min(candidates)[-1] if candidates else ""


def select_unended_sessions(lives: SessionRecords) -> dict[str, SessionRecord]:
    """Return the sessions that a person started and that have no recorded end, oldest first."""
    unended = {name: life for name, life in lives.items() if life.is_open and not life.launch}
    return dict(sorted(unended.items(), key=lambda item: _find_latest_event(item[1])))


def prune_sessions(lives: SessionRecords) -> dict[str, SessionRecord]:
    """Return the sessions to store in a snapshot. Sessions without an end are dropped last."""
    order = sorted(
        lives.items(), key=lambda item: (item[1].is_open, _find_latest_event(item[1]), item[0])
    )
    return dict(order[-SESSIONS_KEPT:])


def prune_launches(attempts: LaunchRecords) -> dict[str, LaunchRecord]:
    return dict(sorted(attempts.items(), key=lambda item: (item[1].seq, item[0]))[-SESSIONS_KEPT:])


def _find_latest_event(life: SessionRecord) -> tuple[int, float]:
    times = (ts.timestamp() for ts in (life.started, life.ended) if ts)
    return max(life.started_seq, life.ended_seq), max(times, default=0.0)
