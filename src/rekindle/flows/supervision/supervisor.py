"""Supervise an agent: keep it running until its work is done or a person is needed.

All state is in the log, so a new supervisor makes the same decisions as the one before it. It
resumes the same wait, and still counts the money spent so far.
"""

from contextlib import suppress

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import LaunchExit
from rekindle.documents.launches.route import Route
from rekindle.errors import AgentError, FolderLostError, RekindleError, StoreError, TamperedLogError
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.supervision.quota_check import QuotaCheck
from rekindle.flows.supervision.supervisor_steps import SupervisorSteps
from rekindle.flows.supervision.supervisor_waits import SupervisorWaits
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    SafeModeReport,
    SkippedWaitReport,
    SupervisorPorts,
    TroubleReport,
)
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh, choose_session
from rekindle.policy.exits.stop_reasons import REACTIONS, STOP_REASONS, Outcome, StopReason
from rekindle.policy.operator.build_row import DOCTOR
from rekindle.policy.progress import idle
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.policy.supervision import run_moves as policy
from rekindle.policy.supervision.next_move import measure_idle_work
from rekindle.policy.supervision.run_moves import CloseCycle, HandOff, Move, RunState


class RunResult(msgspec.Struct, frozen=True):
    """Result of a run that has ended or paused."""

    cycle: int
    outcome: Outcome | None
    """How the run ended; None if it did not start because the agent is meant to be stopped."""
    why: StopReason = "stopped"
    last: LaunchExit | None = None
    words: str = ""
    safe: str = ""
    """Reason for safe mode at the end of the run; empty if the agent was not in safe mode."""


