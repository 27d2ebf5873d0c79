"""Start one process for a session, follow it until it exits, and classify the exit."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from rekindle.documents.events import Heartbeat, LaunchStarted
from rekindle.documents.launches.launch_types import (
    FOLDER,
    LAUNCH_VARIABLE,
    LaunchExit,
    LaunchSpec,
    ProcessResult,
    WindowUsage,
)
from rekindle.flows.handoff.window_gauge import WindowGauge
from rekindle.flows.launches.background_processes import BackgroundProcesses
from rekindle.flows.launches.gate_check import require_gate
from rekindle.flows.launches.launch_access import fetch_access
from rekindle.flows.launches.output_transcript import OutputTranscriber
from rekindle.flows.launches.process_follower import ProcessFollower
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.progress_bounds import ProgressGuard
from rekindle.flows.launches.quota_watch import QuotaWatch
from rekindle.flows.launches.refused_hosts import record_refused_host
from rekindle.flows.launches.sandboxed_start import start_program
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.policy.exits.restart import HANDOFF_EXIT
from rekindle.policy.progress.idle import IdleWork
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.text import token_estimate
from rekindle.ports import ProcessHandle
from rekindle.system.files import durable_files, hook_program
from rekindle.system.processes import program_search


class Launch:
    """One launch of an agent. All processes started by the launch inherit its mark."""

    def __init__(
        self,
        mark: str,
        agent: AgentSpec,
        world: SupervisorPorts,
        start: LaunchSpec,
        spent: RunSpending | None = None,
        *,
        windows: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Prepare a launch. `windows` maps models to their context-window sizes in tokens."""
        self.mark = mark
        self._agent = agent
        self._ports = world
        self.start = start
        self._folder = world.store.folder(agent.name)
        # If there are no credentials, no launch must be recorded.
        self._access = fetch_access(agent, mark)
        # Build the command first: if the harness rejects it, no launch must be recorded.
        self._scratch = Path(agent.scratch or self._folder.run)
        self._command = agent.harness.command(
            msgspec.structs.replace(
                start,
                hook=agent.hook,
                gate=agent.gate,
                gate_seconds=world.settings.runtime.questions.gate_seconds,
                scratch=str(self._scratch),
                protected=agent.protected,
                folder=agent.folder,
                path=agent.path,
                is_sandboxed=agent.sandbox is not None,
            )
        )
        require_gate(agent)
        self.watched = ProcessOutput()
        self._transcribe: OutputTranscriber | None = None
        """Transcript writer for programs without hooks; None for other programs."""
        day, usd_left = world.clock().date(), start.usd_left
        self.meter = SpendMeter(
            spent or RunSpending(), agent.prices, day, usd_left, start.session_usd
        )
        self.gauge = WindowGauge(agent, world, mark, windows)
        self._quota: QuotaWatch | None = None
        self.code: int | None = None
        self.seconds = 0.0
        self._idle, self._is_bounded = IdleWork(), False
        self.stretch = ("", 0.0)
        """Commit and Unix time of the last progress, or of the launch's start if there was none."""
        self.asked_digests: frozenset[str] = frozenset()
        """Hashes of the calls that waited for permission."""
        self.fruitless: float | None = None
        """Seconds from the last progress to the end of the launch; None if there was none."""

    def bound(self, idle: IdleWork, *, lifted: bool) -> None:
        """Limit the work done without progress. `idle` is the total from earlier launches."""
        self._idle, self._is_bounded = idle, not lifted

    def run(
        self,
        prompt: str,
        origin: LaunchStarted,
        background: BackgroundProcesses | None = None,
    ) -> LaunchExit:
        """Start the process, follow it until it exits, and return the exit.

        `origin` is the event that recorded the launch. `background` tracks the processes that the
        agent leaves running.
        """
        began = self._ports.elapsed()
        self.stretch = (origin.head, origin.ts.timestamp())
        self._folder.brakes(self._agent.scratch, self._agent.marks).forget()
        self.gauge.begin()
        return self._start_and_follow(prompt, origin, began, background)

    def _start_and_follow(
        self,
        prompt: str,
        origin: LaunchStarted,
        began: float,
        background: BackgroundProcesses | None,
    ) -> LaunchExit:
        child = self._start_child(prompt)
        self.watched.estimated_tokens = token_estimate.estimate_tokens(prompt)
        if not self._agent.harness.CAN.hooks:
            self.meter.count_given(self.watched.estimated_tokens)
        if not self._agent.harness.CAN.hooks and not self._agent.stays:
            self._transcribe = OutputTranscriber(
                self._agent, self._ports, self.start.session, prompt
            )
        follow = ProcessFollower(
            origin,
            self._agent,
            self._ports,
            child,
            watched=self.watched,
            meter=self.meter,
            gauge=self.gauge,
            fruitless=ProgressGuard(self._ports, self._idle, self.stretch)
            if self._is_bounded
            else None,
            on_tick=background.watch(origin, child.pid) if background else lambda: None,
            transcribe=self._transcribe,
        )
        self._quota = follow.quota
        try:
            follow.follow_to_end()
        finally:
            self.asked_digests = frozenset(follow.desk.digests)
            if self._transcribe is not None:
                self._transcribe.write(is_last=True)
        if follow.fruitless is not None:
            self.stretch, self.fruitless = follow.fruitless.stretch, follow.fruitless.seconds()
        self.seconds = self._ports.elapsed() - began
        self.code = child.code
        return self._classify_end(child, follow)

    def last_sign(self) -> Heartbeat | None:
        """For a program without hooks, return a heartbeat for its last output, or None."""
        return self._transcribe.sign(is_last=True) if self._transcribe else None

    def _classify_end(self, child: ProcessHandle, follow: ProcessFollower) -> LaunchExit:
        ending = follow.ending
        exited = self._agent.harness.classify(
            ProcessResult(
                code=child.code,
                session=self.start.session,
                resumes=self.start.resumes,
                opened=self.watched.opened,
                finished=self.watched.finished,
                refused=self.watched.refused,
                errors=child.errors,
                last=tuple(self.watched.last),
                stopped=ending is not None and ending.kind == "interrupted",
                interactive=self.start.interactive,
            )
        )
        # If Rekindle ended the process, report its reason, unless the process had already finished.
        was_done = exited.kind == "clean" and not follow.was_stopped
        if ending is not None and ending.kind != "clean" and not was_done:
            exited = ending
        redacted = self._ports.store.redaction.text
        exited = msgspec.structs.replace(
            exited, words=redacted(exited.words), hint=redacted(exited.hint)
        )
        if exited.kind == HANDOFF_EXIT and ending is None:
            follow.repetition.note_stop(exited.words)
        return exited

    def usage(self) -> WindowUsage | None:
        """Return the most recent window usage.

        It comes from the output stream if possible, otherwise from the transcript. For programs
        without hooks, it is estimated.
        """
        if self.watched.usage is not None:
            return self.watched.usage
        if not self._agent.harness.CAN.hooks:
            return WindowUsage(self.watched.estimated_tokens, None, "estimated")
        tail = transcript_files.read_tail(self.transcript())
        return self._agent.harness.usage(tail, {}) if tail else None

    def note_last_quota(self) -> None:
        """Store the quota at the end of the transcript, whose path a hook may report late."""
        path = self.transcript()
        added = transcript_files.read_size(path) - self.watched.transcript_began
        if self._quota is not None and added > 0:
            self._quota.take_lines(transcript_files.read_tail(path)[-added:].splitlines())

    def transcript(self) -> str:
        """Return the path of the session's transcript, or "" if no hook has reported it yet."""
        lives = self._ports.store.read(self._agent.name).projection.lives
        life = lives.get(self.start.session or self.watched.opened)
        return life.transcript if life is not None else ""

    def _start_child(self, prompt: str) -> ProcessHandle:
        folder, command = self._folder, self._command
        if self._agent.hook:
            hook_program.provide_program()
        for name, text in command.files.items():
            durable_files.replace_file(self._scratch / name, text.encode())
        own = {
            LAUNCH_VARIABLE: self.mark,
            FOLDER: str(folder.path),
            "REKINDLE_RULES": str(self._scratch),
            "REKINDLE_AGENT": self._agent.name,
        }
        environment = {**self._agent.environment, **command.environment, **own}
        argv = command.argv
        if not self._agent.program:
            # Never run a program from inside the workspace.
            path = environment.get("PATH")
            around, inner = argv[: command.inner], argv[command.inner :]
            argv = (*around, *program_search.resolve_command(inner, path))
        return start_program(
            self._ports.processes,
            self._agent,
            argv,
            # The CLI would treat a leading slash as a command.
            prompt=f"\n{prompt}" if prompt.startswith("/") else prompt,
            environment=environment,
            on_refused=self._record_refused,
            access=self._access,
        )

    def _record_refused(self, host: str) -> None:
        record_refused_host(self._ports, self._agent.name, self.mark, host)
