"""A run: from the operator's word to the end of the work, over any number of supervisors.

What is known of it is folded from the log, so that a supervisor that takes over from one that was
killed knows what it knew: what it was waiting for, what was spent, that it was in safe mode.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from rekindle.documents import event as events
from rekindle.documents.manifest import Budget
from rekindle.policy import budget, cycle, endings, handoff, idle, loops, restart
from rekindle.policy.budget import Spent
from rekindle.policy.cycle import Fresh, Resume
from rekindle.policy.idle import Idle
from rekindle.policy.restart import Safe, Stop, Wait
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import Runtime

SETTINGS: Final = "settings"
"""Reason of the safe mode of an agent whose settings changed without the operator's command."""
TAMPERED: Final = "tampered"
"""Why an agent is in safe mode whose log something else than Rekindle has changed."""


class Said(msgspec.Struct, frozen=True, order=True):
    """The operator's last word."""

    ts: datetime
    desired: str


class Mark(msgspec.Struct, frozen=True, order=True):
    """The last of its kind, by its place in the log."""

    seq: int = 0
    why: str = ""
    words: str = ""


class Waiting(msgspec.Struct, frozen=True):
    seq: int
    why: str
    until: datetime


class Cap(msgspec.Struct, frozen=True, order=True):
    """How many cycles the operator has said, and where in the log."""

    seq: int = 0
    cycles: int | None = None


class Bounds(msgspec.Struct, frozen=True, order=True):
    """Whether the operator has lifted the bounds on work without progress, and where in the log."""

    seq: int = 0
    lifted: bool = False


class RefusedCalls(msgspec.Struct, frozen=True, order=True):
    """How many tool calls of the run were refused, and where in the log."""

    seq: int = 0
    count: int = 0


class Raised(msgspec.Struct, frozen=True, order=True):
    """A cap that the operator set for this run, and where in the log."""

    unit: str
    seq: int
    amount: float


class Run(msgspec.Struct, frozen=True):
    said: Said | None = None
    began: int = 0
    """Where in the log it began."""
    began_at: datetime | None = None
    restarted: int = 0
    wanted: int = 0
    """Where in the log the operator last said that it is to run."""
    stopped: int = 0
    """Place in the log of the operator's last stop: no pause counts a launch before it."""
    ended: Mark = Mark()
    safe: Mark = Mark()
    waiting: Waiting | None = None
    spent: Spent = Spent()
    first: int = 0
    """The last cycle before it."""
    heeded: int = 0
    """Where in the log a person has last restarted it, or answered: the ladder counts from here."""
    cycles: Cap = Cap()
    bounds: Bounds = Bounds()
    raised: tuple[Raised, ...] = ()
    """The caps that the operator set last, one for each unit."""
    refused: RefusedCalls = RefusedCalls()

    @property
    def desired(self) -> str:
        """`running`, `stopped`, or empty where the operator has never said a word."""
        return self.said.desired if self.said else ""

    @property
    def since(self) -> int:
        """What lies before it in the log stands in nobody's way any more."""
        overruled = self.ended.seq if self.wanted > self.ended.seq else 0
        return max(self.began, self.restarted, overruled)

    @property
    def is_over(self) -> bool:
        return self.ended.seq > self.since

    @property
    def is_safe(self) -> bool:
        """In safe mode: alive, running nothing, waiting for a person."""
        # A later `run` or `up` has accepted the settings; a supervisor that finds others says so.
        is_accepted = self.safe.why == SETTINGS and self.wanted > self.safe.seq
        return self.safe.seq > max(self.since, self.ended.seq) and not is_accepted

    def waits(self, tried: int) -> Waiting | None:
        """What is waited for since the last launch, which stands at `tried` in the log."""
        found = self.waiting
        return found if found is not None and found.seq > max(self.since, tried) else None

    def spent_of_run(self) -> Spent:
        return self.spent if self.spent.seq > self.began else Spent()

    def refused_of_run(self) -> int:
        """Return how many tool calls of this run were refused."""
        return self.refused.count if self.refused.seq > self.began else 0

    def raised_of_run(self) -> dict[str, float]:
        """Return the caps that the operator has raised for this run, by their unit."""
        return {one.unit: one.amount for one in self.raised if one.seq > self.began}


