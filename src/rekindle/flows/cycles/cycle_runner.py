"""Run the launches of a cycle, and record the start and end of each in the log."""

import secrets
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from rekindle.documents import events, primer, progress_file
from rekindle.documents.launches.background_record import render_ended_notice
from rekindle.documents.launches.cli_output import LaunchExit, LaunchSpec, SweptProcesses
from rekindle.errors import ProgramMissingError, RekindleError, StoreError, TamperedLogError
from rekindle.flows.cycles.own_relay import OwnRelay
from rekindle.flows.cycles.work_signs import add_resolved
from rekindle.flows.launches.background_processes import BackgroundProcesses
from rekindle.flows.launches.launch import Launch
from rekindle.flows.launches.refused_calls import (
    RefusedCalls,
    find_refused_calls,
    make_refused_exit,
)
from rekindle.flows.operator.ask_operator import QuestionAsker
from rekindle.flows.priming.compose_primer import compose_primer
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    ExitReport,
    LaunchReport,
    SupervisorPorts,
    TroubleReport,
)
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.policy.exits import usage_limits
from rekindle.policy.exits.restart import HANDOFF_EXIT, LOST_EXIT
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.exits.stop_reasons import needs_checkpoint
from rekindle.policy.handoff import window_rule
from rekindle.policy.progress.work_progress import find_progress, name_series
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import LastActivity, Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.decide import measure_idle_work
from rekindle.system.files import durable_files


