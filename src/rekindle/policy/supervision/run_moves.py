"""Decide a run's moves, from the operator's command to the end of the work.

A run's state is computed from the log, so a new supervisor knows everything that its killed
predecessor knew: the pending wait, the spending, and whether the run was in safe mode.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from rekindle.documents import events
from rekindle.documents.events.operator_events import DEADLINE
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.exits import restart, stop_reasons
from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.handoff import window_rule
from rekindle.policy.progress import idle
from rekindle.policy.progress.idle import IdleWork
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.sessions import NOT_IN_LOG, LaunchRecord
from rekindle.policy.routes.choose_route import RouteChoice, RouteRequest
from rekindle.policy.routes.route_path import RoutePath
from rekindle.policy.settings.runtime_settings import RuntimeSettings
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.raised_caps import RaisedCap, add_caps
from rekindle.policy.supervision.sandbox_refusals import RefusedHost, add_refused_host

SETTINGS_REASON: Final = "settings"
"""Reason for safe mode after the settings changed without the operator's command."""
QUOTA_REASON: Final = "quota"
"""Reason for a wait before the agent uses quota that is kept for others."""
TAMPERED_REASON: Final = "tampered"
"""Reason for safe mode after a program other than Rekindle changed the log."""


class OperatorCommand(msgspec.Struct, frozen=True, order=True):
    """The operator's last command."""

    ts: datetime
    desired: str


class LogPosition(msgspec.Struct, frozen=True, order=True):
    """Log position and reason of the last event of one kind."""

    seq: int = 0
    why: str = ""
    words: str = ""


class PendingWait(msgspec.Struct, frozen=True):
    seq: int
    why: str
    until: datetime
    words: str = ""


class CycleLimit(msgspec.Struct, frozen=True, order=True):
    """Maximum number of cycles that the operator set, and the log position of that command."""

    seq: int = 0
    cycles: int | None = None


class ProgressBounds(msgspec.Struct, frozen=True, order=True):
    """Whether the operator lifted the progress limits, and the log position of that command."""

    seq: int = 0
    lifted: bool = False


class ScheduledStart(msgspec.Struct, frozen=True):
    """Due time of the last run that a schedule started, and the log position of that command."""

    seq: int
    due: datetime


class RefusedCallCount(msgspec.Struct, frozen=True, order=True):
    """Number of refused tool calls in the run, and the log position of the count."""

    seq: int = 0
    count: int = 0


