"""Run a cycle's launches, and record when each one starts and ends."""

import secrets
from contextlib import suppress

import msgspec

from rekindle.documents import events, progress_file
from rekindle.documents.launches.launch_types import LaunchExit, SweptProcesses
from rekindle.errors import AgentError, ProgramMissingError, RekindleError, StoreError
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.cycles.cycle_snapshots import CycleSnapshots
from rekindle.flows.cycles.launch_prompt import LaunchPrompts
from rekindle.flows.cycles.open_workspace import WorkspaceOpener
from rekindle.flows.cycles.own_relay import OwnRelay
from rekindle.flows.cycles.record_exit import ExitRecorder
from rekindle.flows.cycles.window_sizes import WindowSizes
from rekindle.flows.launches.background_processes import BackgroundProcesses
from rekindle.flows.launches.launch import Launch
from rekindle.flows.supervisor_ports import AgentSpec, ExitReport, LaunchReport, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.flows.transcripts.carry_transcript import carry_transcript
from rekindle.policy.exits.restart import HANDOFF_EXIT
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.exits.stop_reasons import needs_checkpoint, parse_reason
from rekindle.policy.handoff import window_rule
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.routes.choose_route import is_first_login_exit
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.next_move import measure_idle_work
from rekindle.system.files import durable_files


