"""A session that nobody supervises begins, or one was compacted: tell it where the work stands."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents import event as events
from rekindle.documents import primer as primers
from rekindle.documents.checkpoint import Part
from rekindle.documents.event import SessionStarted
from rekindle.errors import DocumentError, RekindleError
from rekindle.flows.compose_primer import compose_primer
from rekindle.policy import loops, sessions
from rekindle.policy.settings import HOOK_CHARACTERS, SAME_START_SECONDS, Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files.view import View
from rekindle.thresholds.running import PRIME_LOCK_SECONDS


class PrimeSession(msgspec.Struct, frozen=True):
    """Who is primed, from what."""

    agent: str
    store: FileStore
    settings: Settings
    clock: Callable[[], datetime]
    is_alive: Callable[[str], bool]
    """Whether a process is still there."""
    rules: str = ""
    task: str = ""

    def prime(self, start: SessionStarted, say: Callable[[str], None]) -> None:
        """Say what the session is to be told, unless it has been told already.

        Under the agent's lock, so that of two hooks that report one start only the first is
        answered. It counts as told only once it was said, and where the store cannot be written the
        session is told all the same: twice is better than never.
        """
        said = False
        try:
            with self.store.writer(self.agent, wait=PRIME_LOCK_SECONDS) as writer:
                writer.fold()
                if _is_given(writer.projection.seen, start, writer.now()):
                    return
                seen = self.store.read(self.agent)
                lost = self._lost(start, seen)
                text = self._text(start, seen, lost)
                said = True
                say(text)
                ts = writer.now()
                given = events.PrimerGiven(
                    ts=ts,
                    session=start.session,
                    source=start.source,
                    characters=len(text),
                    recovery=bool(lost),
                )
                # From here on nobody will be told of them again.
                writer.append(*(events.SessionLost(ts=ts, session=one) for one in lost), given)
                writer.project()
        except RekindleError:
            if not said:
                seen = self.store.read(self.agent)
                say(self._text(start, seen, self._lost(start, seen)))

    def _lost(self, start: SessionStarted, seen: View) -> list[str]:
        """Sessions that began, never ended, and whose process is gone.

        Looked for only when a session begins anew: whoever resumes, clears, compacts or forks was
        not interrupted.
        """
        if start.source != "startup":
            return []
        return [
            name
            for name, life in sessions.unended(seen.projection.lives).items()
            if name != start.session and not self.is_alive(life.process)
        ]

    def _text(self, start: SessionStarted, seen: View, lost: list[str]) -> str:
        lives = seen.projection.lives
        now = self.clock()
        primer = compose_primer(
            self.store,
            self.agent,
            seen,
            now=now,
            settings=self.settings,
            rules=self.rules,
            recovering=bool(lost),
            asked=next((one.text for name in reversed(lost) if (one := lives[name].asked)), ""),
            session=start.session,
        )
        if start.source == "compact":
            own = lives.get(start.session)
            asked = own.asked.text if own is not None and own.asked is not None else ""
            limits = self.settings.runtime.loops
            resolved = loops.resolved_lately(seen.projection.loops, now, limits)
            closed = "\n".join(f"- {item.id}: {item.reason}" for item in resolved)
            primer = msgspec.structs.replace(primer, checkpoint=_stood(primer.checkpoint))
            text = primers.reminder(primer, self.task if start.launch else asked, closed)
        else:
            text = primers.render(primer, limit=HOOK_CHARACTERS)
        return primers.within(text, HOOK_CHARACTERS, primer.relay_path)


def _stood(text: str) -> str:
    """Of a checkpoint, what was done; what is still to be done is told beside it."""
    try:
        found = checkpoint.parse(text)
    except DocumentError:
        return ""
    told = (Part.COMPLETED_WORK, Part.CURRENT_STATE, Part.MODIFIED_FILES)
    return "\n\n".join(f"{part}:\n{found.content(part)}" for part in told)


def _is_given(seen: dict[str, datetime], start: SessionStarted, now: datetime) -> bool:
    given = seen.get(f"primer {start.session} {start.source}")
    if given is None or start.source == "startup":
        return given is not None  # a session begins once
    return abs((now - given).total_seconds()) < SAME_START_SECONDS