def is_done(run: Run) -> bool:
    """Return whether the run is over because its work is done."""
    return run.is_over and endings.outcome(run.ended.why).state == "done"


class End(msgspec.Struct, frozen=True):
    """The cycle is over; what comes after it, `loop` says."""


class HandOn(msgspec.Struct, frozen=True):
    """A checkpoint is to be written: a fresh session goes on with it."""


Launch = Fresh | Resume
Move = Launch | Wait | Safe | Stop | End | HandOn


def next_move(  # noqa: PLR0911 - one for each thing that may decide
    run: Run,
    tried: Sequence[Attempt],
    *,
    now: datetime,
    runtime: Runtime,
    cap: Budget | None = None,
    stays: bool = False,
    threshold: int | None = None,
    checkpoint: int = 0,
    fruitless: Idle = Idle(),  # noqa: B008 - frozen
    paces_handoffs: bool = True,
    resumes_count: bool = False,
) -> Move:
    """What to do now: the operator's word, safe mode, what is done, money, and how things went.

    `checkpoint` is where in the log the last one was committed, `threshold` how full a window may
    be. `fruitless` is the work since the last progress. `paces_handoffs`: a launch after a handoff
    waits as any other does if there was no progress. `resumes_count`: see
    `restart.verdict`.
    """
    if run.desired == "stopped":
        return Stop("stopped", "as the operator said")
    if run.is_safe:
        return Safe(endings.known(run.safe.why), run.safe.words)
    if tried and tried[-1].exit == "clean" and not stays:
        # Whenever that was, and with the last money too: the cycle only needs to be closed.
        return End()
    cap = budget.raise_caps(cap, run.raised_of_run())
    if words := budget.exhausted(run.spent_of_run(), cap, began=run.began_at, now=now):
        return Stop("budget", words)
    recent = [one for one in tried if one.seq > run.since]
    verdict = restart.verdict(
        recent,
        now=now,
        runtime=runtime,
        stays=stays,
        stopped=run.stopped,
        resumes_count=resumes_count,
    )
    if isinstance(verdict, Safe | Stop):
        return verdict
    if not run.bounds.lifted and (pause := idle.pause(fruitless, runtime.progress)):
        return pause
    last = tried[-1] if tried else None
    is_due = last is not None and endings.checkpoints(last.exit) and checkpoint < last.ended_seq
    paced = idle.pace(fruitless, runtime.progress, now)
    if last is not None and last.exit == restart.HANDED_OFF and (is_due or not paces_handoffs):
        paced = None  # the checkpoint is not kept waiting
    if wait := _later(verdict, paced):
        return wait
    if is_due:
        return (handoff.verdict(recent, threshold, stays=stays) if recent else None) or HandOn()
    return cycle.next_step(tried)


def _later(*waits: Wait | None) -> Wait | None:
    return max((one for one in waits if one), key=lambda one: one.until, default=None)


def begins(run: Run, tried: Iterable[Attempt]) -> bool:
    """Whether a run that is wanted is a new one, and not the last one that goes on.

    A restart of a run that is over begins a new one; of one that went on after its end, none.
    """
    went_on = any(run.ended.seq < one.seq < run.restarted for one in tried)
    restarted = run.restarted > run.ended.seq and not went_on
    is_ended = run.ended.seq > run.began
    return run.began == 0 or (
        is_ended and (endings.ENDINGS[endings.known(run.ended.why)].between or restarted)
    )


def say(
    run: Run,
    desired: Literal["running", "stopped"],
    now: datetime,
    cycles: int | None = None,
    *,
    unbounded: bool | None = None,
) -> events.DesiredSaid:
    """The operator's word, after every earlier one, whatever the clock says."""
    before = [run.said.ts] if run.said else []
    ts = loops.later(now, *before)
    return events.DesiredSaid(ts=ts, desired=desired, cycles=cycles, unbounded=unbounded)


