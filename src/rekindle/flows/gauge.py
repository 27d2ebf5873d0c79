"""How full the window of a launch is, and the rule by which its hook stops it."""

from collections.abc import Mapping
from threading import Thread
from typing import Any

import msgspec

from rekindle.documents import event as events
from rekindle.documents.launch import Known, Opened, Usage
from rekindle.flows import transcripts
from rekindle.flows.archive_transcripts import files_beside
from rekindle.flows.world import Agent, World
from rekindle.policy import handoff
from rekindle.policy.fold import WindowFill
from rekindle.policy.handoff import Rule
from rekindle.system import disk


class Gauge:
    """Of one launch. What it writes down its hook reads, at every boundary, by itself."""

    def __init__(self, agent: Agent, world: World, launch: str, windows: Mapping[str, int]) -> None:
        """`windows` is what is known of models, the one that was learnt last at the end."""
        self._agent, self._world, self.windows = agent, world, dict(windows)
        self._brake = agent.harness.brake(interactive=agent.stays)
        brakes = world.store.folder(agent.name).brakes(agent.scratch)
        self._rule_file, self._mark = brakes.rule(launch), brakes.braked(launch)
        self._taken = brakes.taken(launch)
        self._measuring: Thread | None = None
        self._written: Rule | None = None
        # Until it has said which model it has: the one that was asked last, most likely again.
        self._window = [*windows.values()][-1] if windows else None
        self._known: Known = "reported" if self._window else "unknown"
        self._transcript = ""
        self._is_asked = False
        self._began = world.clock().timestamp()

    @property
    def can_stop(self) -> bool:
        return self._brake is not None

    @property
    def stops_itself(self) -> bool:
        """Told to by the hook, the CLI ends; else it waits, and somebody must end it."""
        return bool(self._brake and self._brake.answer) and not self._agent.stays

    @property
    def is_kept(self) -> bool:
        """Where it has stopped, everything that it did is written down."""
        return bool(self._brake and self._brake.is_kept)

    @property
    def needs_transcript(self) -> bool:
        """Whether only a hook can still tell which transcript it is to be held to."""
        is_wanted = self._brake is not None and self._agent.threshold is not None
        return is_wanted and not self._transcript and self._agent.harness.CAN.hooks

    def is_due_in_vain(self) -> bool:
        """Whether it should be handed off, and nothing here can stop it."""
        return self._brake is None and handoff.is_due(self._reading(), self._agent.threshold)

    def begin(self) -> None:
        self._write()

    def opened(self, seen: Opened) -> None:
        """It has said which model it has, before that was asked anything."""
        learnt = self.windows.get(seen.model)
        is_held = self._brake and self._brake.models and self._agent.threshold is not None
        if is_held and seen.model and not learnt:
            # Another than before: its CLI is asked beside it, which takes a second.
            self._measuring = Thread(target=self._measure, daemon=True)
            self._measuring.start()
        self._window = learnt or seen.window
        self._known = "reported" if learnt else "estimated" if seen.window else "unknown"
        self._write()

    def _measure(self) -> None:
        self.windows |= self._world.windows()

    def told_of(self, transcript: str) -> None:
        if transcript != self._transcript:
            self._transcript = transcript
            self._write()

    def ask(self) -> None:
        """Somebody wants it stopped at its next boundary, however full it is."""
        self._is_asked = True
        self._write()

    def has_stopped(self) -> bool:
        if self._measuring is not None and not self._measuring.is_alive():
            self._measuring = None
            self._write()
        return self._brake is not None and disk.exists(self._mark)

    def words(self) -> str:
        """Why it was stopped."""
        reading = self._stopped_at()
        found = reading.percent if reading else None
        if self._is_asked or found is None:
            return "stopped between two turns, as was asked, for a fresh session to go on"
        return f"its window is {found:.0f} % full: stopped, for a fresh session to go on"

    def take(self) -> bool:
        """That it is stopped counts from here; False: its hook has just given that up."""
        try:
            self._mark.rename(self._taken)
        except FileNotFoundError:
            return False
        return True

    def asked_for(self) -> str:
        """What its person has asked for where it was stopped, whole; empty: nobody knows."""
        if self._brake is None:
            return ""
        _, _, payload = (disk.read(self._taken) or b"").partition(b"\n")
        try:
            said = msgspec.json.decode(payload, type=dict[str, Any]).get("prompt")
        except msgspec.DecodeError:
            return ""  # longer than a hook keeps
        return said if isinstance(said, str) else ""

    def let_go_on(self) -> None:
        """It was stopped too soon: its next boundary will do."""
        for path in (self._mark, self._taken):
            path.unlink(missing_ok=True)

    def is_accompanied(self, session: str) -> bool:
        """Whether a sub-agent works beside it, whose calls would be cut if it were ended now."""
        signs = [sign.encode() for sign in self._brake.beside] if self._brake else []
        found = self._agent.harness.asides(self._transcript, session)
        if not signs or not self._transcript or found is None:
            return False
        for path in files_beside(found):
            is_new = path != self._transcript and transcripts.changed_at(path) >= self._began
            if is_new and found.sign in transcripts.first_line(path):
                begins, *ends = map(transcripts.tail(path).rfind, signs)
                # Its last words are that it is done; where they are not there, it is not.
                if max(ends) <= begins or max(ends) < 0:
                    return True
        return False

    def end(self) -> None:
        for path in (self._rule_file, self._mark, self._taken):
            path.unlink(missing_ok=True)

    def trigger(self, launch: str, cycle: int, session: str) -> events.HandoffTriggered:
        """What is known of why it was stopped."""
        reading, first = self._stopped_at() or self._reading(), self._first_turn()
        return events.HandoffTriggered(
            ts=self._world.clock(),
            launch=launch,
            cycle=cycle,
            session=session,
            by="person" if self._is_asked else "threshold",
            tokens=reading.tokens if reading else None,
            window=reading.window if reading else None,
            known=reading.known if reading else "unknown",
            threshold=self._agent.threshold,
            first=first.tokens if first else None,
        )

    def _stopped_at(self) -> Usage | None:
        """What its hook went by; None: it was asked for, however full it is."""
        if self._brake is None:
            return None
        head, _, _ = (disk.read(self._taken) or b"").partition(b"\n")
        said = head.decode("ascii", "replace").split()
        used, size = (int(word) if word.isdecimal() else 0 for word in (*said, "0", "0")[:2])
        if not used:
            return None
        # Where lines name their model, its window is in the last reading.
        last = self._reading() if self._brake.models else None
        window, known = (last.window, last.known) if last else (self._window, self._known)
        return Usage(used, size or window, "reported" if size else known)

    def measure(self, launch: str, before: WindowFill) -> events.WindowMeasured | None:
        """Return how full the window is, where that changed by a point or more."""
        reading = self._reading()
        if reading is None:
            return None
        step = max(1, (reading.window or 0) // 100)
        is_same = before.window == (reading.window or 0)
        if is_same and abs(reading.tokens - before.tokens) < step:
            return None
        return events.WindowMeasured(
            ts=self._world.clock(),
            launch=launch,
            tokens=reading.tokens,
            window=reading.window,
            known=reading.known,
        )

    def _reading(self) -> Usage | None:
        if not self._transcript:
            return None
        return self._agent.harness.usage(transcripts.tail(self._transcript), self.windows)

    def _first_turn(self) -> Usage | None:
        if not self._transcript:
            return None
        lines = transcripts.lines(self._transcript)
        return next((used.usage for one in lines if (used := self._agent.harness.turn(one))), None)

    def _write(self) -> None:
        if self._brake is None:
            return
        rule = handoff.rule(
            self._brake,
            self._agent.threshold,
            self.windows,
            window=self._window,
            # A sub-agent's own is told from the session's once that is known.
            transcript=self._transcript,
            asked=self._is_asked,
        )
        if rule == self._written:
            return
        self._written = rule
        if rule is None:
            self._rule_file.unlink(missing_ok=True)
        else:
            disk.replace(self._rule_file, rule.render())
