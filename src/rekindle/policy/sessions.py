"""Sessions and launches, as the log knows them: which live, which were lost, what was tried.

Like everything that is folded, what stands here depends on the set of events and not on their
order. What came last is what stands last in the log: a clock may have been set back in between.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents import event as events
from rekindle.thresholds.running import SESSIONS_KEPT

NOT_YET = 2**62
"""The place of what is not in the log yet: behind all that is."""


class Asked(msgspec.Struct, frozen=True):
    """The last thing that a session was asked for."""

    ts: datetime
    text: str
    call: str = ""
    """The prompt's own id, by which its transcript may know it; empty: it has none."""
    seq: int = 0


class Life(msgspec.Struct, frozen=True):
    """A session: when it last began or went on, and when it ended."""

    started: datetime | None = None
    started_seq: int = 0
    ended: datetime | None = None
    ended_seq: int = 0
    process: str = ""
    launch: str = ""
    transcript: str = ""
    transcript_seq: int = 0
    context_tokens: int = 0
    cache_expired: bool = False
    asked: Asked | None = None

    @property
    def is_open(self) -> bool:
        """It began and never said that it ended: it lives, or it was killed."""
        if self.started is None or self.ended is None:
            return self.started is not None
        return (self.ended_seq, self.ended) < (self.started_seq, self.started)


class Attempt(msgspec.Struct, frozen=True):
    """A launch: one process that was to work on a session."""

    cycle: int
    session: str
    resumes: bool
    harness: str = ""
    began: datetime | None = None
    seq: int = 0
    boot: str = ""
    uptime: float = 0.0
    exit: str = ""
    """How it ended; empty: it runs, or its supervisor went before it."""
    ended: datetime | None = None
    started: bool = True
    opened: bool = False
    words: str = ""
    resets_at: int | None = None
    seconds: float = 0.0
    ended_seq: int = 0
    swept: tuple[str, ...] = ()
    """The commands of what it had left in the background, and was ended with it."""
    handed_by: str = ""
    """Who had it handed off, `threshold` or `person`; empty: it was not."""
    percent: float | None = None
    """Of one that was handed off: how full its window was then."""
    first_percent: float | None = None
    """The same at the first turn of its session."""
    work: str = ""
    """The same as that of another: nothing that we can see was done between the two."""
    goes_on: bool = False
    """It began with the checkpoint of the one before it."""
    head: str = ""
    """The commit that was checked out when it began; empty: unknown."""
    run_usd: float = 0.0
    """Spending of the whole run when it ended."""
    billed: bool | None = None
    signs: events.WorkSigns | None = None
    fruitless: float | None = None
    """Seconds at its end that followed progress which was seen while it ran; None: none was."""


_TOLD = ("process", "launch", "context_tokens", "cache_expired")
"""What the start of a session tells of it."""
Lives = Mapping[str, Life]
Attempts = Mapping[str, Attempt]


def started(lives: dict[str, Life], event: events.SessionStarted) -> None:
    known = lives.get(event.session, Life())
    told = {name: getattr(event, name) for name in _TOLD}
    place, before = event.seq or NOT_YET, (getattr(known, name) for name in _TOLD)
    found = (place, event.ts, *told.values())
    if known.started is None or found > (known.started_seq, known.started, *before):
        lives[event.session] = msgspec.structs.replace(
            known, started=event.ts, started_seq=place, **told
        )
    # Apart: whoever goes on may tell nothing of it, and then it is where it was.
    known = lives.get(event.session, known)
    if event.transcript and (place, event.transcript) > (known.transcript_seq, known.transcript):
        lives[event.session] = msgspec.structs.replace(
            known, transcript=event.transcript, transcript_seq=place
        )


def ended(lives: dict[str, Life], event: events.SessionEnded | events.SessionLost) -> None:
    known, place = lives.get(event.session, Life()), event.seq or NOT_YET
    if known.ended is None or (place, event.ts) > (known.ended_seq, known.ended):
        lives[event.session] = msgspec.structs.replace(known, ended=event.ts, ended_seq=place)


def asked(lives: dict[str, Life], event: events.PromptSubmitted) -> None:
    known = lives.get(event.session, Life())
    found = Asked(event.ts, event.text, event.call, event.seq or NOT_YET)
    if known.asked is None or _order(found) > _order(known.asked):
        lives[event.session] = msgspec.structs.replace(known, asked=found)