class CycleRunner:
    """Runs the launches of one agent one after the other. Only its supervisor uses it."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent = agent
        self._ports = world
        self.last: LaunchExit | None = None
        self.person = QuestionAsker(agent, world)
        self._background = BackgroundProcesses(agent, world)
        self._asked_for = ""
        """The person's request at which the last session was stopped for a handoff."""

    def known(self) -> Projection:
        """Return the projection of the log, including events that other processes queued."""
        seen = self._ports.store.read(self._agent.name)
        if seen.is_tampered:
            raise TamperedLogError(self._agent.name, seen.condition)
        if not seen.pending and seen.projection.run.said == seen.committed.run.said:
            return seen.committed
        try:
            with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
                writer.fold()
                return writer.projection
        except StoreError as error:
            # A full disk must not block a stop command. A step that starts a process appends to the
            # log first, and fails there.
            self._ports.tell(TroubleReport(str(error)))
            return seen.projection

    def append(self, *new: events.AnyEvent) -> Projection:
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            writer.append(*self.person.with_questions(writer.projection, new))
            writer.project()
            return writer.projection

    def settle(self) -> None:
        """Before a new launch, end the processes that a lost supervisor left running."""
        projection = self.known()
        for mark, launch in projection.attempts.items():
            if launch.exit:
                continue
            swept = self._background.settle(mark, boot=launch.boot, uptime=launch.uptime)
            lost_exit = LaunchExit("crash", "its supervisor was gone before it exited")
            reported = self._find_opened_session(mark)
            spent = projection.run.run_spending()
            self.append(
                events.LaunchEnded(
                    ts=self._ports.clock(),
                    launch=mark,
                    cycle=launch.cycle,
                    session=launch.session or reported,
                    exit=LOST_EXIT,
                    resumes=launch.resumes,
                    # Without launch hooks there is no record of whether the session opened.
                    opened=bool(reported) or not self._agent.harness.CAN.launch_hooks,
                    words=lost_exit.words,
                    swept=swept.processes,
                    ended=self._background.told(swept),
                    seconds=_measure_work(launch, projection.heard),
                    run_usd=spent.usd,
                    run_tokens=spent.tokens,
                    unpriced=spent.unpriced + self._is_unpriced(),
                    signs=self._read_signs(
                        launch.head, launch.began.timestamp() if launch.began else 0.0
                    ),
                )
            )
            self._ports.tell(ExitReport(lost_exit, swept.processes))
        if projection.attempts:
            self._archive_transcripts()  # the lost supervisor may have been killed before archiving

    def end_kept_processes(self) -> None:
        """End the kept background processes, because the run is over or was stopped."""
        self._background.end_kept_processes()

    def _read_signs(self, head: str, since: float) -> events.WorkSigns | None:
        """Return the signs of work since a commit and a time."""
        projection = self.known()
        signs = add_resolved(self._ports.signs(head, since), projection, since)
        return name_series(signs, measure_idle_work(projection).signs) if signs else None

    def _is_unpriced(self) -> bool:
        """Return whether only the CLI's final report would have had the cost of the launch."""
        return self._agent.harness.CAN.reports_money and not self._agent.prices

    def _find_opened_session(self, mark: str) -> str:
        """Return the session that hooks reported for a launch, including reports in the inbox."""
        lives = self._ports.store.read(self._agent.name).projection.lives
        return sessions.find_launched_session(lives, mark)

    def open(self) -> int:
        """Return the number of the open cycle, after starting one if necessary."""
        projection = self.known()
        number = projection.current_cycle
        if projection.is_cycle_open:
            return number
        OwnRelay(self._agent, self._ports).begin()
        projection = self.known()
        relay = projection.documents.get("relay")
        started = events.CycleStarted(
            ts=self._ports.clock(),
            cycle=number,
            relay=relay.path if relay else "",
            head=self._ports.head(),
        )
        if self._agent.drafts:
            # The draft is left over from an earlier cycle. This cycle has to write its own.
            self._ports.store.folder(self._agent.name).archive_draft()
        self.append(started)
        return number

    def write_progress_file(self) -> None:
        """Write the progress file for people. A failure is reported and does not end the run."""
        if not self._agent.drafts:
            return
        projection = self.known()
        lines = [
            progress_file.ProgressLine(
                cycle=cycle.cycle,
                ts=cycle.ts,
                verdict=cycle.verdict,
                did=cycle.did,
                evidence=cycle.evidence,
                words=cycle.words,
            )
            for _, cycle in sorted(projection.ended.items(), reverse=True)
        ]
        text = progress_file.render(self._agent.name, lines)
        try:
            durable_files.replace_file(
                self._ports.store.folder(self._agent.name).progress, text.encode()
            )
        except RekindleError as error:
            self._ports.tell(TroubleReport(str(error)))

    def launch(
        self, number: int, step: StartFresh | ResumeSession, tried: list[LaunchRecord]
    ) -> None:
        """Start a process, follow it, and record its exit."""
        if isinstance(step, ResumeSession) and not self._can_resume(tried[-1]):
            step = StartFresh(recovery=True, why="its session cannot be resumed")
        folder = self._ports.store.folder(self._agent.name)
        fresh = folder.fresh
        projection = self.known()
        is_asked = bool(tried) and projection.fresh_asked > tried[-1].seq
        if isinstance(step, ResumeSession) and (is_asked or fresh.exists()):
            step = StartFresh(recovery=False, why="requested by the operator")
        spent, handed = (
            projection.run.run_spending(),
            self._find_handed_checkpoint(projection, step, tried),
        )
        recovery = isinstance(step, StartFresh) and step.recovery
        asked = self._find_request(projection, tried) if handed and self._agent.stays else ""
        notice = render_ended_notice(tried[-1].swept) if tried else ""
        prompt = f"{primer.RESUME_PROMPT}\n{notice}\n" if notice else primer.RESUME_PROMPT
        if isinstance(step, StartFresh):
            prompt = self._render_prompt(recovering=recovery, asked=asked)
        cap = budget.raise_caps(self._agent.budget, projection.run.raised_caps())
        agent = msgspec.structs.replace(self._agent, budget=cap)
        plan = self._make_launch_spec(step, agent, spent.usd, prompt)
        windows = self._read_windows(projection)
        if self._is_stopped_since(projection):
            return  # the operator stopped it while the windows were measured
        launch = Launch(secrets.token_hex(8), agent, self._ports, plan, spent, windows=windows)
        launch.bound(measure_idle_work(projection), lifted=projection.run.bounds.lifted)
        origin = events.LaunchStarted(
            ts=self._ports.clock(),
            launch=launch.mark,
            cycle=number,
            session=launch.start.session,
            harness=self._agent.harness.NAME,
            resumes=launch.start.resumes,
            recovery=recovery,
            why=step.why if isinstance(step, StartFresh) else "",
            boot=self._ports.processes.boot(),
            uptime=self._ports.processes.uptime(),
            head=self._ports.head(),
        )
        # Recorded before the process starts, so that a later supervisor that finds no end can look
        # for leftover processes.
        begun: list[events.AnyEvent] = [origin]
        if handed:
            begun.append(
                events.HandoffResumed(
                    ts=origin.ts,
                    launch=origin.launch,
                    cycle=number,
                    count=window_rule.count_handoffs(tried) + 1,
                    checkpoint=handed,
                )
            )
        origin = msgspec.structs.replace(origin, seq=self.append(*begun).seq)
        # Removed only now: after a crash before this line, the next session starts fresh as well.
        folder.remove(fresh)
        self._ports.tell(
            LaunchReport(number, origin.session, origin.resumes, origin.recovery, origin.why)
        )
        try:
            exited = launch.run(prompt, origin, self._background)
        except RekindleError as error:
            # The agent's folder may have been lost during the run, but its processes must not
            # outlive the supervisor.
            self._background.end(origin)
            # Nothing was started, and an open launch would look like a session to resume.
            with suppress(StoreError):  # the next run finds the launch open and settles it
                self._record_exit(
                    number, launch, LaunchExit("crash", str(error)), SweptProcesses(), started=False
                )
            if isinstance(error, ProgramMissingError):
                error.hint = error.hint or self._agent.harness.INSTALL
            raise
        # End leftover processes before anything else is started.
        swept = self._background.end(origin)
        self.last = exited = self._record_exit(number, launch, exited, swept)
        self._ports.tell(ExitReport(exited, swept.processes))
        # After a handoff the new session starts at once, and its launch archives both transcripts.
        if exited.kind != HANDOFF_EXIT:
            self._archive_transcripts()

    def _find_handed_checkpoint(
        self, known: Projection, step: StartFresh | ResumeSession, tried: list[LaunchRecord]
    ) -> str:
        """Return the path of the checkpoint that a fresh session continues from, or ""."""
        checkpoint = known.documents.get("checkpoint")
        if not isinstance(step, StartFresh) or checkpoint is None or not tried:
            return ""
        is_handed = needs_checkpoint(tried[-1].exit)
        return checkpoint.path if is_handed and checkpoint.seq > tried[-1].ended_seq else ""

    def _is_stopped_since(self, known: Projection) -> bool:
        """Return whether the operator stopped the agent after the given projection was read."""
        if self._ports.interrupted():
            return True
        now = self.known().run
        return now.said != known.run.said and now.desired == "stopped"

    def _read_windows(self, known: Projection) -> dict[str, int]:
        """Return the window sizes of the CLI's models, asking the CLI once if none is recorded.

        The CLI's report at the end of each launch keeps the sizes up to date.
        """
        harness = self._agent.harness
        learnt = known.windows.get(harness.NAME, {})
        if not learnt and self._agent.threshold is not None:
            sizes = self._ports.windows()
            self._record_window_sizes(known, sizes)
            return dict(sizes)
        return {model: size.window for model, size in sorted(learnt.items(), key=lambda it: it[1])}

    def _record_window_sizes(self, known: Projection, found: Mapping[str, int]) -> None:
        learnt = known.windows.get(self._agent.harness.NAME, {})
        news = [
            events.WindowSizeReported(
                ts=self._ports.clock(),
                harness=self._agent.harness.NAME,
                model=model,
                window=window,
            )
            for model, window in found.items()
            if model not in learnt or learnt[model].window != window
        ]
        if news:
            self.append(*news)

    def _archive_transcripts(self) -> None:
        """Archive the transcripts. A failure is reported and does not end the run."""
        if not self._ports.settings.runtime.archive.transcripts:
            return
        try:
            TranscriptArchiver(self._ports.store, self._agent.name, [self._agent.harness]).all()
        except RekindleError as error:
            self._ports.tell(TroubleReport(str(error)))

    def _can_resume(self, last: LaunchRecord) -> bool:
        """Return whether the last session belongs to this CLI and its transcript is complete.

        A CLI that looks sessions up by file name would accept a replaced transcript, or one that a
        power loss has cut short. If there is no transcript, the CLI reports that itself.
        """
        harness = self._agent.harness
        if not harness.CAN.resumes or last.harness != harness.NAME:
            return False
        if last.seq < self.known().moved.seq:
            return False  # its transcript is on the previous host
        life = self._ports.store.read(self._agent.name).projection.lives.get(last.session)
        ends = (
            transcript_files.read_both_ends(life.transcript)
            if life is not None and life.transcript
            else b""
        )
        if life is None or not ends:
            return True
        prompt = life.asked.call if life.asked else ""
        is_whole = not prompt or harness.holds(transcript_files.read_lines(life.transcript), prompt)
        return is_whole and last.session.encode() in ends

    def _make_launch_spec(
        self, step: StartFresh | ResumeSession, agent: AgentSpec, spent: float, prompt: str
    ) -> LaunchSpec:
        own = str(uuid.uuid4()) if self._agent.harness.CAN.names_sessions else ""
        cap = agent.budget.usd if agent.budget else None
        return LaunchSpec(
            session=step.session if isinstance(step, ResumeSession) else own,
            resumes=isinstance(step, ResumeSession),
            persona=self._agent.persona,
            instructions=self._agent.instructions,
            program=self._agent.program,
            usd_left=None if cap is None else max(cap - spent, 0.0),
            interactive=self._agent.stays,
            draft=self._find_draft_path(),
            prompt=prompt if self._agent.stays else "",
        )

    def _find_request(self, known: Projection, tried: list[LaunchRecord]) -> str:
        """Return the person's request at which the last session was stopped for a handoff, or "".

        The hook's copy is complete. After a crash of the supervisor, the shortened copy in the log
        is used.
        """
        if self._asked_for:
            return primer.render_request(self._asked_for)
        life = known.lives.get(tried[-1].session)
        return primer.render_request(life.asked.text) if life is not None and life.asked else ""

    def _render_prompt(self, *, recovering: bool, asked: str = "") -> str:
        composed = compose_primer(
            self._ports.store,
            self._agent.name,
            self._ports.store.read(self._agent.name),
            now=self._ports.clock(),
            settings=self._ports.settings,
            rules=self._agent.rules,
            task=asked or self._agent.task,
            recovering=recovering,
            draft=self._find_draft_path(),
            converges=self._agent.converges,
        )
        return primer.render(composed)

    def _find_draft_path(self) -> str:
        """Return the path where the agent writes its next relay; empty if it writes none."""
        is_asked = self._agent.drafts and self._agent.persona.writes and not self._agent.stays
        if is_asked and self._agent.relay:
            return str(Path(self._agent.project) / self._agent.relay)
        return str(self._ports.store.folder(self._agent.name).draft) if is_asked else ""

    def _describe_work(self) -> str:
        """Return a fingerprint of the visible work; empty if it cannot be determined."""
        seen = self._ports.work()
        closed = sum(not loop.is_open for loop in self.known().loops.values())
        return f"{seen}-{closed}" if seen else ""

    def _record_exit(
        self,
        number: int,
        launch: Launch,
        found: LaunchExit,
        swept: SweptProcesses,
        *,
        started: bool = True,
    ) -> LaunchExit:
        """Record the exit of a launch, and return it, corrected if permissions were missing."""
        watched, start = launch.watched, launch.start
        usage = launch.usage()
        found_windows = dict(watched.finished.windows) if watched.finished is not None else {}
        if usage is not None:
            usage = usage.within(launch.gauge.windows | found_windows)
        if self._agent.stays:
            # Its output goes to the person's screen and is not read here.
            watched.opened = self._find_opened_session(launch.mark)
        opened = watched.opened == (start.session or watched.opened) != ""
        # A CLI that cannot resume never reports a session, but may have run all the same.
        ran = launch.code is not None and not self._agent.harness.CAN.resumes
        spent = launch.meter.spent(ended=True)
        now = self._ports.clock()
        session = start.session or watched.opened
        sign = launch.last_sign()
        ended: list[events.AnyEvent] = [sign] if sign else []
        if found.kind == HANDOFF_EXIT:
            launch.gauge.told_of(launch.transcript())
            trigger = launch.gauge.trigger(launch.mark, number, session)
            ended.append(msgspec.structs.replace(trigger, work=self._describe_work()))
        self._asked_for = launch.gauge.asked_for() if self._agent.stays else ""
        launch.gauge.end()
        self._record_window_sizes(self.known(), launch.gauge.windows | found_windows)
        refused = find_refused_calls(self._agent, launch, self._ports.store.redaction)
        signs = self._read_signs(*launch.stretch) if started else None
        is_useless = found.kind == "clean" and self._is_useless(launch, refused, signs)
        if is_useless:
            found = make_refused_exit(self._agent, refused.missing)
        reported = frozenset(launch.watched.reported_refusals)
        # In safe mode, its own question is enough.
        calls = () if is_useless else refused.missing
        asked = self.person.ask_about_refused_calls(self.known(), calls, launch.mark)
        self.person.report_refused_calls([*refused.missing, *refused.denied], asked, reported)
        end = events.LaunchEnded(
            ts=now,
            launch=launch.mark,
            cycle=number,
            session=session,
            exit=found.kind,
            resumes=start.resumes,
            started=started,
            opened=opened or ran,
            words=found.words,
            hint=found.hint,
            resets_at=_find_reset_time(found, now),
            code=launch.code,
            refused=len(refused.missing) + len(refused.denied),
            swept=swept.processes,
            ended=self._background.told(swept),
            seconds=launch.seconds,
            usd=watched.finished.usd if watched.finished else None,
            tokens=usage.tokens if usage else None,
            window=usage.window if usage else None,
            known=usage.known if usage else "",
            run_usd=spent.usd,
            run_tokens=spent.tokens,
            unpriced=spent.unpriced,
            billed=watched.billed,
            signs=signs,
            fruitless=launch.fruitless,
        )
        before = self.known().run.refused_call_count()
        self.append(*ended, end, *refused.record(end, before), *asked)
        return found

    def _is_useless(
        self, launch: Launch, refused: RefusedCalls, signs: events.WorkSigns | None
    ) -> bool:
        """Return whether calls were refused for lack of permission and no work was done."""
        if not refused.missing or launch.fruitless is not None:
            return False
        return not find_progress(signs, measure_idle_work(self.known()).signs)


def _find_reset_time(found: LaunchExit, now: datetime) -> int | None:
    """Return when a limit ends. Resolved once, because it depends on the time and zone."""
    if found.resets_at is not None or found.kind != "limit":
        return found.resets_at
    zone = now.astimezone().tzinfo
    reset_time = usage_limits.parse_reset_time(found.hint, now=now, zone=zone) if zone else None
    return int(reset_time.timestamp()) + 1 if reset_time else None


def _measure_work(one: LaunchRecord, heard: LastActivity) -> float:
    """Return how long a launch without a recorded end worked, up to its last sign of life."""
    if one.began is None or heard.seq < one.seq:
        return 0.0
    return max(0.0, heard.at - one.began.timestamp())
