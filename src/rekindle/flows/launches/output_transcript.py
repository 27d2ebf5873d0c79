"""Build a transcript from the prompt and output of a program without hooks.

Turns are redacted and written directly to the agent's archive, so no unredacted copy is ever on
disk. The output also serves as the program's only sign of life.
"""

from collections import deque
from contextlib import suppress
from datetime import datetime

import msgspec

from rekindle.documents.events import Heartbeat
from rekindle.documents.launches.launch_types import AssistantText, OutputItem, ToolCallStarted
from rekindle.documents.transcripts.turns import Speaker, TranscriptCursor, Turn
from rekindle.errors import RekindleError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.formats.identifiers import STABLE_ID
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.thresholds.storage import (
    TRANSCRIBED_BYTES,
    TRANSCRIBED_EVERY_SECONDS,
    TRANSCRIBED_LIVE_SECONDS,
    TRANSCRIBED_TURNS,
)
from rekindle.thresholds.texts import TRANSCRIBED_TURN_CHARACTERS

_BEGIN, _END = "-----BEGIN ", "-----END "
LEFT_OUT = "Rekindle omitted the output between this point and the last lines."


class OutputTranscriber:
    """Archives one launch's output, turn by turn."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, session: str, prompt: str) -> None:
        self._agent, self._ports = agent, world
        self._archive = TranscriptArchive(world.store.folder(agent.name).transcripts)
        now = world.clock().isoformat()
        self._kept = ArchivedTranscript(session=session, harness=agent.harness.NAME, began=now)
        self._number = 0
        self._turns: list[Turn] = []
        self._lines: deque[str] = deque()
        self._size = 0
        self._written_at = self._shown_at = world.elapsed()
        self._has_part = False
        self._is_shown = False
        """Whether all output so far is visible to readers."""
        self._has_failed = False
        self._printed_at: datetime | None = None
        """Time of the last output that has no heartbeat in the log yet, or None."""
        self._signed_at = world.elapsed()
        is_wanted = world.settings.runtime.archive.transcripts
        self._is_kept = is_wanted and bool(STABLE_ID.match(session))
        self._add("person", prompt)

    def set_session(self, session: str) -> None:
        """Keep the output under a session's id, which some CLIs choose only when they start."""
        if not self._kept.session:
            self._kept = msgspec.structs.replace(self._kept, session=session)
            is_wanted = self._ports.settings.runtime.archive.transcripts
            self._is_kept = is_wanted and bool(STABLE_ID.match(session))

    @property
    def _is_full(self) -> bool:
        return self._kept.size >= TRANSCRIBED_BYTES

    def take(self, seen: OutputItem) -> None:
        match seen:
            case AssistantText():
                line = seen.text
            case ToolCallStarted():
                line = f"· {seen.tool} {seen.about}"
            case _:
                return
        self._printed_at = self._ports.clock()
        if self._is_kept:
            self._is_shown = False
            self._keep(line)
            self.show()

    def show(self) -> None:
        """Publish pending output at most once per second, and archive it when due."""
        now = self._ports.elapsed()
        if now - self._written_at >= TRANSCRIBED_EVERY_SECONDS:
            self.write()
            return
        is_due = now - max(self._shown_at, self._written_at) >= TRANSCRIBED_LIVE_SECONDS
        if self._is_shown or not self._is_kept or self._is_full or not is_due:
            return
        self._shown_at, self._is_shown = now, True
        turns = tuple(self._turns)
        if self._lines and not self._is_inside_key():
            turns += (self._make_turn("agent", "\n".join(self._lines), self._number + 1),)
        with suppress(RekindleError):  # a later write() reports a full disk
            self._begin_part()
            shown = msgspec.structs.replace(self._kept, rest=turns)
            self._archive.note(shown, is_durable=False)

    def sign(self, *, is_last: bool = False) -> Heartbeat | None:
        """Return a heartbeat for new output if one is due, or None."""
        now = self._ports.elapsed()
        is_due = is_last or now - self._signed_at >= TRANSCRIBED_EVERY_SECONDS
        if self._printed_at is None or not is_due:
            return None
        heartbeat = Heartbeat(ts=self._printed_at, session=self._kept.session)
        self._printed_at, self._signed_at = None, now
        return heartbeat

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._is_full:
            while self._size > TRANSCRIBED_TURN_CHARACTERS:
                self._size -= len(self._lines.popleft()) + 1
        elif self._size >= TRANSCRIBED_TURN_CHARACTERS and not self._is_inside_key():
            self._close_turn()
        if len(self._turns) >= TRANSCRIBED_TURNS:
            self.write()

    def write(self, *, is_last: bool = False) -> None:
        """Archive the pending turns. A failure is reported, but does not stop the agent."""
        self._written_at = self._ports.elapsed()
        if not self._is_kept or (self._is_full and not is_last):
            return
        if self._is_full and self._lines:
            self._add("cli", LEFT_OUT)
        if is_last or not self._is_inside_key():
            self._close_turn()
        turns, self._turns = self._turns, []
        if not turns:
            return
        try:
            with self._archive.adding(self._agent.name):
                self._begin_part()
                self._kept = self._archive.add(self._kept, turns, self._then)
        except RekindleError as error:
            if not self._has_failed:
                self._has_failed = True
                self._ports.tell(
                    TroubleReport(f"the agent's output could not be archived: {error}")
                )

    def _begin_part(self) -> None:
        """Start a new part of the transcript if an earlier launch already wrote one."""
        if not self._has_part:
            before = self._archive.find(self._kept.session)
            part = before.part + 1 if before else 0
            self._kept = msgspec.structs.replace(self._kept, part=part)
            self._has_part = True

    def _is_inside_key(self) -> bool:
        """Return whether the pending text ends in the middle of a private key.

        A key can only be redacted as a whole.
        """
        if self._size >= 2 * TRANSCRIBED_TURN_CHARACTERS:
            return False
        text = "\n".join(self._lines)
        return text.rfind(_BEGIN) > text.rfind(_END)

    def _close_turn(self) -> None:
        if self._lines:
            self._add("agent", "\n".join(self._lines))
        self._lines.clear()
        self._size = 0

    def _add(self, who: Speaker, text: str) -> None:
        self._number += 1
        self._turns.append(self._make_turn(who, text, self._number))

    def _make_turn(self, who: Speaker, text: str, number: int) -> Turn:
        at = self._ports.clock().isoformat()
        turn = Turn(number=number, who=who, at=at, text=text)
        return turn.without_secrets(self._ports.store.redaction.text)

    def _then(self, archived: ArchivedTranscript) -> ArchivedTranscript:
        return msgspec.structs.replace(archived, cursor=TranscriptCursor(number=self._number + 1))
