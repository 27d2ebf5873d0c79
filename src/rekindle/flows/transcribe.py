"""The transcript of a program without hooks: what it was given, and what it printed.

It goes straight into the agent's archive, in normal form and without secrets; nothing else of it
is written to disk. What it prints is also its only sign of life.
"""

from collections import deque
from datetime import datetime

import msgspec

from rekindle.documents.event import Heartbeat
from rekindle.documents.identity import STABLE_ID
from rekindle.documents.launch import Called, Said, Seen
from rekindle.documents.transcript import Cursor, Turn, Who
from rekindle.errors import RekindleError
from rekindle.flows.world import Agent, Trouble, World
from rekindle.stores.files.transcripts import Kept, TranscriptArchive
from rekindle.thresholds.storage import (
    TRANSCRIBED_BYTES,
    TRANSCRIBED_EVERY_SECONDS,
    TRANSCRIBED_TURNS,
)
from rekindle.thresholds.texts import TRANSCRIBED_TURN_CHARACTERS

_BEGIN, _END = "-----BEGIN ", "-----END "
LEFT_OUT = "Rekindle kept no more of its output, up to the last lines."


class Transcribe:
    """Keeps what one launch prints, a turn at a time."""

    def __init__(self, agent: Agent, world: World, session: str, prompt: str) -> None:
        self._agent, self._world = agent, world
        self._archive = TranscriptArchive(world.store.folder(agent.name).transcripts)
        now = world.clock().isoformat()
        self._kept = Kept(session=session, harness=agent.harness.NAME, began=now)
        self._number = 0
        self._turns: list[Turn] = []
        self._lines: deque[str] = deque()
        self._size = 0
        self._written_at = world.elapsed()
        self._has_failed = False
        self._printed_at: datetime | None = None
        """When it printed something that the log has no sign of yet."""
        self._signed_at = world.elapsed()
        is_wanted = world.settings.runtime.archive.transcripts
        self._is_kept = is_wanted and bool(STABLE_ID.match(session))
        self._add("person", prompt)

    @property
    def _is_full(self) -> bool:
        return self._kept.size >= TRANSCRIBED_BYTES

    def take(self, seen: Seen) -> None:
        """Add what it shows."""
        match seen:
            case Said():
                line = seen.text
            case Called():
                line = f"· {seen.tool} {seen.about}"
            case _:
                return
        self._printed_at = self._world.clock()
        if self._is_kept:
            self._keep(line)

    def sign(self, *, is_last: bool = False) -> Heartbeat | None:
        """Return a sign of life for the log, now and then, if it has printed something since."""
        now = self._world.elapsed()
        is_due = is_last or now - self._signed_at >= TRANSCRIBED_EVERY_SECONDS
        if self._printed_at is None or not is_due:
            return None
        found = Heartbeat(ts=self._printed_at, session=self._kept.session)
        self._printed_at, self._signed_at = None, now
        return found

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._is_full:
            while self._size > TRANSCRIBED_TURN_CHARACTERS:
                self._size -= len(self._lines.popleft()) + 1
        elif self._size >= TRANSCRIBED_TURN_CHARACTERS and not self._is_inside_key():
            self._close_turn()
        is_late = self._world.elapsed() - self._written_at >= TRANSCRIBED_EVERY_SECONDS
        if is_late or len(self._turns) >= TRANSCRIBED_TURNS:
            self.write()

    def write(self, *, is_last: bool = False) -> None:
        """Write what there is; that it cannot be written must not end the agent's work."""
        self._written_at = self._world.elapsed()
        if not self._is_kept or (self._is_full and not is_last):
            return
        if self._is_full and self._lines:
            self._add("cli", LEFT_OUT)
        if is_last or not self._is_inside_key():
            self._close_turn()
        redacted = self._world.store.redaction.text
        turns, self._turns = [one.without_secrets(redacted) for one in self._turns], []
        if not turns:
            return
        try:
            with self._archive.adding(self._agent.name):
                self._begin_part()
                self._kept = self._archive.add(self._kept, turns, self._then)
        except RekindleError as error:
            if not self._has_failed:
                self._has_failed = True
                self._world.tell(Trouble(f"its output is not kept: {error}"))

    def _begin_part(self) -> None:
        """Begin another part if an earlier launch of the session has one."""
        if not self._kept.size:
            before = self._archive.find(self._kept.session)
            part = before.part + 1 if before else 0
            self._kept = msgspec.structs.replace(self._kept, part=part)

    def _is_inside_key(self) -> bool:
        """Whether the lines end within a private key, which is found only as a whole."""
        if self._size >= 2 * TRANSCRIBED_TURN_CHARACTERS:
            return False
        text = "\n".join(self._lines)
        return text.rfind(_BEGIN) > text.rfind(_END)

    def _close_turn(self) -> None:
        if self._lines:
            self._add("agent", "\n".join(self._lines))
        self._lines.clear()
        self._size = 0

    def _add(self, who: Who, text: str) -> None:
        self._number += 1
        at = self._world.clock().isoformat()
        self._turns.append(Turn(number=self._number, who=who, at=at, text=text))

    def _then(self, kept: Kept) -> Kept:
        return msgspec.structs.replace(kept, cursor=Cursor(number=self._number + 1))