class RunState(msgspec.Struct, frozen=True):
    command: OperatorCommand | None = None
    """The operator's last command, `running` or `stopped`."""
    began: int = 0
    """Log position of the start of the run."""
    began_at: datetime | None = None
    restarted: int = 0
    lifted: int = 0
    """Log position of `rekindle restart`, whose launch does not wait for the quota."""
    wanted: int = 0
    """Log position of the operator's last command to run."""
    stopped: int = 0
    """Log position of the operator's last stop. Launches before it do not count towards pauses."""
    ended: LogPosition = LogPosition()
    safe: LogPosition = LogPosition()
    waiting: PendingWait | None = None
    spent: RunSpending = RunSpending()
    first: int = 0
    """Number of the last cycle before the run."""
    intervened: int = 0
    """Log position of a person's last restart or answer, from which the stall ladder counts."""
    cycles: CycleLimit = CycleLimit()
    bounds: ProgressBounds = ProgressBounds()
    raised: tuple[RaisedCap, ...] = ()
    """The last cap that the operator set for each unit."""
    refused: RefusedCallCount = RefusedCallCount()
    refused_hosts: tuple[RefusedHost, ...] = ()
    """Hosts that the sandbox refused most recently, without duplicates."""
    scheduled: ScheduledStart | None = None
    route: RouteRequest = RouteRequest()
    """The operator's last request to continue on another route."""

    @property
    def desired(self) -> str:
        """Return `running` or `stopped`, or "" if the operator has not given a command yet."""
        return self.command.desired if self.command else ""

    @property
    def since(self) -> int:
        """Return the log position before which events no longer affect the run."""
        overruled = self.ended.seq if self.wanted > self.ended.seq else 0
        return max(self.began, self.restarted, overruled)

    @property
    def is_over(self) -> bool:
        return self.ended.seq > self.since

    @property
    def is_safe(self) -> bool:
        """Return whether the run is in safe mode: it runs nothing and waits for a person."""
        # A later `run` or `up` accepts the settings; if they still differ, the run enters safe mode
        # again.
        is_accepted = self.safe.why == SETTINGS_REASON and self.wanted > self.safe.seq
        return self.safe.seq > max(self.since, self.ended.seq) and not is_accepted

    def waits(self, last_seq: int) -> PendingWait | None:
        """Return the wait that began after the last launch (log position `last_seq`), or None."""
        wait = self.waiting
        return wait if wait is not None and wait.seq > max(self.since, last_seq) else None

    def is_overruled(self, launch: LaunchRecord) -> bool:
        """Return whether the operator gave a command that makes the launch's exit irrelevant."""
        is_raised = launch.exit == "budget" and any(cap.seq > launch.seq for cap in self.raised)
        return launch.seq <= self.since or is_raised

    def run_spending(self) -> RunSpending:
        return self.spent if self.spent.seq > self.began else RunSpending()

    def refused_call_count(self) -> int:
        """Count the refused tool calls in this run."""
        return self.refused.count if self.refused.seq > self.began else 0

    def list_refused_hosts(self) -> list[str]:
        """Return the hosts that the sandbox refused most recently in this run."""
        return [refused.host for refused in self.refused_hosts if refused.seq > self.began]

    def raised_caps(self) -> dict[str, float]:
        """Return the caps that the operator raised for this run, by unit."""
        return {cap.unit: cap.amount for cap in self.raised if cap.seq > self.began}


def is_done(run: RunState) -> bool:
    """Return whether the run is over because its work is done."""
    return run.is_over and stop_reasons.find_outcome(run.ended.why).state == "done"


class CloseCycle(msgspec.Struct, frozen=True):
    """Decision to close the cycle; `stall.stall_response` decides what happens next."""


class HandOff(msgspec.Struct, frozen=True):
    """Decision to write a checkpoint from which a fresh session continues."""


LaunchMove = StartFresh | ResumeSession
Move = LaunchMove | WaitUntil | EnterSafeMode | StopRun | CloseCycle | HandOff


def decide_next_move(  # noqa: PLR0911 - one return per deciding fact
    run: RunState,
    launches: Sequence[LaunchRecord],
    *,
    now: datetime,
    runtime: RuntimeSettings,
    cap: Budget | None = None,
    stays: bool = False,
    threshold: int | None = None,
    checkpoint: int = 0,
    fruitless: IdleWork = IdleWork(),  # noqa: B008 - frozen
    choice: RouteChoice | None = None,
    carries: bool = False,
) -> Move:
    """Decide the next move, based on the operator's command, safe mode, results, budget and exits.

    `checkpoint` is the log position of the last committed checkpoint, `threshold` the percentage of
    the context window at which to hand off, and `fruitless` the work since the last progress.
    `choice` is the route for the next launch, or None if the agent has only one. `carries` means
    that its CLI can continue a session of another account.
    """
    if run.desired == "stopped":
        return StopRun("stopped", "by the operator")
    if run.is_safe:
        return EnterSafeMode(stop_reasons.parse_reason(run.safe.why), run.safe.words)
    if launches and launches[-1].exit == "clean" and not stays:
        # Ignore the remaining time and budget, because the cycle only has to be closed.
        return CloseCycle()
    cap = budget.raise_caps(cap, run.raised_caps())
    if words := budget.describe_reached_cap(run.run_spending(), cap, began=run.began_at, now=now):
        return StopRun("budget", words)
    recent = [launch for launch in launches if not run.is_overruled(launch)]
    last = launches[-1] if launches else None
    path = RoutePath(choice, last, can_carry=carries)
    verdict = path.decide_hold(waits=runtime.limits.wait) or restart.decide_restart(
        path.select(recent),
        now=now,
        runtime=runtime,
        stays=stays,
        stopped=run.stopped,
    )
    if isinstance(verdict, EnterSafeMode | StopRun):
        return verdict
    if not run.bounds.lifted and (pause := idle.decide_pause(fruitless, runtime.progress)):
        return pause
    is_due = path.is_checkpoint_due(launches, checkpoint)
    paced = idle.decide_pace(fruitless, runtime.progress, now)
    if last is not None and last.exit == restart.HANDOFF_EXIT and is_due:
        paced = None  # write the checkpoint without a wait
    if wait := _find_latest_wait(verdict, paced):
        return wait
    if is_due:
        return (
            window_rule.decide_halt(recent, threshold, stays=stays) if recent else None
        ) or HandOff()
    return path.choose_session(launches, checkpoint)