class CycleRunner:
    """Runs one agent's launches, one at a time."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, log: AgentLog) -> None:
        self._agent, self._ports, self._log = agent, world, log
        self.last: LaunchExit | None = None
        self._prompts = LaunchPrompts(agent, world)
        self._background = BackgroundProcesses(agent, world)
        self._windows = WindowSizes(agent, world, log)
        self.snapshots = CycleSnapshots(agent, world, log)
        self._workspace = WorkspaceOpener(agent, world, log)
        self._exits = ExitRecorder(agent, world, log, self._windows, self._background)

    def settle(self) -> None:
        """Clean up after a supervisor that died: end its processes and record their exits."""
        projection = self._log.known()
        for mark, launch in projection.attempts.items():
            if launch.exit:
                continue
            swept = self._background.settle(mark, boot=launch.boot, uptime=launch.uptime)
            lost_exit = self._exits.record_lost(mark, launch, projection, swept)
            self._ports.tell(ExitReport(lost_exit, swept.processes))
        if projection.attempts:
            self._archive_transcripts()  # the dead supervisor may not have archived them

    def note_spending(self) -> None:
        """Store the run's spending so far for the caps that the agent shares with others."""
        with self._ports.report_trouble():
            known = self._ports.store.read(self._agent.name).projection
            spent, route = known.run.run_spending(), self._agent.route
            self._ports.note_spending(route, known.run_name, spent, False)  # noqa: FBT003 - a port

    def end_kept_processes(self) -> None:
        """End the kept background processes after the run ends or is stopped."""
        self._background.end_kept_processes()

    def open(self) -> int:
        """Return the number of the open cycle. Start a new cycle if none is open."""
        projection = self._log.known()
        number = projection.current_cycle
        if projection.is_cycle_open:
            return number
        OwnRelay(self._agent, self._ports).begin()
        projection = self._log.known()
        relay = projection.documents.get("relay")
        started = events.CycleStarted(
            ts=self._ports.clock(),
            cycle=number,
            relay=relay.path if relay else "",
            head=self._ports.head(),
        )
        if self._agent.drafts:
            # Any draft found here is left over from an earlier cycle. This cycle writes its own.
            self._ports.store.folder(self._agent.name).archive_draft()
        self._log.append(started)
        return number

    def write_progress_file(self) -> None:
        """Write the progress file. A failure is reported, but does not stop the run."""
        if not self._agent.drafts:
            return
        projection = self._log.known()
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
        with self._ports.report_trouble():
            folder = self._ports.store.folder(self._agent.name)
            durable_files.replace_file(folder.progress, text.encode())

    def launch(
        self, number: int, step: StartFresh | ResumeSession, tried: list[LaunchRecord]
    ) -> None:
        """Start a process, follow it, and record its exit."""
        if isinstance(step, ResumeSession) and not self.can_continue(tried[-1]):
            step = StartFresh(recovery=True, why="its session cannot be resumed")
        folder = self._ports.store.folder(self._agent.name)
        fresh = folder.fresh
        projection = self._log.known()
        is_asked = bool(tried) and projection.fresh_asked > tried[-1].seq
        if isinstance(step, ResumeSession) and (is_asked or fresh.exists()):
            step = StartFresh(recovery=False, why="requested by the operator")
        spent, handed = (
            projection.run.run_spending(),
            self._find_handed_checkpoint(projection, step, tried),
        )
        recovery = isinstance(step, StartFresh) and step.recovery
        if isinstance(step, StartFresh):
            interrupting = self._exits.interrupting_request
            prompt = self._prompts.render_fresh(
                projection, tried, recovering=recovery, handed=handed, interrupting=interrupting
            )
        else:
            prompt = self._prompts.render_resume(tried, projection)
        cap = budget.raise_caps(self._agent.budget, projection.run.raised_caps())
        agent = msgspec.structs.replace(self._agent, budget=cap)
        plan = self._prompts.make_launch_spec(step, cap, projection, prompt)
        windows = self._windows.read(projection)
        problem = self._workspace.open(is_first=not tried)
        # A resume must be fast, so it relies on the snapshot from the start of the cycle.
        if not tried or tried[-1].origin:
            self.snapshots.take(number, "start")
        if self._is_stopped_since(projection):
            return  # the operator stopped the agent in the meantime
        launch = Launch(secrets.token_hex(8), agent, self._ports, plan, spent, windows=windows)
        launch.bound(measure_idle_work(projection), lifted=projection.run.bounds.lifted)
        origin = events.LaunchStarted(
            ts=self._ports.clock(),
            launch=launch.mark,
            cycle=number,
            session=launch.start.session,
            harness=self._agent.harness.NAME,
            account=self._agent.account,
            resumes=launch.start.resumes,
            recovery=recovery,
            why=step.why if isinstance(step, StartFresh) else "",
            boot=self._ports.processes.boot(),
            uptime=self._ports.processes.uptime(),
            head=self._ports.head(),
            messages=tuple(sent.message for sent in projection.waiting_messages),
        )
        # Record the launch before starting the process. If this supervisor dies, the next one finds
        # the launch without an end and cleans up its processes.
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
        origin = msgspec.structs.replace(origin, seq=self._log.append(*begun).seq)
        # Remove the request only after the launch is recorded, so a crash cannot lose it.
        folder.remove(fresh)
        route = str(self._agent.route) if self._agent.routes or self._agent.account else ""
        self._notify_expired_login(projection, tried)
        self._ports.tell(
            LaunchReport(number, origin.session, origin.resumes, origin.recovery, origin.why, route)
        )
        try:
            exited = self._run(launch, prompt, origin, problem)
        except RekindleError as error:
            # The agent's processes must not outlive the supervisor, even if its folder is gone.
            self._background.end(origin)
            # Record an exit even if nothing was started. An open launch would look like a session
            # to resume.
            with suppress(StoreError):  # the next run will settle the open launch
                self._exits.record(
                    number, launch, LaunchExit("crash", str(error)), SweptProcesses(), started=False
                )
            if isinstance(error, ProgramMissingError):
                error.hint = error.hint or self._agent.harness.INSTALL
            raise
        self._end_launch(number, launch, origin, exited)

    def _end_launch(
        self, number: int, launch: Launch, origin: events.LaunchStarted, exited: LaunchExit
    ) -> None:
        """Record a launch's exit after everything that it started has ended."""
        # End leftover processes before starting anything else.
        swept = self._background.end(origin)
        if needs_checkpoint(exited.kind):
            # Git works while the exit is recorded. The handoff, which follows, waits for it.
            self.snapshots.begin(number, "handoff")
        self.last = exited = self._exits.record(number, launch, exited, swept)
        self.note_spending()
        self._ports.tell(ExitReport(exited, swept.processes))
        # After a handoff, the next launch follows immediately and archives both transcripts.
        if exited.kind != HANDOFF_EXIT:
            self._archive_transcripts()

    def _run(
        self, launch: Launch, prompt: str, origin: events.LaunchStarted, problem: AgentError | None
    ) -> LaunchExit:
        """Run the process, unless there is a problem with the agent's workspace."""
        if problem is not None:
            raise problem
        self.note_spending()  # so that the launch's own spending is known from its start
        return launch.run(prompt, origin, self._background)

    def _find_handed_checkpoint(
        self, known: Projection, step: StartFresh | ResumeSession, tried: list[LaunchRecord]
    ) -> str:
        """Return the path of the checkpoint for a fresh session to continue from, or ""."""
        checkpoint = known.documents.get("checkpoint")
        if not isinstance(step, StartFresh) or checkpoint is None or not tried:
            return ""
        is_handed = needs_checkpoint(tried[-1].exit) or tried[-1].route != self._agent.route
        return checkpoint.path if is_handed and checkpoint.seq > tried[-1].ended_seq else ""

    def _is_stopped_since(self, known: Projection) -> bool:
        """Return whether the operator stopped the agent after the projection was read."""
        if self._ports.interrupted():
            return True
        now = self._log.known().run
        return now.command != known.run.command and now.desired == "stopped"

    def _archive_transcripts(self) -> None:
        """Archive the transcripts. A failure is reported, but does not stop the run."""
        if not self._ports.settings.runtime.archive.transcripts:
            return
        with self._ports.report_trouble():
            harnesses = list(self._agent.harnesses.values()) or [self._agent.harness]
            TranscriptArchiver(self._ports.store, self._agent.name, harnesses).all()

    def _notify_expired_login(self, known: Projection, tried: list[LaunchRecord]) -> None:
        """Notify the operator once if work has left a route that only a person can free."""
        if not tried or not self._agent.has_left(tried[-1].route):
            return
        if is_first_login_exit(tried[-1], known.attempts.values(), known.run.since):
            words = f"{tried[-1].route} needs you; the work continues on {self._agent.route}"
            self._ports.notify(parse_reason(tried[-1].exit), words)

    def can_continue(self, last: LaunchRecord) -> bool:
        """Return whether the last session can be resumed here. Carry it over if needed."""
        return self._can_resume(last) and self._carry_session(last)

    def _carry_session(self, last: LaunchRecord) -> bool:
        """Copy the last session's transcript to this account. Return whether it can continue."""
        agent = self._agent
        if last.account == agent.account:
            return True
        life = self._log.known().lives.get(last.session)
        with self._ports.report_trouble():
            return life is not None and carry_transcript(
                life.transcript,
                agent.config_folders.get(last.account, ""),
                agent.config_folders.get(agent.account, ""),
            )
        return False

    def _can_resume(self, last: LaunchRecord) -> bool:
        """Return whether the last session belongs to this CLI and its transcript is intact.

        CLIs that look up sessions by file name would accept a replaced transcript, or one truncated
        by a power loss. If the transcript is missing, the CLI reports that itself.
        """
        harness = self._agent.harness
        if not harness.CAN.resumes or last.harness != harness.NAME:
            return False
        if last.seq < self._log.known().moved.seq:
            return False  # the transcript is still on the previous host
        life = self._ports.store.read(self._agent.name).projection.lives.get(last.session)
        ends = (
            transcript_files.read_both_ends(life.transcript)
            if life is not None and life.transcript
            else b""
        )
        if life is None or not ends:
            return True
        prompt = life.asked.call if life.asked else ""
        is_whole = not prompt or harness.has_prompt(
            transcript_files.read_lines(life.transcript), prompt
        )
        return is_whole and last.session.encode() in ends