def _order(asked: Asked) -> tuple[object, ...]:
    return asked.seq, asked.ts, asked.text, asked.call


def launched(attempts: dict[str, Attempt], event: events.LaunchStarted) -> None:
    known = attempts.get(event.launch) or Attempt(event.cycle, event.session, event.resumes)
    if event.seq > known.seq:
        attempts[event.launch] = msgspec.structs.replace(
            known,
            harness=event.harness,
            began=event.ts,
            seq=event.seq,
            boot=event.boot,
            uptime=event.uptime,
            head=event.head,
        )


def over(attempts: dict[str, Attempt], event: events.LaunchEnded) -> None:
    known = attempts.get(event.launch) or Attempt(event.cycle, event.session, event.resumes)
    if known.ended is None or _end(event) > _end_of(known):
        attempts[event.launch] = msgspec.structs.replace(
            known,
            # A CLI that names its sessions itself says so only once it runs.
            session=known.session or event.session,
            exit=event.exit,
            ended=event.ts,
            started=event.started,
            opened=event.opened,
            words=event.words,
            resets_at=event.resets_at,
            seconds=event.seconds,
            ended_seq=event.seq,
            run_usd=event.run_usd,
            billed=event.billed,
            signs=event.signs,
            fruitless=event.fruitless,
            swept=event.ended,
        )


def handed(attempts: dict[str, Attempt], event: events.HandoffTriggered) -> None:
    known = attempts.get(event.launch) or Attempt(event.cycle, event.session, resumes=False)

    def of_window(tokens: int | None) -> float | None:
        return tokens * 100 / event.window if tokens is not None and event.window else None

    attempts[event.launch] = msgspec.structs.replace(
        known,
        handed_by=event.by,
        percent=of_window(event.tokens),
        first_percent=of_window(event.first),
        work=event.work,
    )


def resumed(attempts: dict[str, Attempt], event: events.HandoffResumed) -> None:
    known = attempts.get(event.launch) or Attempt(event.cycle, "", resumes=False)
    attempts[event.launch] = msgspec.structs.replace(known, goes_on=True)


def _end(event: events.LaunchEnded) -> tuple[object, ...]:
    """What is compared where a launch was ended twice, so that the order never decides."""
    more = (event.seconds, event.started, event.opened)
    return event.ts, event.exit, event.words, event.resets_at or 0, *more, event.seq, event.ended


def _end_of(known: Attempt) -> tuple[object, ...]:
    more = (known.seconds, known.started, known.opened)
    return (
        known.ended,
        known.exit,
        known.words,
        known.resets_at or 0,
        *more,
        known.ended_seq,
        known.swept,
    )


def of_cycle(attempts: Attempts, cycle: int) -> dict[str, Attempt]:
    """What was tried in a cycle, in order."""
    found = {launch: one for launch, one in attempts.items() if one.cycle == cycle}
    return dict(sorted(found.items(), key=lambda item: item[1].seq))


def newest(attempts: Attempts) -> Attempt | None:
    return max(attempts.values(), key=lambda one: one.seq, default=None)


def of_launch(lives: Lives, launch: str) -> str:
    """The session that a launch has opened, as its hooks told; empty: none that we know of."""
    found = [
        (life.started_seq, str(life.started), name)
        for name, life in lives.items()
        if life.launch == launch
    ]
    return min(found)[-1] if found else ""


def unended(lives: Lives) -> dict[str, Life]:
    """A person's own sessions that never said that they ended, oldest first."""
    found = {name: life for name, life in lives.items() if life.is_open and not life.launch}
    return dict(sorted(found.items(), key=lambda item: _latest(item[1])))


def newest_lives(lives: Lives) -> dict[str, Life]:
    """What a snapshot keeps; sessions that never ended stay the longest."""
    order = sorted(lives.items(), key=lambda item: (item[1].is_open, _latest(item[1]), item[0]))
    return dict(order[-SESSIONS_KEPT:])


def newest_attempts(attempts: Attempts) -> dict[str, Attempt]:
    return dict(sorted(attempts.items(), key=lambda item: (item[1].seq, item[0]))[-SESSIONS_KEPT:])


def _latest(life: Life) -> tuple[int, float]:
    times = (ts.timestamp() for ts in (life.started, life.ended) if ts)
    return max(life.started_seq, life.ended_seq), max(times, default=0.0)