def _find_latest_wait(*waits: WaitUntil | None) -> WaitUntil | None:
    return max((wait for wait in waits if wait), key=lambda wait: wait.until, default=None)


def is_new_run(run: RunState, launches: Iterable[LaunchRecord]) -> bool:
    """Return whether the operator's command starts a new run instead of continuing the last one.

    Restarting a finished run starts a new one, unless the run was continued after it finished.
    """
    was_continued = any(run.ended.seq < launch.seq < run.restarted for launch in launches)
    restarted = run.restarted > run.ended.seq and not was_continued
    is_ended = run.ended.seq > run.began
    return run.began == 0 or (
        is_ended
        and (
            stop_reasons.STOP_REASONS[stop_reasons.parse_reason(run.ended.why)].between or restarted
        )
    )


def make_desired_event(
    run: RunState,
    desired: Literal["running", "stopped"],
    now: datetime,
    cycles: int | None = None,
    *,
    unbounded: bool | None = None,
    due: datetime | None = None,
) -> events.DesiredSet:
    """Return the operator's command with a later time than the last one, whatever the clock shows.

    `due` is the due time of a schedule that gives the command on the operator's behalf.
    """
    before = [run.command.ts] if run.command else []
    ts = open_loops.stamp_after(now, *before)
    return events.DesiredSet(ts=ts, desired=desired, cycles=cycles, unbounded=unbounded, due=due)


def apply_desired(run: RunState, event: events.DesiredSet) -> RunState:
    command = OperatorCommand(event.ts, event.desired)
    wanted_seq, stopped = run.wanted, run.stopped
    if event.desired == "running":
        wanted_seq = max(wanted_seq, event.seq)
    else:
        stopped = max(stopped, event.seq)
    cap = run.cycles
    if event.cycles is not None and event.seq >= cap.seq:
        cap = CycleLimit(event.seq, event.cycles)
    bounds = run.bounds
    if event.unbounded is not None:
        bounds = max(bounds, ProgressBounds(event.seq, event.unbounded))
    scheduled = run.scheduled
    if event.due is not None and (scheduled is None or event.seq >= scheduled.seq):
        scheduled = ScheduledStart(event.seq, event.due)
    return msgspec.structs.replace(
        run,
        command=max(run.command or command, command),
        wanted=wanted_seq,
        stopped=stopped,
        cycles=cap,
        bounds=bounds,
        scheduled=scheduled,
    )