class Supervisor:
    """The supervisor of one agent."""

    def __init__(
        self,
        agent: AgentSpec,
        world: SupervisorPorts,
        *,
        once: bool = False,
        by_watchdog: bool = False,
        is_recorded: bool = False,
        unbounded: bool = False,
        ending: CycleEndPorts | None = None,
    ) -> None:
        """Supervise `agent`.

        With `once`, the run ends instead of waiting. With `by_watchdog`, the supervisor obeys the
        last recorded command without recording a new one. `is_recorded` means that the caller has
        already recorded the operator's command. Recording it again would override commands given
        during startup. With `unbounded`, the run does not pause for lack of progress. Without
        `ending`, cycles end without a relay.
        """
        self._ports, self._ends = world, ending
        self._once, self._by_watchdog = once, by_watchdog
        self._is_recorded = is_recorded or by_watchdog
        self._unbounded = unbounded
        self._waits = SupervisorWaits(agent.name, world)
        self._load_agent(agent)
        self._waited_after = 0
        self._has_launched = False
        self._has_notified_idle = False

    def _load_agent(self, agent: AgentSpec, last: LaunchExit | None = None) -> None:
        self._agent = agent
        self._steps = SupervisorSteps(agent, self._ports, self._ends, last)
        self._cycle, self._log = self._steps.cycle, self._steps.log
        self._quota = QuotaCheck(agent, self._ports)

    def run(self) -> RunResult:
        with self._ports.store.supervising(self._agent.name):
            projection = self._log.known()
            # Check under the lock, in case a command has arrived since the caller checked.
            if self._is_recorded and (
                projection.run.desired != "running" or projection.run.is_over
            ):
                return RunResult(projection.cycle, None)
            self._load_last_route(projection)
            self._cycle.settle()
            self._begin_run()
            try:
                return self._run_until_end()
            except FolderLostError as error:
                self._cycle.end_kept_processes()
                self._ports.notify("folder lost", str(error))
                raise

    def _replace_agent(self, agent: AgentSpec) -> None:
        self._cycle.snapshots.finish()
        self._load_agent(agent, self._cycle.last)

    def _run_until_end(self) -> RunResult:
        result = None
        while result is None:
            result = self._step_or_wait_for_disk()
            if result is None and self._ports.interrupted():
                result = self._handle_interrupt()
        self._cycle.note_spending()
        return result

    def _step_or_wait_for_disk(self) -> RunResult | None:
        """Run one step. If the disk is full, wait and retry, unless this is the first launch.

        If the supervisor exited instead, nothing would restart the agent. A launch whose exit could
        not be recorded is settled like one from a supervisor that died.
        """
        try:
            self._ports.store.check_supervision(self._agent.name)
            return self._run_step()
        except TamperedLogError as error:
            return self._wait_for_acceptance(error)
        except StoreError as error:
            if self._ports.by_hand():
                return self._handle_interrupt()
            if not self._has_launched or self._ports.interrupted():
                raise
            self._ports.store.check_supervision(self._agent.name)
            self._ports.tell(TroubleReport(str(error)))
            self._ports.rest(self._ports.settings.runtime.restart.cooldown or POLL_SECONDS)
        with suppress(StoreError):
            self._cycle.settle()
        return None

    def _wait_for_acceptance(self, error: TamperedLogError) -> RunResult | None:
        """Wait in safe mode until the operator accepts the log or stops the agent."""
        store, name = self._ports.store, self._agent.name
        number = store.read(name).projection.current_cycle
        if self._once:
            return self._make_result(number, policy.TAMPERED_REASON, str(error))
        self._ports.tell(SafeModeReport(policy.TAMPERED_REASON, error.reason))
        self._ports.notify(policy.TAMPERED_REASON, f"{error.reason}\n→ {DOCTOR}")
        self._waits.clear_start_record()
        while not self._ports.interrupted():
            agent_view = store.read(name)
            if not agent_view.is_tampered:
                self._cycle.settle()
                return None
            if agent_view.projection.run.desired == "stopped":
                break
            self._ports.rest(POLL_SECONDS)
        # The operator's commands are also stored outside the log, and still apply.
        if self._ports.by_hand():
            self._record_stop(self._read_projection().run)
        return self._make_result(number, "stopped", safe=error.reason)

    def _begin_run(self) -> None:
        """Record the operator's command, and begin a new run if the last one has ended."""
        folder, projection = self._ports.store.folder(self._agent.name), self._log.known()
        run = projection.run
        folder.remove(folder.clean_exit)
        now = self._ports.clock()
        new_events: list[events.AnyEvent] = []
        if not self._is_recorded:
            cycles, unbounded = self._agent.cycles, self._unbounded
            new_events.append(
                policy.make_desired_event(run, "running", now, cycles, unbounded=unbounded)
            )
        if self._once:
            new_events.append(events.RestartRequested(ts=now, once=True))
        if policy.is_new_run(run, projection.attempts.values()):
            new_events.append(events.RunStarted(ts=now, cycle=projection.cycle_ended))
        if new_events:
            self._log.append(*new_events)

    def _run_step(self) -> RunResult | None:  # noqa: C901, PLR0911, PLR0912 - one branch per kind of move
        """Take the next step. Return a result if the step ends the run, or None."""
        self._log.person.apply_defaults()
        projection = self._log.known()
        number = projection.current_cycle
        if projection.run.is_over:  # the operator has confirmed that the work is done
            ended = StopRun(
                stop_reasons.parse_reason(projection.run.ended.why), projection.run.ended.words
            )
            return self._end_run(number, ended, projection.seq)
        launches = sessions.select_cycle_launches(projection.attempts, number)
        attempts = list(launches.values())
        self._cycle.note_spending()
        move = self._decide(projection)
        if attempts and attempts[-1].exit != "limit":
            self._waits.has_notified_limit = False
        if isinstance(move, WaitUntil) and move.after == self._waited_after:
            # According to the monotonic clock, the wait is over, so the wall clock was changed.
            move = choose_session(attempts)
        move = self._check_consent(move)
        move = self._quota.check_move(move, projection)
        if isinstance(move, WaitUntil | StartFresh | ResumeSession):
            self._notify_idle(move, projection)
        if not isinstance(move, HandOff):
            self._cycle.snapshots.finish()
        match move:
            case StopRun():
                return self._stop_run(number, move, projection.seq)
            case CloseCycle():
                then, seq = self._steps.end(number)
                return self._finish_cycle(number, then, seq) if then else None
            case HandOff():
                halts = self._steps.hand_off_session(launches)
                return self._enter_halt(number, halts) if halts else None
            case EnterSafeMode():
                is_safe = projection.run.is_safe
                run = projection.run if is_safe else self._steps.enter_safe_mode(number, move)
                if self._once:
                    return self._make_result(number, move.why, move.words)
                self._waits.wait_in_safe_mode(self._log, move, run)
                self._renew_agent()
            case WaitUntil(why=idle.IDLE_REASON) if self._once:
                words = idle.describe_next_launch(move, attempts[-1].words if attempts else "")
                return self._make_result(number, move.why, words)
            case WaitUntil(why=policy.QUOTA_REASON) if self._once:
                return self._make_result(number, move.why, move.words)
            case WaitUntil(why=policy.QUOTA_REASON):
                self._waits.wait_until(self._log, move, projection.run, self._quota.is_released)
            case WaitUntil() | StartFresh() | ResumeSession() if (
                self._once and self._is_external_failure(move, attempts, projection)
            ):
                return self._make_result(number, stop_reasons.parse_reason(attempts[-1].exit))
            case WaitUntil():
                if self._waits.wait_until(self._log, move, projection.run):
                    self._waited_after = move.after
            case StartFresh() | ResumeSession():
                halts = self._start_launch(move, projection)
                return self._enter_halt(number, halts) if halts else None
        return None

    def _decide(self, projection: Projection) -> Move:
        """Return the next move, with the agent on the route that is chosen for it."""
        choice = self._steps.choose_route(projection)
        while choice is not None and choice.route != self._agent.route:
            self._load_route(choice.route)
            choice = self._steps.choose_route(projection)
        return self._steps.decide(projection, choice)

    def _load_last_route(self, projection: Projection) -> None:
        """Load the agent on the route of its last launch, which may still have to be settled."""
        newest = sessions.find_newest_launch(projection.attempts)
        if newest is not None and newest.route in self._agent.routes:
            self._load_route(newest.route)

    def _load_route(self, route: Route) -> None:
        if route != self._agent.route and (routed := self._ports.open_route(route)):
            self._replace_agent(routed)

    def _check_consent(self, move: policy.Move) -> policy.Move:
        """Return the move, or safe mode if it would start something not accepted by the operator.

        Ending a cycle and handing off also start programs that the manifest names.
        """
        starts = isinstance(move, StartFresh | ResumeSession | CloseCycle | HandOff)
        words = self._ports.unaccepted() if starts else ""
        return EnterSafeMode(policy.SETTINGS_REASON, words) if words else move

    def _notify_idle(self, move: Move, projection: Projection) -> None:
        """Notify the operator once when launches stop making progress."""
        idle_work = measure_idle_work(projection)
        if idle_work.failing is None:
            self._has_notified_idle = self._waits.has_notified_limit = False
        wait = move if isinstance(move, WaitUntil) else None
        words = idle.render_idle_notice(idle_work, self._ports.clock(), wait)
        waited = projection.run.waits(idle_work.last.seq) if idle_work.last else None
        is_limited = waited is not None and waited.why == "limit"
        if words and not self._has_notified_idle and not is_limited:
            self._has_notified_idle = True
            self._ports.notify("no progress", words)

    def _is_external_failure(
        self, move: Move, attempts: list[sessions.LaunchRecord], projection: Projection
    ) -> bool:
        """Return whether the last launch failed for a reason that retrying does not fix."""
        is_probe = isinstance(move, WaitUntil) and move.probe
        is_last = (
            bool(attempts)
            and attempts[-1].seq > projection.run.since
            and (isinstance(move, WaitUntil) or not self._agent.has_left(attempts[-1].route))
        )
        return is_last and (
            is_probe or REACTIONS[stop_reasons.find_reaction(attempts[-1].exit)].is_outside
        )

    def _start_launch(
        self, step: StartFresh | ResumeSession, projection: Projection
    ) -> EnterSafeMode | None:
        if self._ports.interrupted():
            return None
        self._report_skipped_wait(projection)
        is_first, self._has_launched = not self._has_launched, True
        try:
            return self._steps.launch(step, projection)
        except AgentError:
            # The CLI could not be started at all. For the first launch of `rekindle run`, show the
            # error immediately. Later it counts as a crash, because the CLI may be in the middle of
            # an update.
            if not self._by_watchdog and is_first:
                raise
            return None

    def _report_skipped_wait(self, projection: Projection) -> None:
        """Report that a wait is skipped because the operator stopped and restarted the agent."""
        newest = sessions.find_newest_launch(projection.attempts)
        wait = projection.run.waits(newest.seq if newest else 0)
        if wait and projection.run.stopped > wait.seq and wait.until > self._ports.clock():
            self._ports.tell(SkippedWaitReport(wait.why, wait.until))

    def _enter_halt(self, number: int, move: EnterSafeMode) -> RunResult | None:
        self._steps.enter_safe_mode(number, move)
        return self._make_result(number, move.why, move.words) if self._once else None

    def _finish_cycle(
        self, number: int, then: StopRun | EnterSafeMode, seq: int
    ) -> RunResult | None:
        """Return the run's result after its last cycle, or None to wait in safe mode."""
        if isinstance(then, StopRun):
            return self._end_run(number, then, seq)
        return self._make_result(number, then.why, then.words) if self._once else None

    def _stop_run(self, number: int, move: StopRun, seq: int) -> RunResult:
        if move.why != "stopped":  # a stopped run continues when the agent is started again
            now = self._ports.clock()
            self._log.append(events.RunEnded(ts=now, why=move.why, words=move.words))
        return self._end_run(number, move, seq)

    def _end_run(self, number: int, move: StopRun, seq: int) -> RunResult:
        self._cycle.end_kept_processes()
        self._write_clean_exit(seq, move.why)
        if stop_reasons.find_outcome(move.why).severity:
            self._log.person.notify(move.why)
        return self._make_result(number, move.why, move.words, self._describe_safe_mode())

    def _make_result(
        self, number: int, why: StopReason, words: str = "", safe: str = ""
    ) -> RunResult:
        return RunResult(number, STOP_REASONS[why].outcome, why, self._cycle.last, words, safe)

    def _handle_interrupt(self) -> RunResult:
        projection = self._read_projection()
        if self._ports.by_hand():
            # Ctrl-C at the terminal has the same effect as `rekindle stop`. Any other signal, such
            # as at a host shutdown, leaves the desired state unchanged.
            self._record_stop(projection.run)
            self._cycle.end_kept_processes()
        return self._make_result(
            projection.current_cycle, "stopped", safe=self._describe_safe_mode()
        )

    def _record_stop(self, run: RunState) -> None:
        """Record the operator's stop in the log or, if that fails, outside the folder.

        The supervisor must be able to exit even if the disk is full.
        """
        command = policy.make_desired_event(run, "stopped", self._ports.clock())
        try:
            recorded = self._log.append(command)
        except RekindleError as error:  # also if another program changed the log
            self._ports.tell(TroubleReport(f"the stop could not be recorded in the log: {error}"))
            with suppress(StoreError):
                self._ports.store.note_stop(self._agent.name, command)
        else:
            self._write_clean_exit(recorded.seq, "stopped")

    def _describe_safe_mode(self) -> str:
        run = self._read_projection().run
        return explain_reasons.explain_reason(run.safe.why, run.safe.words) if run.is_safe else ""

    def _read_projection(self) -> Projection:
        """Read the log without folding, so that the supervisor can exit on a failing disk."""
        with self._ports.report_trouble(StoreError):
            return self._ports.store.read(self._agent.name).projection
        return Projection(self._agent.name)

    def _write_clean_exit(self, seq: int, outcome: str) -> None:
        """Write the marker for a clean exit at event `seq`. Later commands override it."""
        # The exit is also in the log, and the supervisor must be able to exit on a full disk.
        with self._ports.report_trouble(StoreError):
            self._ports.store.folder(self._agent.name).write_clean_exit(seq, outcome)

    def _renew_agent(self) -> None:
        """Apply settings that changed during safe mode."""
        if not self._ports.interrupted() and (renewed := self._ports.renewed()):
            self._replace_agent(renewed)
