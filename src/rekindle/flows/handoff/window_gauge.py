"""Measure how full the context window is, and tell the hook when to stop the CLI."""

from collections.abc import Mapping
from threading import Thread
from typing import Any

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import SessionOpened, UsageSource, WindowUsage
from rekindle.flows.handoff.notice_queue import NoticeQueue
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.archive_transcripts import list_subagent_files
from rekindle.policy.handoff import window_rule
from rekindle.policy.handoff.window_rule import BrakeRule
from rekindle.policy.projection.projection import WindowFill
from rekindle.system.files import durable_files


class WindowGauge:
    """Measures a launch's context window.

    The rule for the hook is written to a file, which the hook reads after every turn.
    """

    def __init__(
        self, agent: AgentSpec, world: SupervisorPorts, launch: str, windows: Mapping[str, int]
    ) -> None:
        """Create a gauge. `windows` maps models to window sizes, with the latest model last."""
        self._agent, self._ports, self.windows = agent, world, dict(windows)
        self._brake = agent.harness.brake(interactive=agent.stays)
        brakes = world.store.folder(agent.name).brakes(agent.scratch, agent.marks)
        self._rule_file, self._mark = brakes.rule(launch), brakes.braked(launch)
        self._taken = brakes.taken(launch)
        self.notices = NoticeQueue(agent, world, launch)
        self._measuring: Thread | None = None
        self._written: BrakeRule | None = None
        # Until the CLI reports its model, assume the latest one.
        self._window = [*windows.values()][-1] if windows else None
        self._known: UsageSource = "reported" if self._window else "unknown"
        self._transcript = ""
        self._streamed: WindowUsage | None = None
        self._is_asked = False
        self._repetition = ""
        self._began = world.clock().timestamp()

    @property
    def can_stop(self) -> bool:
        return self._brake is not None

    @property
    def stops_itself(self) -> bool:
        """Whether the CLI exits on its own after the hook's answer.

        If it does not, the supervisor ends it.
        """
        return bool(self._brake and self._brake.answer) and not self._agent.stays

    @property
    def is_kept(self) -> bool:
        """Whether the CLI has saved all of its work when the hook stops it."""
        return bool(self._brake and self._brake.is_kept)

    @property
    def needs_transcript(self) -> bool:
        """Whether measuring the window needs a transcript whose path is still unknown."""
        is_wanted = self._brake is not None and self._agent.threshold is not None
        return is_wanted and not self._transcript and self._agent.harness.CAN.hooks

    def is_handoff_blocked(self) -> bool:
        """Return whether a handoff is due, but the CLI cannot be stopped between turns."""
        return self._brake is None and window_rule.is_handoff_due(
            self._read_usage(), self._agent.threshold
        )

    def begin(self) -> None:
        self._write_rule()

    def opened(self, seen: SessionOpened) -> None:
        """Look up the window size of the model that the CLI reports when it starts."""
        learnt = self.windows.get(seen.model)
        is_held = self._brake and self._brake.models and self._agent.threshold is not None
        if is_held and seen.model and not learnt:
            # This model is new. Ask the CLI in a thread, because that takes about a second.
            self._measuring = Thread(target=self._update_limits, daemon=True)
            self._measuring.start()
        self._window = learnt or seen.window
        self._known = "reported" if learnt else "estimated" if seen.window else "unknown"
        self._write_rule()

    def _update_limits(self) -> None:
        self.windows |= self._ports.windows()

    def note_usage(self, usage: WindowUsage) -> None:
        """Note the usage that the output reports, for a CLI without a transcript."""
        self._streamed = usage

    def set_transcript(self, transcript: str) -> None:
        if transcript != self._transcript:
            self._transcript = transcript
            self.notices.set_transcript(transcript)
            self._write_rule()

    def ask(self) -> None:
        """Request a stop after the current turn, regardless of window usage."""
        self._is_asked = True
        self._write_rule()

    def note_repetition(self, words: str) -> None:
        """Note that the agent repeats itself, as the cause of the next handoff."""
        self._repetition = words

    def has_stopped(self) -> bool:
        if self._measuring is not None and not self._measuring.is_alive():
            self._measuring = None
            self._write_rule()
        return self._brake is not None and durable_files.path_exists(self._mark)

    def words(self) -> str:
        """Return why the launch was stopped."""
        if self._repetition:
            return f"it repeated itself: {self._repetition}"
        reading = self._read_stop_usage()
        percent = reading.percent if reading else None
        if self._is_asked or percent is None:
            return "stopped between two turns, as requested; a fresh session continues"
        return f"its window is {percent:.0f} % full: stopped; a fresh session continues"

    def take(self) -> bool:
        """Accept the hook's stop. Return False if the hook has cancelled it."""
        try:
            self._mark.rename(self._taken)
        except FileNotFoundError:
            return False
        return True

    def read_interrupting_request(self) -> str:
        """Return the full text of the interrupted user request, or "" if unknown."""
        if self._brake is None:
            return ""
        _, _, payload = (durable_files.read_bytes(self._taken) or b"").partition(b"\n")
        try:
            prompt = msgspec.json.decode(payload, type=dict[str, Any]).get("prompt")
        except msgspec.DecodeError:
            return ""  # the prompt was too long for the hook to save
        return prompt if isinstance(prompt, str) else ""

    def cancel_stop(self) -> None:
        """Cancel a premature stop. The hook stops the CLI after a later turn instead."""
        for path in (self._mark, self._taken):
            path.unlink(missing_ok=True)

    def has_running_subagent(self, session: str) -> bool:
        """Return whether ending the launch would interrupt a running subagent."""
        markers = [marker.encode() for marker in self._brake.beside] if self._brake else []
        subagents = self._agent.harness.asides(self._transcript, session)
        if not markers or not self._transcript or subagents is None:
            return False
        for path in list_subagent_files(subagents):
            is_new = (
                path != self._transcript and transcript_files.read_changed_at(path) >= self._began
            )
            if is_new and subagents.sign in transcript_files.read_first_line(path):
                begins, *ends = map(transcript_files.read_tail(path).rfind, markers)
                # A finished subagent's transcript ends with a marker.
                if max(ends) <= begins or max(ends) < 0:
                    return True
        return False

    def end(self) -> None:
        for path in (self._rule_file, self._mark, self._taken):
            path.unlink(missing_ok=True)
        self.notices.end()

    def trigger(self, launch: str, cycle: int, session: str) -> events.HandoffTriggered:
        """Return the event that records why the launch was stopped for a handoff."""
        reading, first = self._read_stop_usage() or self._read_usage(), self._first_turn()
        return events.HandoffTriggered(
            ts=self._ports.clock(),
            launch=launch,
            cycle=cycle,
            session=session,
            by=self._find_cause(),
            tokens=reading.tokens if reading else None,
            window=reading.window if reading else None,
            known=reading.known if reading else "unknown",
            threshold=self._agent.threshold,
            first=first.tokens if first else None,
        )

    def _find_cause(self) -> str:
        if self._repetition:
            return window_rule.REPETITION_CAUSE
        return "person" if self._is_asked else "threshold"

    def _read_stop_usage(self) -> WindowUsage | None:
        """Return the usage at which the hook stopped the CLI, or None for a requested handoff."""
        if self._brake is None:
            return None
        head, _, _ = (durable_files.read_bytes(self._taken) or b"").partition(b"\n")
        numbers = head.decode("ascii", "replace").split()
        used, size = (int(word) if word.isdecimal() else 0 for word in (*numbers, "0", "0")[:2])
        if not used:
            return None
        # Transcripts that name the model also provide its window size.
        last = self._read_usage() if self._brake.models else None
        window, known = (last.window, last.known) if last else (self._window, self._known)
        return WindowUsage(used, size or window, "reported" if size else known)

    def measure(self, launch: str, before: WindowFill) -> events.WindowMeasured | None:
        """Return an event if the window usage changed by a percent or more, else None."""
        reading = self._read_usage()
        if reading is None:
            return None
        step = max(1, (reading.window or 0) // 100)
        is_same = before.window == (reading.window or 0)
        if is_same and abs(reading.tokens - before.tokens) < step:
            return None
        return events.WindowMeasured(
            ts=self._ports.clock(),
            launch=launch,
            tokens=reading.tokens,
            window=reading.window,
            known=reading.known,
        )

    def _read_usage(self) -> WindowUsage | None:
        if not self._transcript:
            return None if self._agent.harness.CAN.hooks else self._streamed
        return self._agent.harness.usage(transcript_files.read_tail(self._transcript), self.windows)

    def _first_turn(self) -> WindowUsage | None:
        if not self._transcript:
            return None
        lines = transcript_files.read_lines(self._transcript)
        return next(
            (used.usage for line in lines if (used := self._agent.harness.turn(line))), None
        )

    def _write_rule(self) -> None:
        if self._brake is None:
            return
        rule = window_rule.make_brake_rule(
            self._brake,
            self._agent.threshold,
            self.windows,
            window=self._window,
            # The hook uses the path to ignore the transcripts of subagents.
            transcript=self._transcript,
            at_once=self._is_asked,
        )
        if rule == self._written:
            return
        self._written = rule
        if rule is None:
            self._rule_file.unlink(missing_ok=True)
        else:
            durable_files.replace_file(self._rule_file, rule.render())