def apply_answer(run: RunState, event: events.QuestionAnswered) -> RunState:
    """Return the run after applying a valid answer."""
    change = msgspec.structs.replace
    if event.effect == "note":
        return run
    if event.effect == "finish":
        by = f" by {event.by}" if event.by else ""
        despite = "" if event.choice == "done" else ", although `until:` or the review failed"
        end = LogPosition(event.seq, "claimed", f"accepted{by}{despite}")
        return change(run, ended=max(run.ended, end))
    is_stop = event.effect == "stop"
    command = OperatorCommand(event.ts, "stopped" if is_stop else "running")
    run = change(run, command=max(run.command or command, command))
    if is_stop:
        return change(run, stopped=max(run.stopped, event.seq))
    run = change(run, wanted=max(run.wanted, event.seq))
    if event.effect == "restart":
        run = change(run, restarted=max(run.restarted, event.seq))
        if event.origin != DEADLINE:  # otherwise a login that fails again and again lifts bounds
            run = change(run, intervened=max(run.intervened, event.seq))
    return change(run, raised=add_caps(run.raised, event.seq, event.budget))


def apply_event(run: RunState, event: object) -> RunState:  # noqa: C901, PLR0911, PLR0912 - one case per kind
    """Return the run after another event. Log positions decide, not the order of arrival."""
    change = msgspec.structs.replace
    match event:
        case events.RunStarted() if event.seq > run.began:
            return change(run, began=event.seq, began_at=event.ts, first=event.cycle)
        case events.RestartRequested(once=False) | events.PersonAnswered():
            intervened, seq = max(run.intervened, event.seq), max(run.restarted, event.seq)
            lifted = seq if isinstance(event, events.RestartRequested) else run.lifted
            return change(run, restarted=seq, intervened=intervened, lifted=lifted)
        case events.RestartRequested():
            return change(run, restarted=max(run.restarted, event.seq))
        case events.BudgetRaised():
            caps = {"usd": event.usd, "tokens": event.tokens, "hours": event.hours}
            return change(run, raised=add_caps(run.raised, event.seq, caps))
        case events.HandoffRequested():
            seq = event.seq or NOT_IN_LOG
            return change(run, route=max(run.route, RouteRequest(seq, event.to)))
        case events.RunEnded():
            return change(run, ended=max(run.ended, LogPosition(event.seq, event.why, event.words)))
        case events.SafeModeEntered():
            return change(run, safe=max(run.safe, LogPosition(event.seq, event.why, event.words)))
        case events.CallRefused():
            return change(run, refused=max(run.refused, RefusedCallCount(event.seq, event.of_run)))
        case events.HostRefused():
            hosts = add_refused_host(run.refused_hosts, RefusedHost(event.seq, event.host))
            return change(run, refused_hosts=hosts)
        case events.WaitStarted() if run.waiting is None or event.seq > run.waiting.seq:
            return change(run, waiting=PendingWait(event.seq, event.why, event.until, event.words))
        case events.SpendRecorded() if event.seq > run.spent.seq:
            return change(
                run, spent=RunSpending(event.seq, event.usd, event.tokens, event.unpriced)
            )
        case events.SummaryMade(run_usd=float(usd), run_tokens=int(tokens)) if (
            event.seq > run.spent.seq
        ):
            is_reported = budget.is_cost_reported(
                is_estimated=event.is_estimated, older=bool(event.usd)
            )
            return change(
                run, spent=RunSpending(event.seq, usd, tokens, event.unpriced, is_reported)
            )
        case events.ReviewMade() if event.seq > run.spent.seq:
            is_reported = budget.is_cost_reported(is_estimated=event.is_estimated, older=False)
            spent = RunSpending(
                event.seq, event.run_usd, event.run_tokens, event.unpriced, is_reported
            )
            return change(run, spent=spent)
        case events.LaunchEnded() if event.seq > run.spent.seq:
            spending = RunSpending(
                event.seq,
                event.run_usd,
                event.run_tokens,
                event.unpriced,
                is_reported=budget.is_cost_reported(
                    is_estimated=event.is_estimated, older=event.usd is not None
                ),
            )
            return change(run, spent=spending)
        case _:
            return run
