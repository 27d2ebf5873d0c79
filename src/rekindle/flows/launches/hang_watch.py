"""Detect a hung process: one that prints nothing and uses no CPU or disk."""

import msgspec

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.launch_types import LaunchExit, ProcessVitals
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.supervisor_ports import AgentSpec, HangReport, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.policy.settings.runtime_settings import BUSY_BYTES, BUSY_SHARE
from rekindle.policy.supervision import hang
from rekindle.policy.supervision.hang import ProcessSigns
from rekindle.ports import ProcessHandle
from rekindle.thresholds.supervision import WATCH_SILENCE_SHARE


class HangWatch:
    """Watches one process for signs of life."""

    def __init__(
        self,
        origin: LaunchStarted,
        agent: AgentSpec,
        world: SupervisorPorts,
        child: ProcessHandle,
        watched: ProcessOutput,
    ) -> None:
        self._origin, self._agent, self._ports = origin, agent, world
        self._child, self._watched = child, watched
        self._sign_at = self._active_at = self._checked_at = world.elapsed()
        self._transcript_size = 0
        self._vitals: ProcessVitals | None = None
        self._noticed = ""
        self._is_excused = False

    def note_activity(self, now: float) -> None:
        self._sign_at = self._active_at = now
        self._noticed = ""

    def check(self, now: float, transcript: str, *, is_ending: bool) -> LaunchExit | None:
        """Return an exit if the process hangs or has finished, or None.

        Do nothing until the next check is due. Record a hang in the log and notify the operator.
        """
        settings = self._ports.settings.runtime.watch
        since = now - self._checked_at
        if since < min(settings.interval, settings.silence * WATCH_SILENCE_SHARE):
            return None
        self._checked_at = now
        size = transcript_files.read_size(transcript) if transcript else 0
        if size != self._transcript_size:
            self._transcript_size = size
            self.note_activity(now)
        if self._agent.stays:
            return None  # the user may just be thinking
        signs = self._collect_signs(now, since)
        was_excused, self._is_excused = self._is_excused, hang.is_excused(signs)
        if was_excused and not self._is_excused and not signs.finished:
            # The process was just resumed, or its tool call just returned. Give it time to print
            # something.
            self.note_activity(now)
            signs = msgspec.structs.replace(signs, silent=0.0)
        judgement = hang.judge_silence(signs, settings)
        if judgement.answer == "fine" or is_ending:
            return None
        if judgement.answer == "reap":
            return LaunchExit("clean", judgement.words)
        if judgement.words == self._noticed:
            return None
        self._noticed = judgement.words
        is_ended = judgement.answer == "end"
        self._report(judgement.words, ended=is_ended)
        return LaunchExit("hang", judgement.words) if is_ended else None

    def _report(self, words: str, *, ended: bool) -> None:
        noted = events.HangDetected(
            ts=self._ports.clock(), launch=self._origin.launch, words=words, ended=ended
        )
        with (
            self._ports.report_trouble(),
            self._ports.store.writer(self._agent.name) as writer,
        ):
            writer.append(noted)
        self._ports.tell(HangReport(words, ended))
        self._ports.notify("no sign of life", words)

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
                # Totals drop when a tool process exits. That counts as activity too.
                children_work=abs(vitals.tools_cpu_seconds - before.tools_cpu_seconds) > share
                or abs(vitals.tools_moved_bytes - before.tools_moved_bytes) > most,
                works=vitals.cpu_seconds - before.cpu_seconds > share
                or vitals.moved_bytes - before.moved_bytes > most,
            )
        if signs.stopped or hang.is_working(signs):
            self._active_at = now
        return msgspec.structs.replace(signs, idle=now - self._active_at)
