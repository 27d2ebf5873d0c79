"""Follow a running process until it exits: read its output, obey the operator, enforce budgets."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.launch_types import (
    LaunchExit,
    SessionOpened,
    ToolCallStarted,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.errors import (
    FencedError,
    FolderLostError,
    ForeignOwnerError,
    LogMissingError,
    RekindleError,
    StoreError,
    TamperedLogError,
)
from rekindle.flows.handoff.window_gauge import WindowGauge
from rekindle.flows.launches.hang_watch import HangWatch
from rekindle.flows.launches.message_delivery import MessageDelivery
from rekindle.flows.launches.output_reporter import OutputReporter
from rekindle.flows.launches.output_transcript import OutputTranscriber
from rekindle.flows.launches.permission_desk import PermissionDesk
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.progress_bounds import ProgressGuard
from rekindle.flows.launches.quota_watch import QuotaWatch
from rekindle.flows.launches.repetition_watch import RepetitionWatch
from rekindle.flows.launches.report_delay import ReportDelay
from rekindle.flows.launches.session_note import note_session
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.launches.transcript_turns import TranscriptTurns
from rekindle.flows.operator.ask_operator import QuestionAsker
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.run_moves import RunState
from rekindle.ports import ProcessHandle
from rekindle.thresholds.supervision import (
    HELD_TICK_SECONDS,
    LEAVING_SECONDS,
    STREAM_LAG_SECONDS,
    TICK_SECONDS,
)


class ProcessFollower:
    """Follows one process until it exits, and ends it if necessary."""

    def __init__(
        self,
        origin: LaunchStarted,
        agent: AgentSpec,
        world: SupervisorPorts,
        child: ProcessHandle,
        *,
        watched: ProcessOutput,
        meter: SpendMeter,
        gauge: WindowGauge,
        fruitless: ProgressGuard | None = None,
        on_tick: Callable[[], None] = lambda: None,
        transcribe: OutputTranscriber | None = None,
    ) -> None:
        """Follow the process `child`.

        With `fruitless`, end the process if it works too long without progress.
        """
        self.fruitless, self._on_tick, self._transcribe = fruitless, on_tick, transcribe
        self._origin, self._agent, self._ports, self._child = origin, agent, world, child
        self._watched, self._meter, self._gauge = watched, meter, gauge
        self.ending: LaunchExit | None = None
        """Reason why Rekindle is ending the process, or None."""
        self.was_stopped = False
        """Whether the hook stopped the process between turns. If so, a clean exit does not mean
        that the work is finished.
        """
        self._is_end_requested = False
        self._asked_at = 0.0
        self._looked_at = world.elapsed()
        self._delay = ReportDelay(agent, world)
        self._asker = QuestionAsker(agent, world)
        self._hang = HangWatch(origin, agent, world, child, watched)
        self._reporter = OutputReporter(agent, world, watched)
        self.quota = QuotaWatch(origin, agent, world)
        self._turns = TranscriptTurns(agent, watched, meter, self.quota)
        self.desk = PermissionDesk(agent, world, origin.launch)
        self.repetition = RepetitionWatch(origin, agent, world, gauge)
        self._messages = MessageDelivery(origin, agent, world, gauge.notices)
        self._transcript = ""
        self._heard_at: float | None = None
        """Unix time of the last activity that hooks reported; None before the first check."""
        self._noted_turns = 0
        """Number of turns whose cost is already in the log."""
        if origin.resumes:
            life = world.store.read(agent.name).projection.lives.get(origin.session)
            self._transcript = life.transcript if life is not None else ""
            self._turns.skip_existing(self._transcript, origin.session)
            self.repetition.skip_existing(self._transcript)
        self._trouble = ""
        self._is_handoff_requested = False
        self._run, self._run_name = RunState(), ""
        self._folder = world.store.folder(agent.name)

    def follow_to_end(self) -> None:
        waits = self._gauge.can_stop and not self._gauge.stops_itself
        waits = waits or self.desk.is_used
        tick = HELD_TICK_SECONDS if waits and not self._agent.stays else TICK_SECONDS
        # Otherwise a traceback could keep the process, and with it the user's terminal, alive.
        with closing(self._child.follow(tick)) as lines:
            self._follow_lines(lines)
        self._reporter.report_calls()
        # The process may have exited between two checks.
        self._handle_brake()
        self._count_last_turns()
        # The process has exited, so a repetition is only recorded.
        self.repetition.check(self._transcript)

    def _follow_lines(self, lines: Iterator[bytes | None]) -> None:
        for line in lines:
            now = self._ports.elapsed()
            if line is not None:
                self._hang.note_activity(now)
                self._take_line(line, now)
            else:
                self._reporter.report_running_calls(now)
                if now - self._looked_at >= self._fold_interval():
                    self._looked_at = now
                    self._read_inbox(now)
                    self._turns.count_subagents(self._transcript, self._session)
                if self.desk.check():
                    self._hang.note_activity(now)  # the agent waits for a person
                is_ending = self.ending is not None
                if exited := self._hang.check(now, self._transcript, is_ending=is_ending):
                    self._end_process(exited)
                if self._transcribe is not None:
                    self._transcribe.show()
                self._on_tick()
                self._check_folder()
                self._obey_commands()
            self._handle_brake()
            self._turns.count(self._transcript)
            self._check_repetition()
            self._enforce_budget()

    @property
    def _session(self) -> str:
        return self._origin.session or self._watched.opened

    def _count_last_turns(self) -> None:
        """Count the turns since the last check, also of a process that exited before the first."""
        if not self._transcript:
            with suppress(RekindleError):
                lives = self._ports.store.read(self._agent.name).projection.lives
                life = lives.get(self._session)
                self._transcript = life.transcript if life is not None else ""
        self._turns.count(self._transcript)
        self._turns.count_subagents(self._transcript, self._session)

    def _handle_brake(self) -> None:
        """End a process that its hook stopped, unless it exits on its own.

        A process with background tasks would otherwise wait for them and start another turn.
        """
        if self.ending is None and self._gauge.has_stopped():
            if self._gauge.has_running_subagent(self._session):
                self._gauge.cancel_stop()
                return
            if not self._gauge.take():
                return
            self.was_stopped = True
            exited = self.quota.exit or LaunchExit("handoff", self._gauge.words())
            self._end_process(exited, gently=self._gauge.stops_itself)
        if self.was_stopped and self._watched.finished and self._gauge.is_kept:
            self._child.kill()
            return
        # Most CLIs exit faster on their own than after a signal, so wait before sending one.
        is_late = self._ports.elapsed() - self._asked_at > LEAVING_SECONDS
        if self.was_stopped and self._watched.finished and is_late and not self._is_end_requested:
            self._request_end()

    def _take_line(self, line: bytes, now: float) -> None:
        for seen in self._agent.harness.read_stream(line):
            self._watched.take(seen, now)
            self._meter.take(seen)
            if isinstance(seen, SessionOpened):
                self._gauge.opened(seen)
                note_session(seen, self._origin, self._agent, self._ports, self._transcribe)
            if isinstance(seen, UsageReport):
                self._gauge.note_usage(seen.usage)
            if isinstance(seen, QuotaReport):
                self.quota.take(seen)
                self._check_quota()
            if isinstance(seen, ToolCallStarted) and self.was_stopped:
                self._postpone_stop(now)
            self._reporter.report(seen)
            if self._transcribe is not None:
                self._transcribe.take(seen)
        if not self._agent.harness.CAN.hooks and self._watched.usage is None:
            usage = WindowUsage(self._watched.estimated_tokens, None, "estimated")
            self._meter.take(UsageReport(usage, turn="all input and output"))

    def _postpone_stop(self, now: float) -> None:
        """Cancel the stop if the process has started another turn.

        Output that arrives right after the stop may still belong to the previous turn, because the
        stream lags behind.
        """
        if now - self._asked_at > STREAM_LAG_SECONDS and not self._is_end_requested:
            self._gauge.cancel_stop()
            self.ending, self.was_stopped = None, False

    def _check_folder(self) -> None:
        """End the process if the agent's folder was removed or replaced.

        Another supervisor may start the same agent in the new folder.
        """
        try:
            self._ports.store.check_supervision(self._agent.name)
        except FolderLostError as error:
            self._end_process(LaunchExit("interrupted", str(error)))
        except StoreError as error:
            self._report_trouble(error)  # the disk may recover before the next tick

    def _obey_commands(self) -> None:
        """End the process if a signal or an operator command requests it."""
        times = self._ports.interrupted()
        if times and self.ending is None:
            # The log may contain the command that explains the signal.
            self._read_run()
        if self._run.desired == "stopped" or (times and self._ports.by_hand()):
            self._end_process(LaunchExit("interrupted", "stopped by the operator"))
        elif self._run.restarted > self._origin.seq:
            self._end_process(LaunchExit("interrupted", "ended because the operator restarted it"))
        elif times:
            self._end_process(LaunchExit("interrupted", "ended because its supervisor was stopped"))
        late = self._ports.elapsed() - self._asked_at > STOP_SECONDS
        if self.ending is None or not (late or times > 1):
            return
        if self._is_end_requested:
            self._child.kill()
        else:
            self._request_end()

    def _end_process(self, why: LaunchExit, *, gently: bool = False) -> None:
        """End the process. With `gently`, first give it time to exit on its own."""
        if self.ending is None:
            self.ending = why
            self._asked_at = self._ports.elapsed()
            if not gently:
                self._request_end()

    def _request_end(self) -> None:
        self._is_end_requested = True
        self._asked_at = self._ports.elapsed()
        self._child.ask_to_end()

    def _enforce_budget(self) -> None:
        """Between two turns, end the process if it has reached a cap."""
        if self._watched.calls or self._watched.finished:
            return
        if self.fruitless is not None and self.ending is None:
            usd, billed = self._meter.estimate(), self._watched.billed
            if words := self.fruitless.reached(usd, billed=billed):
                self._end_process(LaunchExit("interrupted", words))
        cap = budget.raise_caps(self._agent.budget, self._run.raised_caps())
        if cap is None:
            return
        spent, began = self._meter.certain(), self._run.began_at
        if words := budget.describe_reached_cap(spent, cap, began=began, now=self._ports.clock()):
            self._end_process(LaunchExit("interrupted", words))

    def _check_repetition(self) -> None:
        """Respond to an agent that repeats itself."""
        if self.ending is None and (exited := self.repetition.check(self._transcript)):
            self._end_process(exited)

    def _fold_interval(self) -> float:
        """Return the seconds between checks; fewer while the transcript's path is unknown."""
        is_blind = self._agent.budget is not None and self._agent.harness.CAN.hooks
        is_blind = is_blind or self._gauge.needs_transcript
        return TICK_SECONDS if is_blind and not self._transcript else self._ports.fold_every

    def _read_inbox(self, now: float) -> None:
        """Act on the records in the inbox, even if the disk is full. Fold them if they are due."""
        try:
            projection = self._delay.read_waiting(self._meter.spent()) or self._fold_inbox()
            self._asker.ask_proposed_questions(projection)
        except (TamperedLogError, LogMissingError, FencedError, ForeignOwnerError) as error:
            self._end_process(LaunchExit("interrupted", str(error)))
            return
        except RekindleError as error:
            self._report_trouble(error)
            self._read_run()  # operator commands take effect even if the log is not writable
            return
        self._run, self._run_name = projection.run, projection.run_name
        life = projection.lives.get(self._session)
        self._transcript = life.transcript if life is not None else ""
        if self._transcript:
            self._gauge.set_transcript(self._transcript)
        self._messages.check(projection, self._session, self._transcript)
        self._check_handoff_request(projection)
        self._check_quota()
        if projection.heard.at != self._heard_at:
            self._heard_at = projection.heard.at
            self._hang.note_activity(now)

    def _fold_inbox(self) -> Projection:
        with self._ports.store.writer(self._agent.name) as writer:
            writer.fold(*self._measure_turns(writer.projection))
            self._noted_turns = self._meter.turns
            if self._transcribe is not None and (sign := self._transcribe.sign()):
                writer.append(sign)
                self._heard_at = writer.projection.heard.at
            projection: Projection = writer.projection
        self._delay.note_fold()
        return projection

    def _read_run(self) -> None:
        """Read the operator's commands without writing anything."""
        with suppress(RekindleError):
            self._run = self._ports.store.read(self._agent.name).projection.run

    def _report_trouble(self, error: RekindleError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._ports.tell(TroubleReport(str(error)))

    def _check_handoff_request(self, known: Projection) -> None:
        """Ask the hook for a handoff if one is needed, or report that it is impossible.

        A handoff is needed if the operator requested it, or if the window is nearly full.
        """
        is_asked = known.handoff_asked > self._origin.seq
        if self._is_handoff_requested or not (is_asked or self._gauge.is_handoff_blocked()):
            return
        self._is_handoff_requested = True
        if self._gauge.can_stop:
            self._gauge.ask()
            return
        why = "a handoff was requested" if is_asked else "its window is nearly full"
        name = self._agent.harness.NAME
        words = f"{why}, and {name} cannot be stopped between two turns here: start a fresh session"
        failed = events.HandoffFailed(
            ts=self._ports.clock(), launch=self._origin.launch, words=words
        )
        with suppress(RekindleError), self._ports.store.writer(self._agent.name) as writer:
            writer.append(failed)
        self._ports.notify("handoff failed", words)

    def _check_quota(self) -> None:
        """Ask the hook to stop the CLI if the rest of the quota is not for this agent."""
        if self._gauge.can_stop and self.quota.must_stop(self._run_name, self._meter):
            self._gauge.ask()

    def _measure_turns(
        self, known: Projection
    ) -> list[events.SpendRecorded | events.WindowMeasured]:
        """Return new spending and window usage, to survive if the supervisor is killed."""
        spent, before = self._meter.spent(), known.run.run_spending()
        is_new = self._meter.turns != self._noted_turns
        if not is_new and not budget.is_worth_recording(before, spent, self._agent.budget):
            return []
        now, launch = self._ports.clock(), self._origin.launch
        recorded = self._meter.make_event(now, launch, self._session)
        measured = self._gauge.measure(self._origin.launch, known.window)
        return [recorded, measured] if measured else [recorded]
