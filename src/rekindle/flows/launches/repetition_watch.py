"""Watch a session's transcript for an agent that repeats itself, and respond."""

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.launch_types import LaunchExit
from rekindle.flows.handoff.window_gauge import WindowGauge
from rekindle.flows.supervisor_ports import AgentSpec, RepetitionReport, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.policy.supervision.repetition import Repetition, RepetitionDetector, render_notice


class RepetitionWatch:
    """Tells the agent once that it repeats itself, and then hands its work to a fresh session."""

    def __init__(
        self, origin: LaunchStarted, agent: AgentSpec, world: SupervisorPorts, gauge: WindowGauge
    ) -> None:
        self._origin, self._agent, self._ports, self._gauge = origin, agent, world, gauge
        self._detector = RepetitionDetector()
        self._offset = 0
        self._told: Repetition | None = None
        """The repetition that the agent was last told about."""
        self._notices = 0
        self._is_over = False

    def skip_existing(self, transcript: str) -> None:
        """Skip the part of a resumed session that an earlier launch has watched."""
        self._offset = transcript_files.read_size(transcript) if transcript else 0

    def check(self, transcript: str) -> LaunchExit | None:
        """Read what is new in the transcript. Return an exit if the process must end now.

        A pattern with tool calls ends at a boundary, where the hook stops the session.
        """
        if not transcript or transcript_files.read_size(transcript) <= self._offset:
            return None
        lines = transcript_files.read_lines_since(transcript, self._offset)
        self._offset += len(lines)
        exited = None
        for line in lines.splitlines():
            for passage in self._agent.harness.read_transcript(line):
                if found := self._detector.take(passage):
                    exited = self._respond(found) or exited
        return exited

    def _respond(self, found: Repetition) -> LaunchExit | None:
        if self._is_over:
            return None
        is_known = self._told is not None and self._told.pattern == found.pattern
        if self._told is None or not is_known or found.count <= self._told.count:
            self._told = found
            self._gauge.notices.discard(f"repetition-{self._notices}")
            self._notices += 1
            self._gauge.notices.add(f"repetition-{self._notices}", render_notice(found))
            self._report(found, "told")
            return None
        # A person at the terminal sees what happens, and decides.
        if not found.is_over or self._agent.stays:
            return None
        self._is_over = True
        self._gauge.note_repetition(self._report(found, "handoff"))
        if found.has_boundary:
            self._gauge.ask()
            return None
        return LaunchExit("handoff", self._gauge.words())

    def note_stop(self, words: str) -> None:
        """Record that the CLI itself has stopped the agent because it repeated itself."""
        self._gauge.note_repetition(words)
        self._record("cli", 0, words, "handoff")

    def _report(self, found: Repetition, action: str) -> str:
        words = self._ports.store.redaction.text(found.describe())
        self._record(found.pattern, found.count, words, action)
        return words

    def _record(self, pattern: str, count: int, words: str, action: str) -> None:
        noted = events.RepetitionDetected(
            ts=self._ports.clock(),
            launch=self._origin.launch,
            pattern=pattern,
            count=count,
            words=words,
            action=action,
        )
        with (
            self._ports.report_trouble(),
            self._ports.store.writer(self._agent.name) as writer,
        ):
            writer.append(noted)
        if action == "handoff":
            self._ports.notify("repeats itself", words)  # the exit shows them at the terminal
        else:
            self._ports.tell(RepetitionReport(words))