def said(run: Run, event: events.DesiredSaid) -> Run:
    found = Said(event.ts, event.desired)
    wanted, stopped = run.wanted, run.stopped
    if event.desired == "running":
        wanted = max(wanted, event.seq)
    else:
        stopped = max(stopped, event.seq)
    cap = run.cycles
    if event.cycles is not None and event.seq >= cap.seq:
        cap = Cap(event.seq, event.cycles)
    bounds = run.bounds
    if event.unbounded is not None:
        bounds = max(bounds, Bounds(event.seq, event.unbounded))
    return msgspec.structs.replace(
        run,
        said=max(run.said or found, found),
        wanted=wanted,
        stopped=stopped,
        cycles=cap,
        bounds=bounds,
    )


def answered(run: Run, event: events.QuestionAnswered) -> Run:
    """Return the run with the effect of an answer that counts."""
    change = msgspec.structs.replace
    if event.effect == "note":
        return run
    if event.effect == "finish":
        by = f" by {event.by}" if event.by else ""
        end = Mark(event.seq, "claimed", f"accepted{by}, although `until:` fails, or its review")
        return change(run, ended=max(run.ended, end))
    is_stop = event.effect == "stop"
    word = Said(event.ts, "stopped" if is_stop else "running")
    run = change(run, said=max(run.said or word, word))
    if is_stop:
        return change(run, stopped=max(run.stopped, event.seq))
    run = change(run, wanted=max(run.wanted, event.seq))
    if event.effect == "restart":
        seq = event.seq
        run = change(run, restarted=max(run.restarted, seq), heeded=max(run.heeded, seq))
    caps = [Raised(unit, event.seq, amount) for unit, amount in event.budget.items()]
    last = {one.unit: one for one in sorted({*run.raised, *caps})}
    return change(run, raised=tuple(last.values()))


def happened(run: Run, event: object) -> Run:  # noqa: C901, PLR0911 - one for each kind
    """The run with one event more; by its place in the log, so that the order never decides."""
    change = msgspec.structs.replace
    match event:
        case events.RunStarted() if event.seq > run.began:
            return change(run, began=event.seq, began_at=event.ts, first=event.cycle)
        case events.RestartAsked(once=False) | events.Answered():
            heeded = max(run.heeded, event.seq)
            return change(run, restarted=max(run.restarted, event.seq), heeded=heeded)
        case events.RestartAsked():
            return change(run, restarted=max(run.restarted, event.seq))
        case events.RunEnded():
            return change(run, ended=max(run.ended, Mark(event.seq, event.outcome, event.words)))
        case events.SafeModeEntered():
            return change(run, safe=max(run.safe, Mark(event.seq, event.why, event.words)))
        case events.CallRefused():
            return change(run, refused=max(run.refused, RefusedCalls(event.seq, event.of_run)))
        case events.WaitStarted() if run.waiting is None or event.seq > run.waiting.seq:
            return change(run, waiting=Waiting(event.seq, event.why, event.until))
        case events.SpendNoted() if event.seq > run.spent.seq:
            return change(run, spent=Spent(event.seq, event.usd, event.tokens, event.unpriced))
        case events.SummaryMade(run_usd=float(usd), run_tokens=int(tokens)) if (
            event.seq > run.spent.seq
        ):
            whole = Spent(event.seq, usd, tokens, event.unpriced, is_reported=bool(event.usd))
            return change(run, spent=whole)
        case events.ReviewMade() if event.seq > run.spent.seq:
            spent = Spent(event.seq, event.run_usd, event.run_tokens, event.unpriced)
            return change(run, spent=spent)
        case events.LaunchEnded() if event.seq > run.spent.seq:
            whole = Spent(
                event.seq,
                event.run_usd,
                event.run_tokens,
                event.unpriced,
                is_reported=event.usd is not None,
            )
            return change(run, spent=whole)
        case _:
            return run
