"""Follow a running process: read its output, obey the operator, and detect hangs."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import msgspec

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.cli_output import (
    AssistantText,
    FinalReport,
    LaunchExit,
    OutputItem,
    ProcessVitals,
    RefusedCall,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WarningReport,
    WindowUsage,
)
from rekindle.errors import (
    FolderLostError,
    LogMissingError,
    RekindleError,
    StoreError,
    TamperedLogError,
)
from rekindle.flows.handoff.window_gauge import WindowGauge
from rekindle.flows.launches.output_transcript import OutputTranscriber
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.progress_bounds import ProgressGuard
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    HangReport,
    RefusedCallReport,
    SupervisorPorts,
    TroubleReport,
)
from rekindle.flows.transcripts import transcript_files
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection.fold import Projection
from rekindle.policy.settings.runtime_settings import (
    BUSY_BYTES,
    BUSY_SHARE,
    STOP_SECONDS,
)
from rekindle.policy.supervision import (
    budget,
    hang,
)
from rekindle.policy.supervision.hang import ProcessSigns
from rekindle.policy.supervision.run_moves import RunState
from rekindle.ports import ProcessHandle
from rekindle.thresholds.supervision import (
    CALL_HELD_SECONDS,
    HELD_TICK_SECONDS,
    LEAVING_SECONDS,
    STREAM_LAG_SECONDS,
    TICK_SECONDS,
    WATCH_SILENCE_SHARE,
)
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class ProcessFollower:
    """Follows one process to its end, and ends it if necessary."""

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

        If `fruitless` is given, the process is ended after working too long without progress.
        """
        self.fruitless, self._on_tick, self._transcribe = fruitless, on_tick, transcribe
        self._origin, self._agent, self._ports, self._child = origin, agent, world, child
        self._watched, self._meter, self._gauge = watched, meter, gauge
        self.ending: LaunchExit | None = None
        """Why the process was asked to end."""
        self.was_stopped = False
        """Whether its hook stopped it between two turns; then a clean exit does not mean that it
        finished.
        """
        self._calls: dict[str, ToolCallStarted] = {}
        """Started calls that are not reported yet."""
        self._called_at = 0.0
        self._refused: set[str] = set()
        self._is_end_requested = False
        self._asked_at = 0.0
        now = world.elapsed()
        self._sign_at = self._folded_at = self._looked_at = self._active_at = now
        self._transcript = ""
        self._grown = 0
        self._heard: object = None
        self._counted_to = 0
        """Offset in the transcript up to which turns have been counted."""
        self._noted_turns = 0
        """Number of the turns whose spending is in the log."""
        self._find_transcript()
        self._vitals: ProcessVitals | None = None
        self._noticed = ""
        self._is_excused = False
        self._trouble = ""
        self._is_handoff_requested = False
        self._run = RunState()
        self._folder = world.store.folder(agent.name)

    def follow_to_end(self) -> None:
        # Closed in any case: a traceback would keep a reference to the process, and the process
        # would keep the person's terminal.
        waits = self._gauge.can_stop and not self._gauge.stops_itself
        tick = HELD_TICK_SECONDS if waits and not self._agent.stays else TICK_SECONDS
        with closing(self._child.follow(tick)) as lines:
            self._follow_lines(lines)
        self._report_calls()
        # The process may have ended between two checks.
        self._handle_brake()
        self._count_turns()

    def _follow_lines(self, lines: Iterator[bytes | None]) -> None:
        watch = self._ports.settings.runtime.watch
        for line in lines:
            now = self._ports.elapsed()
            if line is not None:
                self._note_activity(now)
                self._take_line(line, now)
            else:
                if now - self._called_at > CALL_HELD_SECONDS:
                    self._report_calls()
                if now - self._folded_at >= self._fold_interval():
                    self._folded_at = now
                    self._fold_inbox(now)
                if now - self._looked_at >= min(
                    watch.interval, watch.silence * WATCH_SILENCE_SHARE
                ):
                    self._check_hang(now)
                if self._transcribe is not None:
                    self._transcribe.show()
                self._on_tick()
                self._check_folder()
                self._obey_commands()
            self._handle_brake()
            self._count_turns()
            self._enforce_budget()

    def _handle_brake(self) -> None:
        """End a process that its hook stopped, unless it exits by itself.

        A process with background work would wait for that work and start another turn.
        """
        if self.ending is None and self._gauge.has_stopped():
            if self._gauge.has_running_subagent(self._origin.session or self._watched.opened):
                self._gauge.cancel_stop()
                return
            if not self._gauge.take():
                return
            self.was_stopped = True
            self._end_process(
                LaunchExit("handoff", self._gauge.words()), gently=self._gauge.stops_itself
            )
        if self.was_stopped and self._watched.finished and self._gauge.is_kept:
            self._child.kill()
            return
        # Most CLIs exit by themselves sooner than after a request, so the request comes late.
        is_late = self._ports.elapsed() - self._asked_at > LEAVING_SECONDS
        if self.was_stopped and self._watched.finished and is_late and not self._is_end_requested:
            self._request_end()

    def _take_line(self, line: bytes, now: float) -> None:
        for seen in self._agent.harness.read_stream(line):
            self._watched.take(seen, now)
            self._meter.take(seen)
            if isinstance(seen, SessionOpened):
                self._gauge.opened(seen)
            if isinstance(seen, ToolCallStarted) and self.was_stopped:
                self._postpone_stop(now)
            self._report_item(self._redact_item(seen))
            if self._transcribe is not None:
                self._transcribe.take(seen)
        if not self._agent.harness.CAN.hooks:
            usage = WindowUsage(self._watched.read_and_said, None, "estimated")
            self._meter.take(UsageReport(usage, turn="all input and output"))

    def _report_item(self, seen: OutputItem) -> None:
        """Report an item of output; a call only once it is clear that it was not refused.

        A refusal comes at once, so a call that takes longer is reported while it runs.
        """
        match seen:
            case ToolCallStarted():
                self._calls[seen.call] = seen
                self._called_at = self._ports.elapsed()
                return
            case ToolCallFinished():
                if seen.refused:
                    self._refused.add(seen.call)
                elif call := self._calls.pop(seen.call, None):
                    self._ports.tell(call)
            case RefusedCall():
                if call := self._calls.pop(seen.call, None):
                    words = f"{call.tool} {call.about}"
                    self._watched.reported_refusals.append(words)
                    self._ports.tell(RefusedCallReport(words))
                return  # others are reported when the launch has ended
            case AssistantText() | WarningReport() | FinalReport():
                self._report_calls()  # in the order in which it happened
            case _:
                pass
        self._ports.tell(seen)

    def _report_calls(self) -> None:
        for call in self._calls.values():
            if call.call not in self._refused:
                self._ports.tell(call)
        self._calls.clear()

    def _postpone_stop(self, now: float) -> None:
        """Cancel the stop if the process began another turn, so that its calls are not cut off.

        Output right after the stop may still belong to the previous turn, because it is read late.
        """
        if now - self._asked_at > STREAM_LAG_SECONDS and not self._is_end_requested:
            self._gauge.cancel_stop()
            self.ending, self.was_stopped = None, False

    def _check_folder(self) -> None:
        """End the process if its folder is gone or replaced, as another may be started."""
        try:
            self._ports.store.check_supervision(self._agent.name)
        except FolderLostError as error:
            self._end_process(LaunchExit("interrupted", str(error)))
        except StoreError as error:
            self._report_trouble(error)  # the disk may answer at the next tick

    def _obey_commands(self) -> None:
        """End the process if a signal or a command in the log requests it."""
        times = self._ports.interrupted()
        if times and self.ending is None:
            # The sender of the signal may have recorded a reason in the log.
            self._read_run()
        if self._run.desired == "stopped" or (times and self._ports.by_hand()):
            self._end_process(LaunchExit("interrupted", "stopped by the operator"))
        elif self._run.restarted > self._origin.seq:
            self._end_process(LaunchExit("interrupted", "ended for a restart by the operator"))
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
        """End the process. With `gently`, it gets time to exit by itself first."""
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
        """End the process if a cap is reached, but only between turns, so up to one turn late."""
        if self._watched.calls or self._watched.finished:
            return
        if self.fruitless is not None and self.ending is None:
            usd, billed = self._meter.estimate(), self._watched.billed
            if words := self.fruitless.reached(usd, billed=billed):
                self._end_process(LaunchExit("interrupted", words))
        cap = self._agent.budget
        if cap is None:
            return
        spent, began = self._meter.certain(), self._run.began_at
        if words := budget.describe_reached_cap(spent, cap, began=began, now=self._ports.clock()):
            self._end_process(LaunchExit("interrupted", words))

    def _note_activity(self, now: float) -> None:
        self._sign_at = self._active_at = now
        self._noticed = ""

    def _fold_interval(self) -> float:
        """Return the seconds between two folds; short until a hook has reported the transcript."""
        is_blind = self._agent.budget is not None and self._agent.harness.CAN.hooks
        is_blind = is_blind or self._gauge.needs_transcript
        return TICK_SECONDS if is_blind and not self._transcript else self._ports.fold_every

    def _fold_inbox(self, now: float) -> None:
        """Fold the reports of hooks. A full disk must not end the agent's work."""
        try:
            with self._ports.store.writer(self._agent.name) as writer:
                writer.fold()
                self._record_turns(writer.projection, writer.append)
                if self._transcribe is not None and (sign := self._transcribe.sign()):
                    writer.append(sign)
                    self._heard = writer.projection.heard
                projection = writer.projection
        except (TamperedLogError, LogMissingError) as error:
            self._end_process(LaunchExit("interrupted", str(error)))
            return
        except RekindleError as error:
            self._report_trouble(error)
            self._read_run()  # the operator's commands count even if they cannot be folded
            return
        self._run = projection.run
        life = projection.lives.get(self._origin.session or self._watched.opened)
        self._transcript = life.transcript if life is not None else ""
        if self._transcript:
            self._gauge.told_of(self._transcript)
        self._check_handoff_request(projection)
        if projection.heard != self._heard:
            self._heard = projection.heard
            self._note_activity(now)

    def _read_run(self) -> None:
        """Read the operator's commands without writing anything."""
        with suppress(RekindleError):
            self._run = self._ports.store.read(self._agent.name).projection.run

    def _report_trouble(self, error: RekindleError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._ports.tell(TroubleReport(str(error)))

    def _check_handoff_request(self, known: Projection) -> None:
        """Request a handoff if the operator wants one, or report that it is impossible."""
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

    def _record_turns(
        self,
        known: Projection,
        append: Callable[[events.SpendRecorded | events.WindowMeasured], object],
    ) -> None:
        """Record spending and window regularly, in case the supervisor is killed."""
        spent, before = self._meter.spent(), known.run.run_spending()
        is_new = self._meter.turns != self._noted_turns
        if not is_new and not budget.is_worth_recording(before, spent, self._agent.budget):
            return
        append(
            events.SpendRecorded(
                ts=self._ports.clock(),
                launch=self._origin.launch,
                tokens=spent.tokens,
                usd=spent.usd,
                unpriced=spent.unpriced,
            )
        )
        self._noted_turns = self._meter.turns
        if measured := self._gauge.measure(self._origin.launch, known.window):
            append(measured)

    def _find_transcript(self) -> None:
        """Find a resumed session's transcript. Earlier launches counted its existing turns."""
        if self._origin.resumes:
            lives = self._ports.store.read(self._agent.name).projection.lives
            life = lives.get(self._origin.session)
            self._transcript = life.transcript if life is not None else ""
            self._counted_to = (
                transcript_files.read_size(self._transcript) if self._transcript else 0
            )
            self._watched.transcript_began = self._counted_to

    def _count_turns(self) -> None:
        """Count the turns in the transcript if the output stream does not report them."""
        if self._watched.usage is not None or not self._transcript:
            return
        if transcript_files.read_size(self._transcript) <= self._counted_to:
            return
        new_lines = transcript_files.read_lines_since(self._transcript, self._counted_to)
        self._counted_to += len(new_lines)
        turns = [
            used for line in new_lines.splitlines() if (used := self._agent.harness.turn(line))
        ]
        if not turns:
            return
        self._watched.end_earlier_calls()
        # The model may be named on separate lines.
        last = self._agent.harness.usage(transcript_files.read_tail(self._transcript), {})
        for used in turns:
            model = used.usage.model or (last.model if last else "")
            usage = msgspec.structs.replace(used.usage, model=model)
            self._meter.take(UsageReport(usage, used.turn))

    def _check_hang(self, now: float) -> None:
        """Check whether the process hangs, and end it or notify the operator if so."""
        since, self._looked_at = now - self._looked_at, now
        grown = transcript_files.read_size(self._transcript) if self._transcript else 0
        if grown != self._grown:
            self._grown = grown
            self._note_activity(now)
        if self._agent.stays:
            return  # the person at the terminal may be thinking
        signs = self._collect_signs(now, since)
        was_excused, self._is_excused = self._is_excused, hang.is_excused(signs)
        if was_excused and not self._is_excused and not signs.finished:
            # It had no time for output yet since it was continued or its call returned.
            self._note_activity(now)
            signs = msgspec.structs.replace(signs, silent=0.0)
        judgement = hang.judge_silence(signs, self._ports.settings.runtime.watch)
        if judgement.answer == "fine" or self.ending is not None:
            return
        if judgement.answer == "reap":
            self._end_process(LaunchExit("clean", judgement.words))
        elif judgement.words != self._noticed:
            self._noticed = judgement.words
            self._report_hang(judgement.words, ended=judgement.answer == "end")

    def _report_hang(self, words: str, *, ended: bool) -> None:
        noted = events.HangDetected(
            ts=self._ports.clock(), launch=self._origin.launch, words=words, ended=ended
        )
        try:
            with self._ports.store.writer(self._agent.name) as writer:
                writer.append(noted)
        except RekindleError as error:
            self._ports.tell(TroubleReport(str(error)))
        self._ports.tell(HangReport(words, ended))
        self._ports.notify("no sign of life", words)
        if ended:
            self._end_process(LaunchExit("hang", words))

    def _collect_signs(self, now: float, since: float) -> ProcessSigns:
        before, self._vitals = (
            self._vitals,
            self._ports.processes.vitals(
                self._child.pid,
                self._origin.launch,
                boot=self._origin.boot,
                uptime=self._origin.uptime,
            ),
        )
        watched, vitals = self._watched, self._vitals
        oldest = min(watched.calls.values(), default=None)
        signs = ProcessSigns(
            silent=now - self._sign_at,
            finished=watched.finished is not None,
            calling=now - oldest if oldest is not None else None,
            reports=self._agent.harness.CAN.hooks,
        )
        if vitals is not None:
            before = before or vitals
            seconds = max(since, 1.0)
            share, most = seconds * BUSY_SHARE, seconds * BUSY_BYTES
            signs = msgspec.structs.replace(
                signs,
                stopped=vitals.stopped,
                children=vitals.tools,
                # The sums fall when a tool process ends, which is a sign of life too.
                children_work=abs(vitals.tools_cpu_seconds - before.tools_cpu_seconds) > share
                or abs(vitals.tools_moved_bytes - before.tools_moved_bytes) > most,
                works=vitals.cpu_seconds - before.cpu_seconds > share
                or vitals.moved_bytes - before.moved_bytes > most,
            )
        if signs.stopped or hang.is_working(signs):
            self._active_at = now
        return msgspec.structs.replace(signs, idle=now - self._active_at)

    def _redact_item(self, seen: OutputItem) -> OutputItem:
        """Return the item without secrets, because people see it and logs store it."""
        redacted = self._ports.store.redaction.text
        match seen:
            case AssistantText() | WarningReport():
                return type(seen)(redacted(seen.text))
            case ToolCallStarted():
                short = seen.about.removeprefix(f"{self._agent.folder}/")
                about = to_one_line(redacted(short), ABOUT_CHARACTERS)
                return msgspec.structs.replace(seen, about=about, arguments={})
            case FinalReport():
                errors = tuple(map(redacted, seen.errors))
                return msgspec.structs.replace(seen, text=redacted(seen.text), errors=errors)
            case _:
                return seen
